// The tracking page: the server rendered the facts, this keeps them up to date and adds the map.

import { readConfig, translator } from '../shared/config';
import { distance, type LngLat } from '../shared/geo';
import type { LiveMap } from '../shared/map';
import { Pause } from '../shared/sse';
import { follow } from './follow';
import { detail, ended, here, moving, phase, placeLabel, readTracking, steps, wantsMap, type Tracking } from './state';
import { age, clocks, expected, length, Speaker } from './words';

const config = readConfig(document);
const t = translator(config.words);
const times = clocks(config.lang, config.time_zone);
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)').matches;

let offset = config.now - Date.now(); // of the server's clock
const now = () => Date.now() + offset;

const $ = (id: string) => document.getElementById(id)!;

/** Sets a text where it differs: a text that is set anew without need is read out again, and loses the reader's selection. */
function text(id: string, value: string): void {
  const el = $(id);
  if (el.textContent !== value) el.textContent = value;
}

function show(id: string, visible: boolean): void {
  $(id).hidden = !visible;
}

let state: Tracking | null = readTracking(config.tracking);
let map: LiveMap | null = null;
let loadingMap = false;
let gone = false;
let connected = true;
let lostSince = 0;

const speaker = new Speaker((words) => {
  $('spoken').textContent = words;
});

function instant(s: string | undefined): number {
  const ms = Date.parse(s ?? '');
  return Number.isFinite(ms) && ms <= now() + 60_000 ? ms : NaN;
}

function renderSteps(tr: Tracking): void {
  const list = $('steps');
  const want = steps(tr);
  const key = JSON.stringify(want) + times.shown(now(), 0);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(
    ...want.map((s) => {
      const li = document.createElement('li');
      li.dataset.step = s.key;
      li.dataset.state = s.state;
      if (s.state === 'current') li.setAttribute('aria-current', 'step');
      const dot = document.createElement('span');
      dot.className = 'dot';
      dot.setAttribute('aria-hidden', 'true');
      const label = document.createElement('span');
      label.className = 'label';
      label.textContent = t('track.step.' + s.key);
      const told = document.createElement('span');
      told.className = 'sr';
      told.textContent = ', ' + t('track.step.' + s.state);
      li.append(dot, label, told);
      const at = instant(s.at);
      if (Number.isFinite(at)) {
        const time = document.createElement('time');
        time.dateTime = s.at;
        time.textContent = times.shown(at, now());
        li.append(' ', time);
      }
      return li;
    }),
  );
}

function render(): void {
  if (!state || gone) return;
  const tr = state;
  const ph = phase(tr);
  const over = ended(tr);
  const under = moving(tr);
  document.body.dataset.phase = ph;
  document.body.toggleAttribute('data-ended', over);
  const headline = t('track.headline.' + ph);
  text('headline', headline);
  if (document.title !== `${headline} · ${config.name}`) document.title = `${headline} · ${config.name}`;

  const endedAt = instant(tr.ended_at);
  show('final-at', over && Number.isFinite(endedAt));
  if (over && Number.isFinite(endedAt)) text('final-at', times.shown(endedAt, now()));

  const eta = under && tr.eta ? Date.parse(tr.eta.time) : NaN;
  const when = Number.isFinite(eta) ? expected(t, eta, now(), times.clock) : null;
  show('eta', when !== null);
  if (when) {
    text('eta-main', when.main);
    text('eta-sub', when.sub);
  }
  const more = detail(tr);
  show('detail', more !== '' && !when);
  text('detail', more === '' ? '' : t(more));
  renderSteps(tr);

  const name = tr.driver?.name ?? '';
  show('driver', name !== '');
  text('driver-name', name);
  text('driver-initial', ([...name][0] ?? '').toLocaleUpperCase(config.lang));

  const place = tr.place;
  const address = place?.address || (place?.lnglat ? t('track.place.map') : '');
  show('place', address !== '');
  text('place-label', t(placeLabel(tr)));
  text('address', address);
  show('order', !!tr.order_id);
  text('order-id', tr.order_id ?? '');

  const pos = under ? tr.position : undefined;
  let where = '';
  let away = '';
  if (pos) {
    where = age(t, pos.live !== false, Date.parse(pos.time), now(), (ms) => times.shown(ms, now()));
    if (place?.lnglat) {
      const m = distance(pos.lnglat, place.lnglat);
      away = m < 50 ? t(here(tr)) : t('track.distance', { distance: length(t, m, config.lang) });
    }
  } else if (under) {
    where = t('track.position.none');
  }
  show('position-row', where !== '');
  text('position', where);
  show('distance', away !== '');
  text('distance', away);

  speaker.offer([headline, when?.main, away].filter(Boolean).join('. '), Date.now());
  void renderMap(tr);
}

