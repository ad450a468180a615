// The tracking page: the server rendered the facts, this keeps them up to date and adds the map.

import { readConfig, translator } from '../shared/config';
import { distance, type LngLat } from '../shared/geo';
import type { LiveMap } from '../shared/map';
import { Pause } from '../shared/sse';
import { follow } from './follow';
import { sendNote, takeNote } from './note';
import { asOf, atDoor, detail, earlier, ended, etaLabel, fetching, moving, phase, pin, placeLabel, readTracking, silent, steps, stopsBefore, takesNotes, wantsMap, type Position, type Tracking } from './state';
import { age, clocks, expected, Late, length, Narrowing, planned, readerLanguages, readerLocale, Speaker, Steady, stops } from './words';

const config = readConfig(document);
const t = translator(config.words);
const times = clocks(config.lang, config.time_zone);
const { locale } = readerLocale(config.lang, readerLanguages());
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)').matches;

const base = `${config.base}/track/${encodeURIComponent(config.token ?? '')}`;
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

const coarse = 100; // metres; what a position may be off by without a word
const steady = new Steady();
const narrowing = new Narrowing();
const lateness = new Late();
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

/** What is said of the expected time; null when there is none to tell, and when the headline says that the driver is there. */
function when(tr: Tracking) {
  const eta = steady.take(moving(tr) && tr.eta && !atDoor(tr) ? Date.parse(tr.eta.time) : NaN);
  if (!Number.isFinite(eta)) return null;
  return expected(t, eta, now(), times, tr.eta?.source === 'estimate', narrowing.take(eta, now()));
}

const promisedAt = (tr: Tracking) => Date.parse(tr.promised ?? tr.window?.to ?? '');

/** Sets what is said of times, which changes by mere time. Tells the expected one, or what was agreed. */
function renderTimes(tr: Tracking): string {
  const said = when(tr);
  const agreed = said || ended(tr) || atDoor(tr) ? '' : planned(t, Date.parse(tr.window?.from ?? ''), promisedAt(tr), now(), times);
  const main = said?.main ?? agreed;
  show('eta', main !== '');
  if (main !== '') {
    text('eta-label', t(etaLabel(tr)));
    text('eta-main', main);
    text('eta-sub', said?.sub ?? '');
  }
  const late = !atDoor(tr) && lateness.take(ended(tr) ? NaN : promisedAt(tr), Date.parse(tr.eta?.time ?? ''), now());
  text('late', late ? t('track.late', { time: times.shown(promisedAt(tr), now()) }) : '');
  const key = detail(tr);
  const more = ended(tr) ? (config.reasons[tr.reason_code ?? ''] ?? '') : key && t(key);
  show('detail', more !== '' && !said);
  text('detail', more);
  return main && `${t(etaLabel(tr))} ${main}`;
}

const positionAge = (p: Position) => age(t, p.live !== false, Date.parse(p.time), now(), (ms) => times.shown(ms, now()));

/** How far the driver is, or how vague the position, where that says something of the way here. */
function away(tr: Tracking): string {
  const pos = tr.position;
  if (!pos) return '';
  if ((pos.accuracy ?? 0) > coarse) return t('track.position.accuracy', { distance: length(t, pos.accuracy!, locale) });
  if (!tr.place?.lnglat || silent(tr) || fetching(tr) || atDoor(tr)) return '';
  return t('track.distance', { distance: length(t, distance(pos.lnglat, tr.place.lnglat), locale) });
}

function render(): void {
  if (!state || gone) return;
  const tr = asOf(state, now());
  const ph = phase(tr);
  const over = ended(tr);
  const under = moving(tr);
  document.body.dataset.phase = ph;
  document.body.toggleAttribute('data-ended', over);
  document.body.toggleAttribute('data-live', under && !silent(tr));
  const headline = t('track.headline.' + ph);
  text('headline', headline);
  if (document.title !== `${headline} · ${config.name}`) document.title = `${headline} · ${config.name}`;

  const endedAt = instant(tr.ended_at);
  show('final-at', over && Number.isFinite(endedAt));
  if (over && Number.isFinite(endedAt)) text('final-at', times.shown(endedAt, now()));

  const expects = renderTimes(tr);
  const before = stops(t, stopsBefore(tr));
  show('stops', before !== '');
  text('stops', before);
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

  const digits = pin(tr);
  show('pin', digits !== '');
  text('pin-digits', digits);
  const tried = earlier(tr);
  show('earlier', tried !== '');
  if (tried !== '') {
    const at = instant(tr.earlier!.ended_at);
    const why = config.reasons[tr.earlier!.reason_code ?? ''] ?? t(tried);
    text('earlier-value', [Number.isFinite(at) && times.shown(at, now()), why].filter(Boolean).join(' · '));
  }
  show('received', !!tr.received_by);
  text('received-by', tr.received_by ?? '');
  renderPhotos(tr.photos ?? []);
  renderNote(tr);
  if (config.links?.feedback) show('feedback', over);

  const pos = under ? tr.position : undefined;
  const where = pos ? positionAge(pos) : under ? t('track.position.none') : '';
  const far = under ? away(tr) : '';
  show('position-row', where !== '');
  text('position', where);
  show('distance', far !== '');
  text('distance', far);

  speaker.offer([headline, expects, before, digits && `${t('track.pin')}: ${digits}`, silent(tr) ? where : far].filter(Boolean).join('. '), Date.now());
  void renderMap(tr);
}

