// What /track/{token}/state says, and what the page makes of it. The server renders the same facts (facts.go) for those without
// JavaScript; testdata/phases.json holds both to the same answers.

import { isLngLat, type LngLat } from '../shared/geo';

export interface Position {
  lnglat: LngLat;
  time: string;
  accuracy?: number; // metres
  bearing?: number;
  live?: boolean;
}

export interface Tracking {
  kind: 'task' | 'trip';
  type?: number;
  status: string;
  outcome?: string;
  order_id?: string;
  driver?: { name?: string };
  place?: { address?: string; lnglat?: LngLat }; // of the person who watches
  leg?: string; // where the driver is heading: pickup, drop
  time?: string;
  window?: { from?: string; to?: string };
  promised?: string;
  phase?: string; // created, assigned, to_pickup, at_pickup, to_drop, arriving, at_drop, done
  stops_before?: number; // of the driver's, before the place
  reason_code?: string;
  customer_note?: string;
  earlier?: { outcome?: string; reason_code?: string; ended_at?: string }; // of the task that this one tries again
  pin?: string;
  received_by?: string;
  photos?: string[]; // ids
  started_at?: string;
  picked_up_at?: string;
  ended_at?: string;
  position?: Position;
  path?: LngLat[];
  eta?: { time: string; computed_at?: string; source?: string };
}

export type StepState = 'done' | 'current' | 'todo' | 'failed';

export interface Step {
  key: string;
  state: StepState;
  at: string;
}

const goodPosition = (p: Position | undefined): p is Position => !!p && isLngLat(p.lnglat) && Number.isFinite(Date.parse(p.time));
const goodEta = (e: Tracking['eta']) => !!e && Number.isFinite(Date.parse(e.time));
const goodStops = (n: unknown) => Number.isInteger(n) && (n as number) >= 0;

/** Reads the state from its JSON value; what is not well formed is left out rather than shown wrong. */
export function readTracking(v: unknown): Tracking | null {
  if (typeof v !== 'object' || v === null) return null;
  const t = { ...(v as Tracking) };
  if ((t.kind !== 'task' && t.kind !== 'trip') || typeof t.status !== 'string') return null;
  if (t.place && !isLngLat(t.place.lnglat)) t.place = { address: t.place.address };
  if (!goodPosition(t.position)) delete t.position;
  t.path = Array.isArray(t.path) ? t.path.filter(isLngLat) : [];
  if (!goodEta(t.eta)) delete t.eta;
  if (!goodStops(t.stops_before)) delete t.stops_before;
  t.photos = Array.isArray(t.photos) ? t.photos.filter((id) => typeof id === 'string') : [];
  if (typeof t.window !== 'object' || t.window === null) delete t.window;
  return t;
}

/** The state after a move; null when that cannot be told, and the whole state has to be asked for. */
export function moved(t: Tracking, v: unknown): Tracking | null {
  if (typeof v !== 'object' || v === null) return null;
  const { position, path_add, eta, stops_before, phase } = v as Pick<Tracking, 'position' | 'eta' | 'stops_before' | 'phase'> & { path_add?: unknown };
  if (!goodPosition(position) || !Array.isArray(path_add) || !path_add.every(isLngLat)) return null;
  const next: Tracking = { ...t, position, path: [...(t.path ?? []), ...path_add] };
  if (goodEta(eta)) next.eta = eta;
  else delete next.eta;
  if (goodStops(stops_before)) next.stops_before = stops_before;
  else delete next.stops_before;
  if (phase) next.phase = phase;
  else delete next.phase;
  return next;
}

const liveFor = 5 * 60_000 + 10_000; // the server's 5 minutes, and what the clocks may differ by

/** The state as it is to be shown now: the server says when a position is not live any more, but that may not get through. */
export function asOf(t: Tracking, now: number): Tracking {
  const p = t.position;
  if (!p || (p.live !== false && now - Date.parse(p.time) <= liveFor)) return t;
  const shown: Tracking = { ...t, position: { ...p, live: false } };
  delete shown.eta;
  return shown;
}

const active = (t: Tracking) => t.status === '1' || t.status === 'active';

/** Whether the driver goes somewhere else first: to where the goods are. */
export const fetching = (t: Tracking) => moving(t) && t.type === 3 && t.leg === 'pickup';

/** Whether the driver's position is too old to tell anything from. */
export const silent = (t: Tracking) => moving(t) && t.position?.live === false;

/** Whether the driver is at the place: by the phase, or by an expected time that is the moment at which it was worked out. */
export const atDoor = (t: Tracking) =>
  moving(t) && (t.phase === (t.type === 1 ? 'at_pickup' : 'at_drop') || (!silent(t) && t.eta !== undefined && t.eta.time === t.eta.computed_at));

