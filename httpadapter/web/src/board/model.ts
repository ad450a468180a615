// What the board knows, as the API tells it (/v1/live), and nothing else: what was only asked for is not in here.

import type { LngLat } from '../shared/geo';
import type { Place } from '../shared/place';

/** A task as the application's lists have it. */
export interface Task {
  task_id: string;
  type: 1 | 2 | 3;
  status: 'created' | 'assigned' | 'in_progress' | 'completed';
  outcome?: '' | 'succeeded' | 'failed' | 'cancelled';
  phase?: string;
  reason?: string;
  reason_code?: string;
  order_id?: string;
  driver_id?: string;
  notes?: string;
  customer_note?: string;
  driver_note?: string;
  received_by?: string;
  pickup?: Place;
  drop?: Place;
  time?: string;
  window?: { from?: string; to?: string };
  promised?: string;
  late?: boolean;
  retry_of?: string;
  retried_by?: string;
  requires?: Record<string, string>;
  properties?: Record<string, string>;
  proof?: string[];
  proofs?: { id: string; kind: string; at: string }[];
  pin?: string;
  wrong_pins?: number;
  stuck?: Stuck[];
  waiting?: Waiting;
  created_at: string;
  updated_at?: string;
  assigned_at?: string;
  started_at?: string;
  picked_up_at?: string;
  pickup_arrived_at?: string;
  arrived_at?: string;
  completed_at?: string;
  erased_at?: string;
  version: number;
}

/** Since when a task waits for a driver, and why: which is told of lists of what waits, and elsewhere where it is plain. */
export interface Waiting {
  since: string;
  reason?: string;
}

/** A step that the phone of a driver could not deliver. */
export interface Stuck {
  driver_id: string;
  step: string;
  at: string;
  why: string;
}

export interface Driver {
  driver_id: string;
  name?: string;
  mobile?: string;
  email?: string;
  availability: boolean;
  lnglat?: LngLat;
  located_at?: string;
  accuracy?: number;
  battery?: number; // 0 to 1
  last_seen_at?: string;
  clock_skew?: number; // seconds that the phone's clock runs ahead (+) or behind (−)
  unread?: number; // what his phone sent that could not be read
  properties?: Record<string, string>;
  open_tasks: number;
  max_open_tasks?: number;
  version: number;
}

interface Position {
  driver_id: string;
  lnglat: LngLat;
  accuracy?: number;
  battery?: number;
  at: string;
}

/** Whether a task is the same to people: what the service marks by itself as time goes by is no change that anybody has made. */
export function alike(a: Task, b: Task): boolean {
  const of = ({ version: _, updated_at: __, late: ___, phase: ____, stuck: _____, waiting: ______, ...rest }: Task) => JSON.stringify(rest);
  return of(a) === of(b);
}

export const ms = (time: string | undefined): number => (time ? Date.parse(time) : NaN);

/** What an event was about, and what stood there before. */
export interface Change {
  kind: 'task' | 'driver' | 'position' | 'all' | 'ready';
  id: string;
  was?: Task | Driver;
}

/** Where a driver came to stand, and when. */
interface Stand {
  at: LngLat;
  since: number;
}

interface Rows {
  tasks: Map<string, Task>; // open
  drivers: Map<string, Driver>;
}

const empty = (): Rows => ({ tasks: new Map(), drivers: new Map() });
const stays = 60; // metres

/**
 * The rows of an application, kept up to date by the events of /v1/live, the answers of our own
 * calls, and what is read of the day so far. Nothing older replaces what is newer, whichever way it
 * came. A snapshot is put together aside and shown whole.
 */
export class World {
  /** Those that are over: the ones that the board has heard of. */
  readonly ended = new Map<string, Task>();
  /** The server's clock less ours, ms. */
  offset = 0;
  private rows = empty();
  private coming: Rows | null = empty();
  private readonly stands = new Map<string, Stand>();

  constructor(private readonly distance: (a: LngLat, b: LngLat) => number) {}

  get tasks(): ReadonlyMap<string, Task> {
    return this.rows.tasks;
  }

  get drivers(): ReadonlyMap<string, Driver> {
    return this.rows.drivers;
  }

  /** Whether a snapshot is on its way, which a connection that breaks off leaves in pieces. */
  get partial(): boolean {
    return this.coming !== null;
  }

  /** A snapshot follows. What is shown stays until it is whole. */
  begin(): void {
    this.coming = empty();
  }

  /** Takes an event of /v1/live. Null: it changes nothing. */
  apply(type: string, data: unknown): Change | null {
    switch (type) {
      case 'task':
        return this.task(data as Task, this.coming ?? this.rows);
      case 'driver':
        return this.driver(data as Driver, this.coming ?? this.rows);
      case 'position':
        return this.position(data as Position, this.coming ?? this.rows);
      case 'gone':
        return this.gone(data as { task_id?: string; driver_id?: string });
      case 'reset':
        this.begin();
        return null;
      case 'ready':
        return this.ready(data as { at: string });
    }
    return null;
  }

  /** Takes a row that a call of ours was answered with, or that was read apart from the stream. */
  learn(row: { task?: Task; driver?: Driver }): Change | null {
    let change: Change | null = null;
    for (const rows of this.coming ? [this.coming, this.rows] : [this.rows]) {
      if (row.task) change = this.task(row.task, rows);
      if (row.driver) change = this.driver(row.driver, rows);
    }
    return change;
  }

  /** Since when a driver has stood where he is, as far as the board has seen. NaN: not known. */
  standsSince(driver: string): number {
    return this.stands.get(driver)?.since ?? NaN;
  }

