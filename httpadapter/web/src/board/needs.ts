// What needs somebody's attention, and in what order: pure, so that it can be held to examples.

import { driverName, isLate, ms, stateOf, type Driver, type DriverState, type Rules, type Stuck, type Task, type Waiting, type World } from './model';

export type Why = 'late' | 'waiting' | 'failed' | 'silent' | 'stuck';

export interface Need {
  key: string; // stays while the same is the matter
  why: Why;
  since: number; // ms; NaN: not known
  task?: Task;
  driver?: Driver;
  reason?: string; // why it waits
  open: number; // what a silent driver has open
  stuck?: Stuck; // what a phone could not deliver
}

/** A driver as /v1/task/candidates lists them. */
export interface Candidate {
  driver_id: string;
  name?: string;
  distance?: number; // metres
  open_tasks: number;
  fit: string;
}

const order: Why[] = ['late', 'waiting', 'failed', 'silent', 'stuck'];
const patience = 3 * 60_000; // ms that a task may wait before somebody has to know

/** Since when a task waits, and why as far as that was read: what the task says itself is newer. */
export function whyWaits(t: Task, reasons: ReadonlyMap<string, string>): Waiting | null {
  if (!t.waiting) return null;
  const reason = t.waiting.reason ?? reasons.get(t.task_id);
  return { since: t.waiting.since, ...(reason ? { reason } : {}) };
}

/** The key of the need that a failed task is. */
export const failed = (t: Task): string => 'failed ' + t.task_id;

/** Takes in what is left as it is, and forgets what was left longest ago, but for what the board still knows and would ask about again. */
export function leave(left: Set<string>, key: string, world: Pick<World, 'ended'>, atMost = 500): void {
  left.add(key);
  const known = new Set([...world.ended.values()].map(failed));
  for (const old of left) if (left.size > atMost && !known.has(old)) left.delete(old);
}

/** What a list of what waits tells, apart: the rows as the stream has them, and why each waits, which is so at that moment alone and belongs to no version. */
export function told(list: readonly Task[]): { tasks: Task[]; reasons: Map<string, string> } {
  const tasks = list.map((t) => (t.waiting ? { ...t, waiting: { since: t.waiting.since } } : t));
  return { tasks, reasons: new Map(list.flatMap((t) => (t.waiting?.reason ? [[t.task_id, t.waiting.reason]] : []))) };
}

/** By urgency: the kinds in their order, of each the one first that has been so for longest. Each task is there once, and once more for what a phone could not deliver of it. */
export function needs(world: Pick<World, 'tasks' | 'ended' | 'drivers' | 'standsSince'>, reasons: ReadonlyMap<string, string>, dismissed: ReadonlySet<string>, now: number, rules: Rules): Need[] {
  const list: Need[] = [];
  for (const t of world.tasks.values()) {
    const w = whyWaits(t, reasons);
    const reason = w?.reason ? { reason: w.reason } : {};
    if (isLate(t, now)) list.push({ key: 'late ' + t.task_id, why: 'late', since: ms(t.promised), task: t, open: 0, ...reason });
    else if (w && w.reason !== 'window' && now - ms(w.since) > patience) list.push({ key: 'waiting ' + t.task_id, why: 'waiting', since: ms(w.since), task: t, open: 0, ...reason });
  }
  for (const t of world.ended.values()) {
    const key = failed(t);
    if (t.outcome === 'failed' && !t.retried_by && !dismissed.has(key)) list.push({ key, why: 'failed', since: ms(t.completed_at), task: t, open: 0 });
  }
  for (const t of [...world.tasks.values(), ...world.ended.values()]) {
    const stuck = t.stuck?.at(-1);
    if (stuck) list.push({ key: `stuck ${t.task_id} ${stuck.driver_id} ${stuck.step} ${stuck.at}`, why: 'stuck', since: ms(stuck.at), task: t, stuck, open: 0 });
  }
  for (const d of world.drivers.values()) {
    if (d.open_tasks === 0 || stateOf(d, world, now, rules) !== 'silent') continue;
    list.push({ key: 'silent ' + d.driver_id, why: 'silent', since: ms(d.last_seen_at), driver: d, open: d.open_tasks });
  }
  const first = (n: Need) => (Number.isFinite(n.since) ? n.since : 0);
  return list.sort((a, b) => order.indexOf(a.why) - order.indexOf(b.why) || first(a) - first(b) || (a.key < b.key ? -1 : 1));
}

/** When the window of a task begins, or what stands in for that. */
const begins = (t: Task): number => ms(t.window?.from ?? t.window?.to ?? t.promised ?? t.created_at);

/** What nobody has yet, and is not among the needs: by window. */
export function unassigned(world: Pick<World, 'tasks'>, listed: readonly Need[]): Task[] {
  const there = new Set(listed.map((n) => n.task?.task_id));
  return [...world.tasks.values()].filter((t) => t.status === 'created' && !there.has(t.task_id)).sort((a, b) => begins(a) - begins(b) || (a.task_id < b.task_id ? -1 : 1));
}

/** Whom to give a task to: the nearest who fits, else who has only too much to do or is only too far. Never the one who has it. */
export function best(t: Task, list: readonly Candidate[]): Candidate | null {
  const others = list.filter((c) => c.driver_id !== t.driver_id);
  for (const fit of ['yes', 'busy', 'too_far']) {
    const found = others.find((c) => c.fit === fit);
    if (found) return found;
  }
  return null;
}

/** Drivers in the order of the list: those on duty or with work, then the others, by name. It does not follow their states, or rows would move under the hand. */
export function rows(world: Pick<World, 'drivers' | 'standsSince'>, now: number, rules: Rules): { driver: Driver; state: DriverState }[] {
  return [...world.drivers.values()]
    .map((driver) => ({ driver, state: stateOf(driver, world, now, rules) }))
    .sort((a, b) => Number(a.state === 'off') - Number(b.state === 'off') || byName.compare(called(a.driver), called(b.driver)) || (a.driver.driver_id < b.driver.driver_id ? -1 : 1));
}

const called = (d: Driver): string => driverName(d, d.driver_id);
const byName = new Intl.Collator();

/** How far each driver is with what today holds for him: what he has ended, and all of it. */
export function days(world: Pick<World, 'tasks' | 'ended'>, since: number): Map<string, { done: number; all: number }> {
  const by = new Map<string, { done: number; all: number }>();
  const add = (driver: string | undefined, done: number) => {
    if (!driver) return;
    const day = by.get(driver) ?? { done: 0, all: 0 };
    day.done += done;
    day.all++;
    by.set(driver, day);
  };
  for (const t of world.tasks.values()) add(t.driver_id, 0);
  for (const t of world.ended.values()) if (ms(t.completed_at) >= since && t.outcome !== 'cancelled') add(t.driver_id, 1);
  return by;
}