export function ended(t: Tracking): boolean {
  return t.kind === 'trip' ? !active(t) : t.status === 'completed';
}

export function moving(t: Tracking): boolean {
  return !ended(t) && (t.kind === 'trip' || t.status === 'in_progress');
}

export function phase(t: Tracking): string {
  if (t.kind === 'trip') {
    if (active(t)) return atDoor(t) ? 'trip_there' : 'trip';
    return t.status === '3' || t.status === 'discarded' ? 'trip_cancelled' : 'trip_ended';
  }
  switch (t.status) {
    case 'assigned':
      return 'assigned';
    case 'in_progress':
      if (atDoor(t)) return t.type === 1 ? 'at_pickup' : 'at_door';
      if (t.phase === 'arriving') return 'arriving';
      if (t.type === 1) return 'to_pickup';
      if (!fetching(t)) return 'on_the_way';
      return t.phase === 'at_pickup' ? 'collecting' : 'fetching';
    case 'completed':
      if (t.outcome === 'cancelled') return 'cancelled';
      if (t.outcome === 'failed') return t.type === 1 ? 'not_collected' : 'not_delivered';
      return t.type === 1 ? 'collected' : 'delivered';
  }
  return 'ordered';
}

export function steps(t: Tracking): Step[] {
  const step = (key: string, at?: string): Step => ({ key, state: 'todo', at: at ?? '' });
  const ph = phase(t);
  if (t.kind === 'trip') {
    const on = step('on_the_way', t.started_at);
    const end = step(ph === 'trip_cancelled' ? 'cancelled' : 'trip_ended', t.ended_at);
    on.state = active(t) ? 'current' : 'done';
    end.state = active(t) ? 'todo' : ph === 'trip_ended' ? 'done' : 'failed';
    return [on, end];
  }

  const both = t.type === 3;
  const on = step('on_the_way', both ? '' : t.started_at);
  let all = [step('ordered', t.time), step('assigned'), ...(both ? [step('picked_up', t.picked_up_at)] : []), on];
  let reached = 0;
  if (t.picked_up_at) reached = 3;
  else if (t.started_at || t.status === 'in_progress') reached = 2;
  else if (t.status === 'assigned' || t.driver?.name) reached = 1;
  reached = Math.min(reached, all.length - 1);

  const succeeded = ph === 'delivered' || ph === 'collected';
  if (both && reached === 2 && !succeeded) all[2] = step('collecting', t.started_at);
  if (ended(t)) {
    const last = step(ph, t.ended_at);
    last.state = 'failed';
    if (succeeded) {
      reached = all.length - 1;
      last.state = 'done';
    }
    all = all.slice(0, reached + 1);
    for (const s of all) s.state = 'done';
    return [...all, last];
  }
  if (all[reached] === on && (ph === 'arriving' || atDoor(t))) all[reached] = step(ph === 'arriving' ? ph : 'at_door');
  all.forEach((s, i) => {
    if (i < reached) s.state = 'done';
    if (i === reached) s.state = 'current';
  });
  return [...all, step(t.type === 1 ? 'collected' : 'delivered')];
}

export function placeLabel(t: Tracking): string {
  if (t.kind === 'trip') return 'track.place.trip';
  return t.type === 1 ? 'track.place.from' : 'track.place.to';
}

export function etaLabel(t: Tracking): string {
  return fetching(t) ? 'track.eta.label.fetching' : 'track.eta.label';
}

/** How many stops of the driver's come first; undefined where the headline says more. */
export function stopsBefore(t: Tracking): number | undefined {
  return moving(t) && !atDoor(t) && t.phase !== 'arriving' ? t.stops_before : undefined;
}

export function detail(t: Tracking): string {
  if (ended(t) || atDoor(t)) return '';
  if (silent(t)) return 'track.detail.silent';
  if (fetching(t)) return 'track.detail.fetching';
  return moving(t) ? 'track.detail.on_the_way' : 'track.detail.' + phase(t);
}

/** The key of the word for how the task ended that this one tries again; '' when it tries none. */
export function earlier(t: Tracking): string {
  if (!t.earlier) return '';
  if (t.earlier.outcome === 'cancelled') return 'track.step.cancelled';
  return t.type === 1 ? 'track.step.not_collected' : 'track.step.not_delivered';
}

/** The digits of the PIN, apart: as one number nobody can follow it read out. */
export const pin = (t: Tracking) => [...(t.pin ?? '')].join('\u00a0');

/** Whether the customer can write to the driver. */
export const takesNotes = (t: Tracking) => t.kind === 'task' && !ended(t);

/** Whether a map has something to show: the driver, or the place if there are tiles around it. */
export function wantsMap(t: Tracking, tiles: boolean): boolean {
  return !ended(t) && ((moving(t) && t.position !== undefined) || (tiles && t.place?.lnglat !== undefined));
}
