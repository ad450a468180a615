// The driver's world as the API tells it, and what his unsent actions make of it.

import type { LngLat } from '../shared/geo';
import type { Place } from '../shared/place';
import { legsOf, rebased, routeOf } from './route';

export type ProofKind = 'photo' | 'signature' | 'name' | 'pin';
export type FileKind = 'photo' | 'signature';

/** A file that was given as evidence. */
export interface Proof {
  id: string; // '' while it is not sent
  kind: FileKind;
  at: string;
}

export interface Task {
  task_id: string;
  type: 1 | 2 | 3;
  status: 'created' | 'assigned' | 'in_progress' | 'completed';
  stop?: number; // which of the driver's stops is its next; 1 is the first
  outcome?: '' | 'succeeded' | 'failed' | 'cancelled';
  reason?: string;
  reason_code?: string;
  proof?: ProofKind[]; // what it asks for
  proofs?: Proof[]; // the files that were given
  received_by?: string;
  time?: string;
  window?: { from?: string; to?: string };
  promised?: string;
  late?: boolean;
  notes?: string;
  customer_note?: string;
  order_id?: string;
  pickup?: Place;
  drop?: Place;
  created_at?: string;
  started_at?: string;
  pickup_arrived_at?: string;
  picked_up_at?: string;
  arrived_at?: string; // at the drop
  completed_at?: string;
}

export type Leg = 'pickup' | 'drop';

/** A stop of the route, as the server counts them. */
export interface Stop {
  task_id: string;
  leg: Leg;
}

export interface Trip {
  _id: string;
  tracking_id: string;
  status: string; // '1' active
  created_at?: string;
  started_at?: string;
  start_location?: string;
}

export interface TripRequest {
  tracking_id: string;
  message?: string;
  dest?: Place;
  desc_html?: string;
  created_at?: string;
}

export interface Driver {
  driver_id: string;
  name?: string;
  availability?: boolean;
  created_at?: string;
  clock_skew?: number; // seconds that the phone's fixes run ahead (+) or behind (−); absent while it hardly does
  unread?: number; // what a phone app sent that could not be read, since something last was
}

export interface Fix {
  lnglat: LngLat;
  time: string;
  accuracy?: number;
  speed?: number;
  bearing?: number;
  battery?: number;
}

/**
 * What the driver did. `at` is when, by the server's clock as far as the phone knows it; `held` that
 * it can still be taken back; `about` what he knows its task or trip by: the order's number, else
 * the address. It is noted then, as the task may be somebody else's before the step is refused.
 */
export type Action = { at: string; held?: boolean; about?: string } & (
  | { type: 'availability'; availability: boolean; rest?: boolean } // rest: off duty, and the word for it is a break
  | { type: 'start' | 'arrive' | 'pickup'; task_id: string; lnglat?: LngLat }
  | { type: 'complete'; task_id: string; lnglat?: LngLat; outcome: 'succeeded' | 'failed'; reason?: string; reason_code?: string; received_by?: string; note?: string; pin?: string }
  | { type: 'proof'; task_id: string; kind: FileKind; file: number } // the file's bytes are in the store
  | { type: 'decline'; task_id: string; reason?: string; reason_code?: string }
  | { type: 'undo'; task_id: string; lnglat?: LngLat; step: UndoStep }
  | { type: 'reorder'; from: Stop[]; to: Stop[] } // the route as it was seen, and as it is to be
  | { type: 'trip_start'; tracking_id: string; lnglat?: LngLat }
  | { type: 'trip_stop'; tracking_id: string; trip_id?: string; lnglat?: LngLat }
);

export interface World {
  duty: boolean;
  rest?: string; // since when he has a break: to the server he is off duty
  reasons?: string[]; // the words that the server takes as a reason_code
  tasks: Task[];
  route?: Stop[]; // absent until it was read
  reorder?: boolean; // whether he may change it
  undoFor?: number; // s that the server lets him take a step back
  trips: Trip[];
  requests: TripRequest[];
}

export interface ShownTask extends Task {
  pending?: boolean; // a step of it waits to be sent
  held?: boolean; // its end can still be taken back
}

export interface ShownTrip extends Trip {
  pending?: boolean;
}

export interface Shown {
  duty: boolean;
  rest?: string;
  tasks: ShownTask[];
  route: Stop[];
  trips: ShownTrip[];
  requests: TripRequest[];
}

/**
 * The world as it will be once the actions have been sent: the driver must see what he has done, also without a network. The server has taken
 * those in `taken` already, but the world was read before that: without them a step that was sent would be undone on the screen for a moment.
 */
