// The map of both front ends: Leaflet, tiles or a grid of our own, pins and a vehicle that glides. Loaded apart from the facts, which
// must not wait for it.

import * as L from 'leaflet';
import type { Translate } from './config';
import { yieldGestures } from './gestures';
import { layGround, largestZoom, type GroundOptions } from './ground';
import { near, unwrap, type LngLat } from './geo';
import { plan, pose, type Fix, type Glide, type Pose } from './glide';

const svg = (body: string, box = '0 0 48 48') =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" aria-hidden="true" focusable="false">${body}</svg>`;

// Seen from above, pointing north.
const vehicleSvg = svg(
  '<circle class="halo" cx="24" cy="24" r="22"/><circle class="disc" cx="24" cy="24" r="15"/>' +
    '<path class="arrow" d="M24 13.5 32 33l-8-4.5L16 33z"/><circle class="dot" cx="24" cy="24" r="6"/>',
);
const pinSvg = (number?: number) =>
  svg(
    '<ellipse class="shade" cx="18" cy="44.5" rx="7" ry="2.5"/><path class="pin" d="M18 2C9.2 2 2 9.1 2 17.9 2 29.6 18 44 18 44s16-14.4 16-26.1C34 9.1 26.8 2 18 2z"/><circle class="hole" cx="18" cy="18" r="' +
      (number ? `12"/><text x="18" y="22.5" text-anchor="middle">${number}</text>` : '6.5"/>'),
    '0 0 36 48',
  );

/** How far 300 m are, for maps without streets: a ring and its length. */
export class Ring {
  private readonly circle = L.circle([0, 0], { radius: ringRadius, className: 'ring', interactive: false });
  private readonly label: L.Marker;

  constructor(private readonly map: L.Map, t: Translate) {
    this.label = L.marker([0, 0], {
      icon: L.divIcon({ className: 'ring-label', html: `<span>${t('track.m', { n: ringRadius })}</span>`, iconSize: [0, 0] }),
      keyboard: false,
      interactive: false,
      alt: '',
      zIndexOffset: -1000,
    });
  }

  /** Draws it around a place; null takes it away. */
  around(at: LngLat | null): void {
    if (!at) {
      this.circle.remove();
      this.label.remove();
      return;
    }
    this.circle.setLatLng(latLng(at)).addTo(this.map);
    this.label.setLatLng([at[1] + ringRadius / degree, at[0]]).addTo(this.map);
  }
}

/** What the board draws its own map with. */
export { L as leaflet, largestZoom, layGround };

const ringRadius = 300; // m
const degree = 111_195; // m of latitude

export interface MapOptions extends GroundOptions {
  element: HTMLElement;
  t: Translate;
  reducedMotion: boolean;
  label: string;
  yields?: boolean; // stands in a page that scrolls, or in a frame
  whole?: boolean; // keeps all pins in view, and not only the one to go to
  onUserMove?: () => void;
}

export interface PinOptions {
  kind: string; // a CSS class: to, from
  label: string;
  at: LngLat;
  number?: number; // of a stop among others
  aim?: boolean; // whether the vehicle is on its straight way there; only the first pin's counts
}

/** A fix on the map; a radius in metres is drawn around one that is vague. */
export type MapFix = Fix & { radius?: number };

const latLng = (p: LngLat): L.LatLngTuple => [p[1], p[0]];

export class LiveMap {
  readonly map: L.Map;
  private readonly box: HTMLElement;
  private readonly resized: ResizeObserver;
  private readonly zoom: L.Control.Zoom;
  private vehicle: L.Marker | null = null;
  private vague: L.Circle | null = null;
  private readonly line: L.Polyline;
  private readonly ahead: L.Polyline;
  private readonly ring: Ring | null = null;
  private readonly pins = L.layerGroup();
  private pinKey = '';
  private target: LngLat | null = null;
  private places: LngLat[] = []; // that are kept in view
  private aim = true;
  private path: LngLat[] = [];
  private fix: Fix | null = null;
  private shown: Pose | null = null;
  private glide: Glide | null = null;
  private since = 0;
  private frame = 0;
  private fitted = false;
  private byUser = false;