  /** Forgets what ended before a moment and needs nobody: a board that is open for weeks would hold all of it. It tells whether there was any. */
  forget(before: number, left: (t: Task) => boolean): boolean {
    const had = this.ended.size;
    for (const [id, t] of this.ended) if (ms(t.completed_at) < before && (t.outcome !== 'failed' || t.retried_by || left(t)) && !t.stuck?.length) this.ended.delete(id);
    return this.ended.size < had;
  }

  private task(t: Task, rows: Rows): Change | null {
    const was = rows.tasks.get(t.task_id) ?? this.ended.get(t.task_id);
    if (was && was.version > t.version) return null;
    // The same version may have become late, which is no change of it.
    if (was && was.version === t.version && was.late === t.late) return null;
    if (t.status === 'completed') {
      rows.tasks.delete(t.task_id);
      this.ended.set(t.task_id, t);
    } else {
      this.ended.delete(t.task_id);
      rows.tasks.set(t.task_id, t);
    }
    return rows === this.coming ? null : { kind: 'task', id: t.task_id, ...(was ? { was } : {}) };
  }

  private driver(d: Driver, rows: Rows): Change | null {
    const was = rows.drivers.get(d.driver_id);
    if (was && was.version > d.version) return null;
    const older = was && ms(was.located_at) > ms(d.located_at);
    const lastSeen = was && ms(was.last_seen_at) > ms(d.last_seen_at) ? was.last_seen_at : d.last_seen_at;
    const next = { ...d, ...(older ? { lnglat: was.lnglat, located_at: was.located_at, accuracy: was.accuracy } : {}), ...(lastSeen ? { last_seen_at: lastSeen } : {}) };
    rows.drivers.set(d.driver_id, next);
    if (next.lnglat) this.stand(d.driver_id, next.lnglat, ms(next.located_at));
    return rows === this.coming ? null : { kind: 'driver', id: d.driver_id, ...(was ? { was } : {}) };
  }

  private position(p: Position, rows: Rows): Change | null {
    const was = rows.drivers.get(p.driver_id);
    if (!was || ms(was.located_at) >= ms(p.at)) return null;
    const seen = ms(was.last_seen_at) > ms(p.at) ? was.last_seen_at : p.at;
    rows.drivers.set(p.driver_id, { ...was, lnglat: p.lnglat, accuracy: p.accuracy, battery: p.battery, located_at: p.at, last_seen_at: seen });
    this.stand(p.driver_id, p.lnglat, ms(p.at));
    return rows === this.coming ? null : { kind: 'position', id: p.driver_id, was };
  }

  private stand(driver: string, at: LngLat, time: number): void {
    const s = this.stands.get(driver);
    if (!s || this.distance(s.at, at) > stays) this.stands.set(driver, { at, since: time });
  }

  private gone(g: { task_id?: string; driver_id?: string }): Change | null {
    const all = this.coming ? [this.coming, this.rows] : [this.rows];
    if (g.task_id !== undefined) {
      for (const r of all) r.tasks.delete(g.task_id);
      this.ended.delete(g.task_id);
      return { kind: 'task', id: g.task_id };
    }
    if (g.driver_id === undefined) return null;
    for (const r of all) r.drivers.delete(g.driver_id);
    this.stands.delete(g.driver_id);
    return { kind: 'driver', id: g.driver_id };
  }

  private ready(r: { at: string }): Change | null {
    const at = ms(r.at);
    if (Number.isFinite(at)) this.offset = Math.abs(at - Date.now()) < 2_000 ? 0 : at - Date.now();
    if (!this.coming) return { kind: 'ready', id: '' };
    // An answer of ours may be newer than what the snapshot was made of, and has been taken into it.
    this.rows = this.coming;
    this.coming = null;
    return { kind: 'all', id: '' };
  }
}

/** What a person knows a task by. */
export const nameOf = (t: Task): string => (t.order_id ? '#' + t.order_id.replace(/^#/, '') : target(t)?.address || target(t)?.customer?.name || t.task_id);

/** Where a task goes next. */
export function target(t: Task): Place | undefined {
  if (t.type === 1 || (t.type === 3 && !t.picked_up_at && t.pickup)) return t.pickup ?? t.drop;
  return t.drop ?? t.pickup;
}

/** Where a task ends. */
export const place = (t: Task): Place | undefined => (t.type === 1 ? t.pickup : t.drop) ?? t.pickup;

export const driverName = (d: Driver | undefined, id: string): string => d?.name || id;

/** What a driver is at. Silent says more than the others, and off duty less. */
export type DriverState = 'free' | 'busy' | 'standing' | 'silent' | 'off';

export interface Rules {
  silentAfter: number; // ms since the last sign of life
  standsAfter: number; // ms at one place with work under way
}

export function stateOf(d: Driver, world: Pick<World, 'standsSince'>, now: number, rules: Rules): DriverState {
  if (!d.availability && d.open_tasks === 0) return 'off';
  if (!(now - ms(d.last_seen_at) <= rules.silentAfter)) return 'silent';
  if (d.open_tasks === 0) return 'free';
  return now - world.standsSince(d.driver_id) >= rules.standsAfter ? 'standing' : 'busy';
}

/** Whether a task is late, by the server's word or by the promise that has passed meanwhile. */
export const isLate = (t: Task, now: number): boolean => t.status !== 'completed' && (t.late === true || ((t.status !== 'created' || t.waiting !== undefined) && ms(t.promised) < now));