async function renderMap(tr: Tracking): Promise<void> {
  const pos = moving(tr) ? tr.position : undefined;
  const wanted = wantsMap(tr, config.tiles !== undefined);
  const area = $('map-area');
  area.hidden = !wanted;
  document.body.toggleAttribute('data-map', wanted);
  if (!wanted) {
    map?.remove();
    map = null;
    return;
  }
  if (!map) {
    if (loadingMap) return;
    loadingMap = true;
    try {
      const { LiveMap } = await import('../shared/map');
      if (state && !ended(state)) {
        map = new LiveMap({
          element: $('map'),
          tiles: config.tiles,
          t,
          dark: matchMedia('(prefers-color-scheme: dark)').matches,
          reducedMotion,
          label: t('track.map'),
          onUserMove: () => show('recenter', true),
        });
      }
    } catch {
      area.hidden = true; // the facts are there without it
      document.body.toggleAttribute('data-map', false);
      return;
    } finally {
      loadingMap = false;
    }
    if (state) await renderMap(state);
    return;
  }
  map.setPins(
    tr.place?.lnglat
      ? [{ kind: placeLabel(tr) === 'track.place.from' ? 'from' : 'to', label: t(placeLabel(tr)), at: tr.place.lnglat }]
      : [],
  );
  map.setFix(
    pos ? { at: pos.lnglat, heading: pos.bearing ?? null, time: Date.parse(pos.time) } : null,
    (tr.path ?? []) as LngLat[],
    t('track.map.driver'),
    pos?.live !== false,
  );
}

function renderConnection(): void {
  // A break of a few seconds is nothing to tell.
  const lost = !connected && Date.now() - lostSince > 4_000 && !gone;
  show('conn', lost);
  if (lost) text('conn', t('track.conn.lost'));
}

const pause = new Pause();
const base = `${config.base}/track/${encodeURIComponent(config.token ?? '')}`;
let running: AbortController | null = null;

function start(): void {
  if (gone || (state && ended(state))) return;
  running = new AbortController();
  void follow(
    base,
    {
      onState(next) {
        state = next;
        render();
      },
      onConnection(ok) {
        if (connected && !ok) lostSince = Date.now();
        connected = ok;
        renderConnection();
      },
      onServerTime(ms) {
        // The header counts whole seconds: only a clock that is really off is set.
        if (Math.abs(ms - now()) > 2_000) offset = ms - Date.now();
      },
      onGone() {
        gone = true;
        map?.remove();
        map = null;
        show('map-area', false);
        document.body.toggleAttribute('data-map', false);
        document.body.dataset.phase = 'gone';
        text('headline', t('track.gone.title'));
        text('detail', t('track.gone.text'));
        show('detail', true);
        for (const id of ['eta', 'steps', 'driver', 'position-row', 'place', 'order', 'final-at', 'conn']) show(id, false);
        $('spoken').textContent = t('track.gone.title');
      },
    },
    pause,
    running.signal,
  );
}

$('recenter').addEventListener('click', () => {
  show('recenter', false);
  map?.recenter();
  map?.focus();
});

addEventListener('online', () => pause.wake());
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) pause.wake();
});
// A page that comes back from the back/forward cache has lost its stream without being told.
addEventListener('pagehide', () => running?.abort());
addEventListener('pageshow', (e) => {
  if (e.persisted) start();
});

render();
start();
setInterval(tick, 5_000);

/** What changes by mere time: ages, the expected time, the connection. */
function tick(): void {
  renderConnection();
  if (!state || gone || ended(state)) return;
  const pos = moving(state) ? state.position : undefined;
  if (pos) text('position', age(t, pos.live !== false, Date.parse(pos.time), now(), (ms) => times.shown(ms, now())));
  const eta = moving(state) && state.eta ? Date.parse(state.eta.time) : NaN;
  if (Number.isFinite(eta)) {
    const when = expected(t, eta, now(), times.clock);
    text('eta-main', when.main);
    text('eta-sub', when.sub);
  }
  speaker.tick(Date.now());
}
