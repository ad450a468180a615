// The order of a driver's stops: the server's list, what the phone makes of it, and the stops on the
// screen, of which one may be several parcels for one address.

import { distance } from '../shared/geo';
import type { Leg, ShownTask, Stop, Task } from './model';
import type { Place } from '../shared/place';

/** The legs of a task that are ahead, the present one first. */
export function legsOf(t: Task): Leg[] {
  if (t.type === 1) return ['pickup'];
  return t.type === 3 && !t.picked_up_at ? ['pickup', 'drop'] : ['drop'];
}

const is = (a: Stop, b: Stop) => a.task_id === b.task_id && a.leg === b.leg;
const has = (list: readonly Stop[], s: Stop) => list.some((x) => is(x, s));

/** Whether two orders are the same. */
export function sameOrder(a: readonly Stop[], b: readonly Stop[]): boolean {
  return a.length === b.length && a.every((s, i) => is(s, b[i]!));
}

/**
 * The route with exactly the stops that are ahead of the tasks: as it is known, without what is no
 * more, and with what it lacks at its end, older tasks first.
 */
export function routeOf(tasks: readonly Task[], known: readonly Stop[]): Stop[] {
  const ahead = [...tasks]
    .sort((a, b) => (a.stop ?? Infinity) - (b.stop ?? Infinity) || (a.task_id < b.task_id ? -1 : 1))
    .flatMap((t) => legsOf(t).map((leg) => ({ task_id: t.task_id, leg })));
  const left = new Map(ahead.map((s) => [s.leg + s.task_id, s])); // of up to 1,000
  const kept = known.filter((s) => left.delete(s.leg + s.task_id));
  return [...kept, ...left.values()];
}

/**
 * What becomes of the driver's order `to`, made from `from`, on the route as it is now: without the
 * stops that are no more, and with those that have come since at its end. Null when somebody else
 * has changed the order meanwhile: then it is no longer known what the driver would want.
 */
export function rebased(from: readonly Stop[], to: readonly Stop[], now: readonly Stop[]): Stop[] | null {
  const order = [...to.filter((s) => has(now, s)), ...now.filter((s) => !has(to, s))];
  if (sameOrder(order, now)) return order; // it has been taken before, and the answer was lost
  const was = from.filter((s) => has(now, s));
  return sameOrder(was, now.filter((s) => has(from, s))) ? order : null;
}

/** A stop as the driver sees it. */
export interface ShownStop {
  key: string;
  leg: Leg;
  place: Place;
  tasks: ShownTask[];
}

const near = 25; // metres within which two places are one

const folded = (address: string | undefined) =>
  (address ?? '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[\s,.;]+/g, ' ')
    .trim();

/** Whether two places are one door: by the same address, or so near that nobody drives between them. */
export function samePlace(a: Place, b: Place): boolean {
  if (a.lnglat && b.lnglat && distance(a.lnglat, b.lnglat) > 1_000) return false; // a street of that name in two towns
  const address = folded(a.address);
  if (address !== '' && address === folded(b.address)) return true;
  return a.lnglat !== undefined && b.lnglat !== undefined && distance(a.lnglat, b.lnglat) <= near;
}

/** The stops of a route as the driver sees them: neighbours for one place and of one kind are one. */
export function stopsOf(tasks: readonly ShownTask[], route: readonly Stop[]): ShownStop[] {
  const byId = new Map(tasks.map((t) => [t.task_id, t]));
  const stops: ShownStop[] = [];
  for (const { task_id, leg } of route) {
    const task = byId.get(task_id);
    const place = task?.[leg];
    if (!task || !place) continue;
    const last = stops.at(-1);
    if (last && last.leg === leg && samePlace(last.place, place)) last.tasks.push(task);
    else stops.push({ key: leg + ' ' + task_id, leg, place, tasks: [task] });
  }
  return stops;
}

/** The stop to go to: the first one under way, as the server counts it, or else the first. */
export function nextStop(stops: readonly ShownStop[]): ShownStop | undefined {
  return stops.find((s) => s.tasks.some((t) => t.status === 'in_progress' || t.held)) ?? stops[0];
}

/** The route that shown stops make. */
export function routeFrom(stops: readonly ShownStop[]): Stop[] {
  return stops.flatMap((s) => s.tasks.map((t) => ({ task_id: t.task_id, leg: s.leg })));
}

/** Whether stop a has to come before stop b: it is the pickup of what b delivers. */
function before(a: ShownStop, b: ShownStop): boolean {
  return a.leg === 'pickup' && b.leg === 'drop' && a.tasks.some((t) => b.tasks.some((u) => u.task_id === t.task_id));
}

/** Moves a stop to another place, as far as pickups stay before their drops. */
export function moved(stops: readonly ShownStop[], from: number, to: number): ShownStop[] {
  const stop = stops[from]!;
  const step = to < from ? -1 : 1;
  let at = from;
  while (at !== to) {
    const other = stops[at + step];
    if (!other || (step < 0 ? before(other, stop) : before(stop, other))) break;
    at += step;
  }
  const rest = stops.filter((s) => s !== stop);
  return [...rest.slice(0, at), stop, ...rest.slice(at)];
}
