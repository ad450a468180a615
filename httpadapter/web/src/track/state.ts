// What /track/{token}/state says, and what the page makes of it. The server renders the same facts (facts.go) for those without
// JavaScript; testdata/phases.json holds both to the same answers.

import { isLngLat, type LngLat } from '../shared/geo';

export interface Tracking {
  kind: 'task' | 'trip';
  type?: number;
  status: string;
  outcome?: string;
  order_id?: string;
  driver?: { name?: string };
  place?: { address?: string; lnglat?: LngLat };
  time?: string;
  started_at?: string;
  picked_up_at?: string;
  ended_at?: string;
  position?: { lnglat: LngLat; time: string; bearing?: number; live?: boolean };
  path?: LngLat[];
  eta?: { time: string; computed_at?: string; source?: string };
}

export type StepState = 'done' | 'current' | 'todo' | 'failed';

export interface Step {
  key: string;
  state: StepState;
  at: string;
}

/** Reads the state from its JSON value; what is not well formed is left out rather than shown wrong. */
export function readTracking(v: unknown): Tracking | null {
  if (typeof v !== 'object' || v === null) return null;
  const t = { ...(v as Tracking) };
  if ((t.kind !== 'task' && t.kind !== 'trip') || typeof t.status !== 'string') return null;
  if (t.place && !isLngLat(t.place.lnglat)) t.place = { address: t.place.address };
  if (t.position && !(isLngLat(t.position.lnglat) && Number.isFinite(Date.parse(t.position.time)))) delete t.position;
  t.path = Array.isArray(t.path) ? t.path.filter(isLngLat) : [];
  if (t.eta && !Number.isFinite(Date.parse(t.eta.time))) delete t.eta;
  return t;
}

const active = (t: Tracking) => t.status === '1' || t.status === 'active';
const toPickup = (t: Tracking) => t.type === 1 || (t.type === 3 && !t.picked_up_at);

export function ended(t: Tracking): boolean {
  return t.kind === 'trip' ? !active(t) : t.status === 'completed';
}

export function moving(t: Tracking): boolean {
  return !ended(t) && (t.kind === 'trip' || t.status === 'in_progress');
}

export function phase(t: Tracking): string {
  if (t.kind === 'trip') {
    if (active(t)) return 'trip';
    return t.status === '3' || t.status === 'discarded' ? 'trip_cancelled' : 'trip_ended';
  }
  switch (t.status) {
    case 'assigned':
      return 'assigned';
    case 'in_progress':
      return toPickup(t) ? 'to_pickup' : 'on_the_way';
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
    on.state = ph === 'trip' ? 'current' : 'done';
    end.state = ph === 'trip' ? 'todo' : ph === 'trip_ended' ? 'done' : 'failed';
    return [on, end];
  }

  let all = [step('ordered', t.time), step('assigned'), step('on_the_way', t.started_at)];
  if (t.type === 3) all.push(step('picked_up', t.picked_up_at));
  let reached = 0;
  if (t.picked_up_at) reached = 3;
  else if (t.started_at || t.status === 'in_progress') reached = 2;
  else if (t.status === 'assigned' || t.driver?.name) reached = 1;
  reached = Math.min(reached, all.length - 1);

  if (ended(t)) {
    const last = step(ph, t.ended_at);
    last.state = 'failed';
    if (ph === 'delivered' || ph === 'collected') {
      reached = all.length - 1;
      last.state = 'done';
    }
    all = all.slice(0, reached + 1);
    for (const s of all) s.state = 'done';
    return [...all, last];
  }
  all.forEach((s, i) => {
    if (i < reached) s.state = 'done';
    if (i === reached) s.state = 'current';
  });
  return [...all, step(t.type === 1 ? 'collected' : 'delivered')];
}

export function placeLabel(t: Tracking): string {
  if (t.kind === 'trip') return 'track.place.trip';
  return toPickup(t) ? 'track.place.from' : 'track.place.to';
}

/** What is said of a driver who is at the place. */
export function here(t: Tracking): string {
  return t.kind === 'task' && toPickup(t) ? 'track.here.pickup' : 'track.here';
}

export function detail(t: Tracking): string {
  if (ended(t)) return '';
  return moving(t) ? 'track.detail.on_the_way' : 'track.detail.' + phase(t);
}

/** Whether a map has something to show: the driver, or the place if there are tiles around it. */
export function wantsMap(t: Tracking, tiles: boolean): boolean {
  return !ended(t) && ((moving(t) && t.position !== undefined) || (tiles && t.place?.lnglat !== undefined));
}
