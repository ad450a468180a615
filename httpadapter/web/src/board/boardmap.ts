// The map of the board: many drivers and tasks, of which those close together are drawn as one.

import type * as L from 'leaflet';
import type { Translate } from '../shared/config';
import { near, type LngLat } from '../shared/geo';
import type { GroundOptions } from '../shared/ground';
import type { largestZoom, layGround, leaflet, Ring } from '../shared/map';
import { cluster } from './cluster';
import type { Scene } from './scene';

const every = 200; // ms between drawings, however often something moves
const alone = 15; // from this zoom on nothing is drawn as one
const cell = 44; // px
const freshFor = 15_000; // ms that a new task of nobody jumps out

export interface BoardMapOptions extends GroundOptions {
  lib: { leaflet: typeof leaflet; largestZoom: typeof largestZoom; layGround: typeof layGround; Ring: typeof Ring }; // loaded apart
  element: HTMLElement;
  t: Translate;
  reducedMotion: boolean;
  onSelect: (kind: 'task' | 'driver', id: string, at: LngLat) => void;
  onGround: (at: LngLat) => void;
}

/** Puts a mark by left and top: by a transform, as Leaflet does it, each would be a layer of its own for the browser to put together, hundreds of them. */
function place(this: L.Marker, at: L.Point): void {
  const self = this as unknown as { _icon: HTMLElement & { _leaflet_pos: L.Point }; _zIndex: number; _resetZIndex(): void };
  self._icon._leaflet_pos = at;
  self._icon.style.left = at.x + 'px';
  self._icon.style.top = at.y + 'px';
  self._zIndex = at.y + (this.options.zIndexOffset ?? 0);
  self._resetZIndex();
}

/** What is to be drawn at a place, by a key that stays while it is the same thing. */
interface Mark {
  key: string;
  at: LngLat;
  look: string; // the classes
  text: string;
  size: number;
  z: number;
  label: string;
  click: () => void;
}

export class BoardMap {
  readonly map: L.Map;
  private readonly lib: typeof leaflet;
  private readonly Mark: typeof L.Marker;
  private readonly box: HTMLElement;
  private readonly resized: ResizeObserver;
  private readonly markers = new Map<string, { marker: L.Marker; mark: Mark }>();
  private readonly line: L.Polyline;
  private readonly ring: Ring | null; // where there are no streets to tell how far things are apart
  private now: Scene = { drivers: [], tasks: [], stops: [], line: [], hue: null, centre: null };
  private next: () => Scene = () => this.now;
  private known: Set<string> | null = null; // tasks of nobody that were there
  private readonly fresh = new Map<string, number>(); // … and that have come since, and when
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawn = 0;
  private fitted = false;
  private middle = 0; // the longitude that all others are brought next to

  constructor(private readonly o: BoardMapOptions) {
    const { leaflet, largestZoom, layGround } = o.lib;
    this.lib = leaflet;
    this.Mark = leaflet.Marker.extend({ _setPos: place }) as unknown as typeof L.Marker;
    this.box = document.createElement('div');
    this.box.className = 'map';
    o.element.append(this.box);
    this.map = leaflet.map(this.box, {
      zoomControl: false,
      attributionControl: false,
      zoomSnap: 0.5,
      maxZoom: largestZoom(o),
      minZoom: 2,
      fadeAnimation: !o.reducedMotion,
      zoomAnimation: !o.reducedMotion,
      markerZoomAnimation: false, // see place
      inertia: !o.reducedMotion,
    });
    this.box.setAttribute('aria-label', o.t('board.map'));
    this.box.setAttribute('role', 'application');
    leaflet.control.zoom({ position: 'topright', zoomInTitle: o.t('track.map.zoom_in'), zoomOutTitle: o.t('track.map.zoom_out') }).addTo(this.map);
    layGround(this.map, o);
    this.line = leaflet.polyline([], { className: 'line-route', interactive: false, weight: 4, lineCap: 'round', lineJoin: 'round' }).addTo(this.map);
    this.ring = o.map || o.tiles ? null : new o.lib.Ring(this.map, o.t);
    this.map.setView([0, 0], 2, { animate: false });
    this.map.on('zoomend moveend', () => this.draw());
    this.map.on('click', (e) => o.onGround([e.latlng.lng, e.latlng.lat]));
    this.resized = new ResizeObserver(() => {
      this.map.invalidateSize({ animate: false });
      if (!this.fitted) this.whole();
    });
    this.resized.observe(this.box);
  }