  constructor(private readonly o: MapOptions) {
    this.box = o.element.ownerDocument.createElement('div');
    this.box.className = 'map';
    o.element.append(this.box);
    this.map = L.map(this.box, {
      zoomControl: false,
      attributionControl: false,
      worldCopyJump: false,
      zoomSnap: 0.25,
      maxZoom: largestZoom(o),
      minZoom: 2,
      fadeAnimation: !o.reducedMotion,
      zoomAnimation: !o.reducedMotion,
      markerZoomAnimation: !o.reducedMotion,
      inertia: !o.reducedMotion,
    });
    this.box.setAttribute('aria-label', o.label);
    this.box.setAttribute('role', 'application');
    if (o.yields) yieldGestures(this.map, this.box, o.t);
    this.zoom = L.control
      .zoom({ position: 'topright', zoomInTitle: o.t('track.map.zoom_in'), zoomOutTitle: o.t('track.map.zoom_out') })
      .addTo(this.map);
    layGround(this.map, o);
    if (!o.map && !o.tiles) this.ring = new Ring(this.map, o.t);
    this.ahead = L.polyline([], { className: 'line-ahead', interactive: false, weight: 3, dashArray: '2 9', lineCap: 'round' }).addTo(this.map);
    this.line = L.polyline([], { className: 'line-path', interactive: false, weight: 5, lineCap: 'round', lineJoin: 'round' }).addTo(this.map);
    this.pins.addTo(this.map);
    this.map.setView([0, 0], 2, { animate: false });
    const user = () => {
      if (this.byUser) return;
      this.byUser = true;
      this.o.onUserMove?.();
    };
    // Leaflet tells of a zoom in a later frame, so that ours could not be told from the reader's: listen to what he does instead.
    this.map.on('dragstart', user);
    for (const event of ['wheel', 'dblclick', 'keydown', 'click']) {
      this.box.addEventListener(event, (e) => {
        const target = e.target as Element;
        if (event === 'click' && !target.closest('.leaflet-control-zoom')) return;
        if (event === 'keydown' && !/^(Arrow|[-+=]$)/.test((e as KeyboardEvent).key)) return;
        user();
      });
    }
    this.box.addEventListener('touchstart', (e) => {
      if (e.touches.length > 1) user();
    }, { passive: true });
    this.resized = new ResizeObserver(() => {
      this.map.invalidateSize({ animate: false });
      if (!this.byUser) this.fit(false);
    });
    this.resized.observe(this.box);
  }

  /** Shows the pins of places; those already shown are left alone. */
  setPins(pins: PinOptions[]): void {
    const key = JSON.stringify(pins);
    if (key === this.pinKey) return;
    this.pinKey = key;
    this.pins.clearLayers();
    this.places = (this.o.whole ? pins : pins.slice(0, 1)).map((p) => p.at);
    this.target = pins[0]?.at ?? null;
    this.aim = pins[0]?.aim !== false;
    for (const p of pins) {
      L.marker(latLng([this.align(p.at[0]), p.at[1]]), {
        icon: L.divIcon({ className: `pin-icon ${p.kind}`, html: pinSvg(p.number), iconSize: [36, 48], iconAnchor: [18, 45] }),
        title: p.label,
        alt: p.label,
        keyboard: false,
        interactive: false,
      }).addTo(this.pins);
    }
    this.draw();
    if (!this.byUser) this.fit(this.fitted && this.vehicle !== null);
  }

  private align(lng: number): number {
    return this.shown ? near(lng, this.shown.at[0]) : lng;
  }

  /** Moves the vehicle to a fix, along with the path that was driven up to it. Null takes it away. */
  setFix(fix: MapFix | null, path: LngLat[], label: string, live: boolean): void {
    this.blur(fix);
    if (!fix) {
      this.vehicle?.remove();
      this.vehicle = this.fix = this.shown = this.glide = null;
      this.path = [];
      this.draw();
      return;
    }
    this.glide = plan(this.shown, this.fix, fix, this.o.reducedMotion || document.hidden);
    this.fix = fix;
    this.path = unwrap(path, this.glide.to.at[0]);
    if (!this.vehicle) {
      this.vehicle = L.marker(latLng(fix.at), {
        icon: L.divIcon({ className: 'vehicle-icon', html: vehicleSvg, iconSize: [48, 48], iconAnchor: [24, 24] }),
        keyboard: false,
        interactive: false,
        alt: label,
        zIndexOffset: 1000,
      }).addTo(this.map);
    }
    this.vehicle.getElement()?.classList.toggle('stale', !live);
    this.since = performance.now();
    cancelAnimationFrame(this.frame);
    this.step();
    if (!this.byUser) this.follow();
  }