export function apply(world: World, actions: readonly Action[], taken: readonly Action[] = []): Shown {
  const shown: Shown = {
    duty: world.duty,
    rest: world.duty ? undefined : world.rest,
    tasks: world.tasks.map((t) => ({ ...t })),
    route: [...(world.route ?? [])],
    trips: world.trips.filter((t) => t.status === '1').map((t) => ({ ...t })),
    requests: [...world.requests],
  };
  for (const [i, a] of [...taken, ...actions].entries()) {
    const pending = i >= taken.length;
    switch (a.type) {
      case 'availability':
        shown.duty = a.availability;
        shown.rest = a.rest ? a.at : undefined;
        break;
      case 'trip_start':
        if (!shown.trips.some((t) => t.tracking_id === a.tracking_id)) {
          shown.trips.unshift({ _id: '', tracking_id: a.tracking_id, status: '1', started_at: a.at, pending });
        }
        shown.requests = shown.requests.filter((r) => r.tracking_id !== a.tracking_id);
        break;
      case 'trip_stop':
        shown.trips = shown.trips.filter((t) => t.tracking_id !== a.tracking_id);
        break;
      case 'reorder':
        shown.route = rebased(a.from, a.to, routeOf(openTasks(shown.tasks), shown.route)) ?? shown.route;
        break;
      default: {
        const task = shown.tasks.find((t) => t.task_id === a.task_id);
        if (!task) break;
        if (a.type === 'decline') shown.tasks = shown.tasks.filter((t) => t !== task || t.status !== 'assigned');
        else if (a.type === 'proof') task.proofs = [...(task.proofs ?? []), { id: '', kind: a.kind, at: a.at }];
        else if (takeStep(task, a)) Object.assign(task, { pending: pending && !a.held, held: a.held });
        else break;
        // What is taken back is the next stop again.
        if (a.type === 'undo') {
          const stop: Stop = { task_id: task.task_id, leg: legsOf(task)[0]! };
          shown.route = [stop, ...shown.route.filter((s) => s.task_id !== stop.task_id || s.leg !== stop.leg)];
        }
      }
    }
  }
  shown.route = routeOf(openTasks(shown.tasks), shown.route);
  return shown;
}

type TaskAction = Extract<Action, { task_id: string }>;

/** Takes a step on a task. False: its state does not allow it, or it has been taken. */
function takeStep(t: Task, a: Exclude<TaskAction, { type: 'decline' | 'proof' }>): boolean {
  const underWay = t.status === 'in_progress';
  switch (a.type) {
    case 'start':
      if (t.status !== 'assigned') return false;
      Object.assign(t, { status: 'in_progress', started_at: a.at });
      return true;
    case 'arrive':
      if (!underWay || arrivedAt(t)) return false;
      Object.assign(t, legsOf(t)[0] === 'pickup' ? { pickup_arrived_at: a.at } : { arrived_at: a.at });
      return true;
    case 'pickup':
      if (!underWay || t.picked_up_at) return false;
      Object.assign(t, { picked_up_at: a.at });
      return true;
    case 'complete':
      if (!underWay) return false;
      Object.assign(t, { status: 'completed', outcome: a.outcome, reason: a.reason ?? '', reason_code: a.reason_code ?? '', completed_at: a.at });
      return true;
    case 'undo':
      if (lastStep(t) !== a.step) return false;
      if (a.step === 'complete') Object.assign(t, { status: 'in_progress', outcome: '', reason: '', reason_code: '', completed_at: undefined });
      else Object.assign(t, { picked_up_at: undefined, arrived_at: undefined });
      if (a.step === 'start') Object.assign(t, { status: 'assigned', started_at: undefined, pickup_arrived_at: undefined });
      return true;
  }
}

/** When the driver came to where the task goes on. */
export function arrivedAt(t: Task): string | undefined {
  return legsOf(t)[0] === 'pickup' ? t.pickup_arrived_at : t.arrived_at;
}

/** The step that would be taken back. */
export function lastStep(t: Task): UndoStep | null {
  if (t.status === 'completed') return 'complete';
  if (t.status !== 'in_progress') return null;
  return t.picked_up_at ? 'pickup' : 'start';
}

/** Whether the phone's position is to be sent: on duty, on a task under way, or on a trip. */
export function onTrip(s: Shown): boolean {
  return s.trips.length > 0 || s.tasks.some((t) => t.status === 'in_progress');
}

/** Open tasks, and those whose end can still be taken back. */
export function openTasks<T extends ShownTask>(tasks: readonly T[]): T[] {
  return tasks.filter((t) => t.status === 'assigned' || t.status === 'in_progress' || t.held);
}

/** Where the task goes on: a pickup and drop goes to the pickup first. */
export function nextPlace(t: Task): { key: Leg; place: Place } | null {
  const key = legsOf(t)[0]!;
  const place = t[key];
  return place ? { key, place } : null;
}

export type StepName = 'start' | 'arrive' | 'pickup' | 'complete';

/** The steps that can be taken back. */
export type UndoStep = Exclude<StepName, 'arrive'>;

/** When the application wants it, if it said so: else the time is that of the task's creation. */
export function wantedAt(t: Task): number | null {
  const at = Date.parse(t.time ?? '');
  return Number.isFinite(at) && Math.abs(at - Date.parse(t.created_at ?? '')) > 60_000 ? at : null;
}

/** A step that the server refused. It is kept until the driver has seen it. */
export interface Refused {
  id: number; // of its entry in the outbox
  driver: string;
  action: Action;
  status?: number; // of the answer
  field?: string; // that is to blame
  message: string; // the server's
}

/** The next step that the driver can take on a task, or null. */
export function nextStep(t: Task): StepName | null {
  if (t.status === 'assigned') return 'start';
  if (t.status !== 'in_progress') return null;
  if (!arrivedAt(t)) return 'arrive';
  return legsOf(t).length === 2 ? 'pickup' : 'complete';
}

/** Whether a measured position is worth keeping after the last one kept. Denser on a trip, where a customer watches. */
export function worthKeeping(last: { lnglat: LngLat; ms: number } | null, next: { lnglat: LngLat; ms: number }, trip: boolean, metres: number): boolean {
  if (!last) return true;
  const dt = next.ms - last.ms;
  if (dt <= 0) return false;
  return trip ? dt >= 10_000 || (dt >= 1_500 && metres >= 4) : dt >= 60_000 || (dt >= 8_000 && metres >= 20);
}