  /** Shows a scene as it is by then, soon: positions come by the hundred, and each is not worth a look at all. */
  show(scene: () => Scene): void {
    this.next = scene;
    if (this.timer !== undefined) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.now = this.next();
        this.draw();
        if (!this.fitted) this.whole();
      },
      Math.max(0, this.drawn + every - performance.now()),
    );
  }

  /** Brings all that there is into view. */
  whole(): void {
    this.fit([...this.now.drivers.map((d) => d.at), ...this.now.tasks.map((t) => t.at), ...this.now.stops.map((s) => s.at)]);
  }

  /** Brings what is selected into view; only where it is not, if it need not be. */
  selection(always: boolean): void {
    const points = [...this.now.stops.map((s) => s.at), ...this.now.drivers.filter((d) => d.selected).map((d) => d.at)];
    if (points.length === 0) return;
    const view = this.map.getBounds();
    if (always || points.some((p) => !view.contains(this.latLng(p)))) this.fit(points);
  }

  private fit(points: LngLat[]): void {
    const size = this.map.getSize();
    if (points.length === 0 || size.x === 0 || size.y === 0) return;
    if (!this.fitted) this.middle = points[0]![0];
    const pad = Math.min(60, Math.floor(Math.min(size.x, size.y) / 6));
    this.map.fitBounds(this.lib.latLngBounds(points.map((p) => this.latLng(p))), { padding: [pad, pad], maxZoom: Math.min(15.5, this.map.getMaxZoom()), animate: this.fitted && !this.o.reducedMotion });
    this.fitted = true;
  }

  private latLng(p: LngLat): L.LatLngTuple {
    return [p[1], near(p[0], this.middle)];
  }

  private draw(): void {
    this.drawn = performance.now();
    const s = this.now;
    const zoom = this.map.getZoom();
    const wanted = this.map.getBounds().pad(0.2);
    const marks: Mark[] = [];
    this.notice(s);
    const seen = <T extends { at: LngLat; id: string }>(list: readonly T[]) =>
      list.filter((x) => wanted.contains(this.latLng(x.at))).map((x) => ({ ...x, ...this.map.project(this.latLng(x.at), zoom) }));
    const size = zoom >= alone ? 1 : cell;
    for (const nobody of [true, false]) {
      for (const c of cluster(seen(s.tasks.filter((t) => (t.hue === null) === nobody)), size)) {
        const first = c.points[0]!;
        const late = c.points.some((t) => t.late) ? ' late' : '';
        const dim = c.points.every((t) => t.dim) ? ' dim' : '';
        const one = c.points.length === 1;
        const at = this.map.unproject([c.x, c.y], zoom);
        const of = new Set(c.points.map((t) => t.hue));
        marks.push({
          key: (nobody ? 'nobody ' : 'tasks ') + (one ? first.id : c.key + ' ' + zoom),
          at: one ? first.at : [at.lng, at.lat],
          look: 'mark task' + (one ? '' : ' many') + (nobody ? (c.points.some((t) => this.fresh.has(t.id)) ? ' nobody new' : ' nobody') : of.size === 1 ? ' c' + first.hue : ' mixed') + (one && first.under ? ' under' : '') + late + dim,
          text: one ? (late ? '!' : '') : String(c.points.length),
          size: one ? (nobody ? 28 : 16) : 30,
          z: nobody ? 400 : 0,
          label: '',
          click: () => (one ? this.o.onSelect('task', first.id, first.at) : this.map.setView(at, Math.min(this.map.getMaxZoom(), zoom + 2))),
        });
      }
    }
    const groups = cluster(seen(s.drivers), zoom >= 12 ? 1 : cell);
    for (const c of groups) {
      const first = c.points.find((d) => d.selected) ?? c.points[0]!;
      const one = c.points.length === 1;
      const at = this.map.unproject([c.x, c.y], zoom);
      marks.push({
        key: 'driver ' + (one ? first.id : c.key + ' ' + zoom),
        at: one ? first.at : [at.lng, at.lat],
        look: one ? `mark driver ${first.state} c${first.hue}${first.dim ? ' dim' : ''}${first.selected ? ' selected' : ''}` : 'mark driver many' + (c.points.every((d) => d.dim) ? ' dim' : ''),
        text: one ? (first.state === 'silent' ? '?' : first.state === 'standing' ? '' : first.open > 0 ? String(first.open) : '') : String(c.points.length),
        size: 30,
        z: first.selected ? 900 : 600,
        label: one ? first.name : '',
        click: () => (one ? this.o.onSelect('driver', first.id, first.at) : this.map.setView(at, Math.min(this.map.getMaxZoom(), zoom + 2))),
      });
    }
    s.stops.forEach((stop, i) => {
      marks.push({ key: 'stop ' + i, at: stop.at, look: `mark pin ${stop.kind}${s.hue === null ? '' : ' c' + s.hue}`, text: stop.text, size: 26, z: 800 + i, label: '', click: () => {} });
    });
    const keys = new Set(marks.map((m) => m.key));
    for (const [key, { marker }] of this.markers) {
      if (keys.has(key)) continue;
      marker.remove();
      this.markers.delete(key);
    }
    for (const m of marks) this.put(m);
    this.ring?.around(s.centre && [near(s.centre[0], this.middle), s.centre[1]]);
    this.line.setLatLngs(s.line.map((p) => this.latLng(p)));
    const path = this.line.getElement();
    if (path) path.setAttribute('class', 'leaflet-interactive line-route' + (s.hue === null ? '' : ' c' + s.hue));
  }

  /** Keeps in mind which tasks of nobody have just come. */
  private notice(s: Scene): void {
    const now = performance.now();
    const there = new Set(s.tasks.filter((t) => t.hue === null).map((t) => t.id));
    if (this.known && s.tasks.length > 0) for (const id of there) if (!this.known.has(id)) this.fresh.set(id, now);
    for (const [id, since] of this.fresh) if (now - since > freshFor || !there.has(id)) this.fresh.delete(id);
    this.known = there;
  }

  private put(m: Mark): void {
    const have = this.markers.get(m.key);
    if (have && have.mark.size === m.size) {
      const was = have.mark;
      if (was.at[0] !== m.at[0] || was.at[1] !== m.at[1]) have.marker.setLatLng(this.latLng(m.at));
      const el = have.marker.getElement();
      if (el && was.look !== m.look) for (const [of, add] of [[was.look, false], [m.look, true]] as const) for (const c of of.split(' ')) el.classList.toggle(c, add);
      if (el && was.text !== m.text) el.firstElementChild!.textContent = m.text;
      if (was.z !== m.z) have.marker.setZIndexOffset(m.z);
      have.mark = m;
      return;
    }
    have?.marker.remove();
    const body = document.createElement('span');
    body.textContent = m.text;
    const marker = new this.Mark(this.latLng(m.at), {
      icon: this.lib.divIcon({ className: m.look, html: body, iconSize: [m.size, m.size] }),
      keyboard: false, // the lists have all of it
      autoPanOnFocus: false, // nor has any a listener of its own for that
      zIndexOffset: m.z,
      title: m.label,
    }).addTo(this.map);
    const entry = { marker, mark: m };
    marker.on('click', (e) => {
      this.lib.DomEvent.stopPropagation(e);
      entry.mark.click();
    });
    this.markers.set(m.key, entry);
  }

  remove(): void {
    clearTimeout(this.timer);
    this.resized.disconnect();
    this.box.remove();
    // Leaflet's own animations go on for a moment, and would stumble over a map that is no more.
    this.map.stop();
    setTimeout(() => this.map.remove(), 1000);
  }
}