function renderPhotos(ids: string[]): void {
  const list = $('photos');
  show('photos', ids.length > 0);
  const key = ids.join();
  if ((list.dataset.key ?? '') === key) return;
  list.dataset.key = key;
  list.replaceChildren(
    ...ids.map((id) => {
      const li = document.createElement('li');
      const a = document.createElement('a');
      a.href = `${base}/proof/${encodeURIComponent(id)}`;
      a.target = '_blank';
      a.rel = 'noopener';
      const img = document.createElement('img');
      img.src = a.href;
      img.alt = t('track.photo');
      a.append(img);
      li.append(a);
      return li;
    }),
  );
}

const noteText = $('note-text') as HTMLTextAreaElement;
let noteKept = ''; // what the server has
let sending = false;

function renderNote(tr: Tracking): void {
  show('note', takesNotes(tr));
  const kept = tr.customer_note ?? '';
  if (kept === noteKept) return;
  noteText.value = takeNote(noteText.value, noteKept, kept);
  noteKept = kept;
  renderLeft();
}

/** The room that is left, when it gets scarce. */
function renderLeft(): void {
  const left = noteText.maxLength - noteText.value.length;
  text('note-left', left <= 40 ? t('track.note.left', { n: left }) : '');
}

async function submitNote(): Promise<void> {
  const written = noteText.value.trim();
  if (sending) return;
  if (written === '') {
    text('note-state', t('track.note.empty'));
    noteText.focus();
    return;
  }
  sending = true;
  $('note-send').setAttribute('aria-disabled', 'true');
  text('note-state', t('track.note.sending'));
  const sent = await sendNote(base, written);
  sending = false;
  $('note-send').removeAttribute('aria-disabled');
  $('note-state').dataset.state = sent;
  text('note-state', t('track.note.' + sent));
  if (sent === 'saved') noteKept = written;
}

$('note').addEventListener('submit', (e) => {
  e.preventDefault();
  void submitNote();
});
noteText.addEventListener('input', () => {
  renderLeft();
  if (sending) return;
  delete $('note-state').dataset.state;
  text('note-state', '');
});

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
          map: config.map,
          tiles: config.tiles,
          lang: config.lang,
          t,
          dark: matchMedia('(prefers-color-scheme: dark)').matches,
          reducedMotion,
          label: t('track.map'),
          yields: true,
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
    if (state) await renderMap(asOf(state, now()));
    return;
  }
  map.setPins(
    tr.place?.lnglat
      ? [{ kind: placeLabel(tr) === 'track.place.from' ? 'from' : 'to', label: t(placeLabel(tr)), at: tr.place.lnglat, aim: !fetching(tr) && !atDoor(tr) }]
      : [],
  );
  map.setFix(
    pos ? { at: pos.lnglat, heading: pos.bearing ?? null, time: Date.parse(pos.time), radius: (pos.accuracy ?? 0) > coarse ? pos.accuracy : 0 } : null,
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
let running: AbortController | null = null;

/** Follows the link, unless it does already or is gone. */
function start(): void {
  if (gone || running) return;
  const mine = (running = new AbortController());
  void follow(
    base,
    {
      shown: state,
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
        text('late', '');
        for (const id of ['eta', 'stops', 'pin', 'earlier', 'received', 'photos', 'note', 'steps', 'driver', 'position-row', 'place', 'order', 'final-at', 'conn']) show(id, false);
        $('spoken').textContent = t('track.gone.title');
      },
    },
    pause,
    mine.signal,
  ).then(() => {
    if (running === mine) running = null;
  });
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
addEventListener('pagehide', () => {
  running?.abort();
  running = null;
});
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
  const tr = asOf(state, now());
  if (silent(tr) && document.body.hasAttribute('data-live')) return render(); // it has just become too old
  const pos = moving(tr) ? tr.position : undefined;
  if (pos) text('position', positionAge(pos));
  renderTimes(tr);
  speaker.tick(Date.now());
}
