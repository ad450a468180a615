// The driver's world as the API tells it, and what his unsent actions make of it.

import type { LngLat } from '../shared/geo';

export interface Contact {
  name?: string;
  mobile?: string;
}

export interface Place {
  lnglat?: LngLat;
  address?: string;
  customer?: Contact;
}

export interface Task {
  task_id: string;
  type: 1 | 2 | 3;
  status: 'created' | 'assigned' | 'in_progress' | 'completed';
  outcome?: '' | 'succeeded' | 'failed' | 'cancelled';
  reason?: string;
  time?: string;
  notes?: string;
  order_id?: string;
  pickup?: Place;
  drop?: Place;
  created_at?: string;
  started_at?: string;
  picked_up_at?: string;
  completed_at?: string;
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
}

export interface Fix {
  lnglat: LngLat;
  time: string;
  accuracy?: number;
  speed?: number;
  bearing?: number;
  battery?: number;
}

/** What the driver did. `at` is when, by the server's clock as far as the phone knows it. */
export type Action = { at: string } & (
  | { type: 'availability'; availability: boolean }
  | { type: 'start' | 'pickup'; task_id: string; lnglat?: LngLat }
  | { type: 'complete'; task_id: string; lnglat?: LngLat; outcome: 'succeeded' | 'failed'; reason?: string }
  | { type: 'decline'; task_id: string; reason?: string }
  | { type: 'trip_start'; tracking_id: string; lnglat?: LngLat }
  | { type: 'trip_stop'; tracking_id: string; trip_id?: string; lnglat?: LngLat }
);

export interface World {
  duty: boolean;
  tasks: Task[];
  trips: Trip[];
  requests: TripRequest[];
}

export interface ShownTask extends Task {
  pending?: boolean; // a step of it waits to be sent
}

export interface ShownTrip extends Trip {
  pending?: boolean;
}

export interface Shown {
  duty: boolean;
  tasks: ShownTask[];
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
    tasks: world.tasks.map((t) => ({ ...t })),
    trips: world.trips.filter((t) => t.status === '1').map((t) => ({ ...t })),
    requests: [...world.requests],
  };
  for (const [i, a] of [...taken, ...actions].entries()) {
    const pending = i >= taken.length;
    if (a.type === 'availability') {
      shown.duty = a.availability;
      continue;
    }
    if (a.type === 'trip_start') {
      if (!shown.trips.some((t) => t.tracking_id === a.tracking_id)) {
        shown.trips.unshift({ _id: '', tracking_id: a.tracking_id, status: '1', started_at: a.at, pending });
      }
      shown.requests = shown.requests.filter((r) => r.tracking_id !== a.tracking_id);
      continue;
    }
    if (a.type === 'trip_stop') {
      shown.trips = shown.trips.filter((t) => t.tracking_id !== a.tracking_id);
      continue;
    }
    const task = shown.tasks.find((t) => t.task_id === a.task_id);
    if (!task) continue;
    switch (a.type) {
      case 'start':
        if (task.status !== 'assigned') break;
        Object.assign(task, { status: 'in_progress', started_at: a.at, pending });
        break;
      case 'pickup':
        if (task.status !== 'in_progress' || task.picked_up_at) break;
        Object.assign(task, { picked_up_at: a.at, pending });
        break;
      case 'complete':
        if (task.status !== 'in_progress') break;
        Object.assign(task, { status: 'completed', outcome: a.outcome, reason: a.reason ?? '', completed_at: a.at, pending });
        break;
      case 'decline':
        shown.tasks = shown.tasks.filter((t) => t !== task || t.status !== 'assigned');
        break;
    }
  }
  return shown;
}

/** Whether the phone's position is to be sent: on duty, on a task under way, or on a trip. */
export function onTrip(s: Shown): boolean {
  return s.trips.length > 0 || s.tasks.some((t) => t.status === 'in_progress');
}

/** Open tasks, those under way first and then the oldest assignment first. */
export function openTasks(tasks: readonly ShownTask[]): ShownTask[] {
  const rank = (t: Task) => (t.status === 'in_progress' ? 0 : 1);
  return tasks
    .filter((t) => t.status === 'assigned' || t.status === 'in_progress')
    .sort((a, b) => rank(a) - rank(b) || (a.created_at ?? '').localeCompare(b.created_at ?? ''));
}

/** Where the task goes on: a pickup and drop goes to the pickup first. */
export function nextPlace(t: Task): { key: 'pickup' | 'drop'; place: Place } | null {
  if (t.pickup && (t.type === 1 || (t.type === 3 && !t.picked_up_at))) return { key: 'pickup', place: t.pickup };
  if (t.drop) return { key: 'drop', place: t.drop };
  return t.pickup ? { key: 'pickup', place: t.pickup } : null;
}

export type StepName = 'start' | 'pickup' | 'complete';

/** The next step that the driver can take on a task, or null. */
export function nextStep(t: Task): StepName | null {
  if (t.status === 'assigned') return 'start';
  if (t.status !== 'in_progress') return null;
  return t.type === 3 && !t.picked_up_at ? 'pickup' : 'complete';
}

/** Whether a measured position is worth keeping after the last one kept. Denser on a trip, where a customer watches. */
export function worthKeeping(last: { lnglat: LngLat; ms: number } | null, next: { lnglat: LngLat; ms: number }, trip: boolean, metres: number): boolean {
  if (!last) return true;
  const dt = next.ms - last.ms;
  if (dt <= 0) return false;
  return trip ? dt >= 10_000 || (dt >= 1_500 && metres >= 4) : dt >= 60_000 || (dt >= 8_000 && metres >= 20);
}