  private blur(fix: MapFix | null): void {
    if (!fix?.radius) {
      this.vague?.remove();
      this.vague = null;
      return;
    }
    this.vague ??= L.circle(latLng(fix.at), { radius: fix.radius, className: 'vague', interactive: false }).addTo(this.map);
    this.vague.setRadius(fix.radius);
  }

  private step = (): void => {
    if (!this.glide) return;
    const elapsed = performance.now() - this.since;
    this.shown = pose(this.glide, elapsed);
    this.draw();
    if (elapsed < this.glide.duration) this.frame = requestAnimationFrame(this.step);
  };

  private draw(): void {
    const s = this.shown;
    const centre = this.target ?? s?.at ?? null;
    this.ring?.around(centre && [this.align(centre[0]), centre[1]]);
    if (!s || !this.vehicle) {
      this.line.setLatLngs([]);
      this.ahead.setLatLngs([]);
      return;
    }
    this.vehicle.setLatLng(latLng(s.at));
    this.vague?.setLatLng(latLng(s.at));
    const el = this.vehicle.getElement();
    const icon = el?.firstElementChild as SVGElement | null | undefined;
    el?.classList.toggle('headed', s.heading !== null);
    if (icon) icon.style.transform = s.heading === null ? '' : `rotate(${s.heading}deg)`;
    // The newest point of the path is where the vehicle is going, not where it is shown.
    const gliding = this.glide !== null && s !== this.glide.to;
    const behind = gliding ? this.path.slice(0, -1) : this.path;
    this.line.setLatLngs([...behind, s.at].map(latLng));
    this.ahead.setLatLngs(this.target && this.aim ? [s.at, [near(this.target[0], s.at[0]), this.target[1]] as LngLat].map(latLng) : []);
  }

  private points(): LngLat[] {
    const points: LngLat[] = [];
    if (this.glide) points.push(this.glide.to.at);
    for (const [lng, lat] of this.places) points.push([this.align(lng), lat]);
    return points;
  }

  /** Shows vehicle and place. Follows from now on. */
  recenter(): void {
    this.byUser = false;
    this.fit(true);
  }

  private fit(animate: boolean): void {
    const points = this.points();
    const size = this.map.getSize();
    if (points.length === 0 || size.x === 0 || size.y === 0) return;
    const b = L.latLngBounds(points.map(latLng));
    const pad = Math.min(140, Math.floor(Math.min(size.x, size.y) / 6));
    const corner = this.map.getContainer().querySelector('.leaflet-bottom');
    const covered = corner ? parseFloat(getComputedStyle(corner).bottom) || 0 : 0; // by the page below, which lifts the map's own words as well
    this.map.fitBounds(b, {
      paddingTopLeft: [pad, Math.min(pad + 16, size.y / 3)],
      paddingBottomRight: [Math.max(pad, (this.zoom.getContainer()?.offsetWidth ?? 0) + 30), pad + covered], // the pin must not stand below the buttons
      maxZoom: Math.min(16.5, this.map.getMaxZoom()),
      animate: animate && !this.o.reducedMotion,
    });
    this.fitted = true;
  }

  /** Fits again when the vehicle leaves the middle of the map, or has come much nearer; not at every fix. */
  private follow(): void {
    const points = this.points();
    if (!this.fitted) return this.fit(false);
    const view = this.map.getBounds();
    const inner = view.pad(-0.12);
    const out = points.some((p) => !inner.contains(latLng(p)));
    const b = L.latLngBounds(points.map(latLng));
    const roomy = this.map.getBoundsZoom(b, false, L.point(80, 80)) - this.map.getZoom() > 1 && this.map.getZoom() < 16;
    if (out || roomy) this.fit(true);
  }

  focus(): void {
    this.box.focus();
  }

  remove(): void {
    cancelAnimationFrame(this.frame);
    this.glide = null;
    this.resized.disconnect();
    this.box.remove();
    // Leaflet's own animations go on for a moment, and would stumble over a map that is no more.
    this.map.stop();
    setTimeout(() => this.map.remove(), 1000);
  }
}
