import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapApps, navigationLink, platform, safeSetupLink, type MapApp } from '../src/driver/links';
import { telLink } from '../src/shared/digits';
import { apply, nextPlace, nextStep, onTrip, openTasks, wantedAt, worthKeeping, type Action, type Leg, type Stop, type Task, type UndoStep, type World } from '../src/driver/model';
import { safeLink } from '../src/driver/html';

const at = '2026-03-01T10:00:00.000Z';
const task = (id: string, more: Partial<Task> = {}): Task => ({ task_id: id, type: 3, status: 'assigned', pickup: { address: 'P' }, drop: { address: 'D' }, ...more });
const stop = (task_id: string, leg: Leg): Stop => ({ task_id, leg });
const world = (w: Partial<World> = {}): World => ({ duty: false, tasks: [], trips: [], requests: [], ...w });

test('a task as far as the driver has taken it, without a network', () => {
  const w = world({ tasks: [task('1')] });
  const steps: Action[] = [
    { type: 'start', task_id: '1', at },
    { type: 'pickup', task_id: '1', at },
    { type: 'complete', task_id: '1', outcome: 'failed', reason: 'Nobody there', at },
  ];
  const seen = steps.map((_, i) => apply(w, steps.slice(0, i + 1)).tasks[0]!);
  assert.deepEqual(seen.map((t) => [t.status, nextStep(t), nextPlace(t)!.key, t.pending]), [
    ['in_progress', 'arrive', 'pickup', true],
    ['in_progress', 'arrive', 'drop', true],
    ['completed', null, 'drop', true],
  ]);
  assert.equal(seen[2]!.outcome, 'failed');
  assert.equal(w.tasks[0]!.status, 'assigned', 'what the server said is left as it is');
});

test('a step that was sent is not undone until it has been read', () => {
  const start: Action = { type: 'start', task_id: '1', at };
  const complete: Action = { type: 'complete', task_id: '1', outcome: 'succeeded', at };
  const seen = (actions: Action[], taken: Action[]) => apply(world({ tasks: [task('1')] }), actions, taken).tasks.map((t) => [t.status, t.pending]);
  assert.deepEqual(seen([start], []), [['in_progress', true]]);
  assert.deepEqual(seen([], [start]), [['in_progress', false]]);
  assert.deepEqual(seen([complete], [start]), [['completed', true]]);
  assert.deepEqual(apply(world({ duty: true }), [], [{ type: 'availability', availability: false, at }]).duty, false);
});

test('steps that the server already knows, or that are not open, change nothing', () => {
  const done = task('1', { status: 'completed', outcome: 'cancelled' });
  const s = apply(world({ tasks: [done] }), [
    { type: 'start', task_id: '1', at },
    { type: 'complete', task_id: '1', outcome: 'succeeded', at },
    { type: 'decline', task_id: '1', at },
    { type: 'start', task_id: 'unknown', at },
  ]);
  assert.deepEqual(s.tasks, [done]);
});

test('a task whose end can be taken back keeps its place, and says that nothing waits', () => {
  const tasks = [task('1', { status: 'in_progress', created_at: '1' }), task('2', { status: 'in_progress', created_at: '2' })];
  const end: Action = { type: 'complete', task_id: '1', outcome: 'succeeded', at, held: true };
  const seen = apply(world({ tasks }), [end]).tasks;
  assert.deepEqual(openTasks(seen).map((t) => [t.task_id, t.status, t.held, t.pending]), [['1', 'completed', true, false], ['2', 'in_progress', undefined, undefined]]);
  assert.deepEqual(apply(world({ tasks }), [end]).route.map((s) => s.task_id), ['1', '1', '2', '2']);
  assert.deepEqual(openTasks(apply(world({ tasks }), [{ ...end, held: undefined }]).tasks).map((t) => t.task_id), ['2']);
});

test('arriving is once a leg, and a step taken back is the next stop again', () => {
  const w = world({ tasks: [task('1'), task('2')], route: [stop('1', 'pickup'), stop('2', 'pickup'), stop('1', 'drop'), stop('2', 'drop')] });
  const steps: Action[] = [{ type: 'start', task_id: '1', at }, { type: 'arrive', task_id: '1', at }, { type: 'pickup', task_id: '1', at }];
  const seen = (more: Action[]) => {
    const s = apply(w, [...steps, ...more]);
    const t = s.tasks[0]!;
    return [t.status, t.pickup_arrived_at !== undefined, t.picked_up_at !== undefined, t.arrived_at !== undefined, s.route.map((x) => x.leg[0] + x.task_id).join(' ')];
  };
  const arrive: Action = { type: 'arrive', task_id: '1', at };
  const undo = (step: UndoStep): Action => ({ type: 'undo', task_id: '1', step, at });
  const end: Action = { type: 'complete', task_id: '1', outcome: 'succeeded', at };
  assert.deepEqual(seen([]), ['in_progress', true, true, false, 'p2 d1 d2']);
  assert.deepEqual(seen([arrive]), ['in_progress', true, true, true, 'p2 d1 d2']);
  assert.deepEqual(seen([arrive, end]), ['completed', true, true, true, 'p2 d2']);
  assert.deepEqual(seen([arrive, end, undo('complete')]), ['in_progress', true, true, true, 'd1 p2 d2']);
  assert.deepEqual(seen([arrive, undo('pickup')]), ['in_progress', true, false, false, 'p1 p2 d1 d2']);
  assert.deepEqual(seen([undo('pickup'), undo('start')]).slice(0, 4), ['assigned', false, false, false]);
  assert.deepEqual(seen([arrive, undo('start')]), seen([arrive]), 'not a step that is not the last one');
  assert.deepEqual(apply(w, [arrive]).tasks, w.tasks, 'nobody arrives on the way to nothing');
});

test('an order of the driver’s stands at once', () => {
  const from = [stop('1', 'drop'), stop('2', 'drop')];
  const w = world({ tasks: [task('1', { type: 2 }), task('2', { type: 2 })], route: from });
  const to = [from[1]!, from[0]!];
  assert.deepEqual(apply(w, [{ type: 'reorder', from, to, at }]).route, to);
  assert.deepEqual(apply(w, [{ type: 'start', task_id: '2', at }]).route, from, 'a start moves nothing');
  assert.deepEqual(apply({ ...w, route: to }, [], [{ type: 'reorder', from, to, at }]).route, to, 'also where it has been read already');
});

test('a break is off duty with a word', () => {
  const w = world({ duty: true });
  const rest: Action = { type: 'availability', availability: false, rest: true, at };
  const seen = (actions: Action[], of = w) => (({ duty, rest }) => [duty, rest])(apply(of, actions));
  assert.deepEqual(seen([rest]), [false, at]);
  assert.deepEqual(seen([rest, { type: 'availability', availability: true, at }]), [true, undefined]);
  assert.deepEqual(seen([rest, { type: 'availability', availability: false, at }]), [false, undefined]);
  assert.deepEqual(seen([], world({ rest: at })), [false, at]);
  assert.deepEqual(seen([], world({ duty: true, rest: at })), [true, undefined], 'somebody has put him on duty');
});

test('the steps of each type, one after the other', () => {
  const steps = (type: 1 | 2 | 3) => {
    const all: string[] = [];
    let t = task('1', { type });
    for (let step = nextStep(t); step; step = nextStep(t)) {
      all.push(step);
      t = apply(world({ tasks: [t] }), [step === 'complete' ? { type: step, task_id: '1', outcome: 'succeeded', at } : { type: step, task_id: '1', at }]).tasks[0]!;
    }
    return all.join(' ');
  };
  assert.deepEqual([1, 2, 3].map((type) => steps(type as 1 | 2 | 3)), ['start arrive complete', 'start arrive complete', 'start arrive pickup arrive complete']);
  const there = task('1', { type: 2, status: 'in_progress', arrived_at: at });
  assert.equal(nextStep(there), 'complete', 'who is there by his fixes need not say so');
});

test('a time is shown where the application gave one', () => {
  assert.equal(wantedAt(task('1', { time: at, created_at: at })), null);
  assert.equal(wantedAt(task('1')), null);
  assert.equal(wantedAt(task('1', { time: '2026-03-01T12:00:00.000Z', created_at: at })), Date.parse('2026-03-01T12:00:00Z'));
});

test('a declined task is gone at once', () => {
  assert.deepEqual(apply(world({ tasks: [task('1'), task('2')] }), [{ type: 'decline', task_id: '1', at }]).tasks.map((t) => t.task_id), ['2']);
});

test('trips and duty', () => {
  const w = world({ requests: [{ tracking_id: 'a' }, { tracking_id: 'b' }], trips: [{ _id: 't', tracking_id: 'c', status: '1' }, { _id: 'u', tracking_id: 'd', status: '2' }] });
  const s = apply(w, [
    { type: 'availability', availability: true, at },
    { type: 'trip_start', tracking_id: 'a', at },
    { type: 'trip_stop', tracking_id: 'c', at },
  ]);
  assert.equal(s.duty, true);
  assert.deepEqual(s.trips.map((t) => t.tracking_id), ['a']);
  assert.deepEqual(s.requests.map((r) => r.tracking_id), ['b']);
  assert.equal(onTrip(s), true);
  assert.equal(onTrip(apply(w, [{ type: 'trip_stop', tracking_id: 'c', at }])), false);
});

test('positions worth keeping', () => {
  const p = (ms: number) => ({ lnglat: [0, 0] as [number, number], ms });
  const cases: [string, number, boolean, number, boolean][] = [
    ['same instant', 0, true, 50, false],
    ['trip, moved', 1500, true, 5, true],
    ['trip, too soon', 1000, true, 50, false],
    ['trip, standing', 5000, true, 0, false],
    ['trip, standing for ten seconds', 10_000, true, 0, true],
    ['duty, moved', 8000, false, 25, true],
    ['duty, soon', 5000, false, 25, false],
    ['duty, standing', 30_000, false, 1, false],
    ['duty, standing for a minute', 60_000, false, 0, true],
  ];
  for (const [name, ms, trip, metres, want] of cases) assert.equal(worthKeeping(p(0), p(ms), trip, metres), want, name);
  assert.equal(worthKeeping(null, p(0), false, 0), true);
});

test('the way to a place, in the app of the driver’s choice', () => {
  const point = { lnglat: [13.4, 52.5] as [number, number], address: 'Main Street 1 & 2' };
  const text = { address: 'A & B' };
  const want: Record<MapApp, [string, string]> = {
    geo: ['geo:52.5,13.4?q=52.5,13.4(Main%20Street%201%20%26%202)', 'geo:0,0?q=A%20%26%20B'],
    apple: ['https://maps.apple.com/?daddr=52.5,13.4', 'https://maps.apple.com/?daddr=A%20%26%20B'],
    google: ['https://www.google.com/maps/dir/?api=1&destination=52.5,13.4', 'https://www.google.com/maps/dir/?api=1&destination=A%20%26%20B'],
    waze: ['https://waze.com/ul?ll=52.5,13.4&navigate=yes', 'https://waze.com/ul?q=A%20%26%20B&navigate=yes'],
    osm: ['https://www.openstreetmap.org/?mlat=52.5&mlon=13.4#map=17/52.5/13.4', 'https://www.openstreetmap.org/search?query=A%20%26%20B'],
  };
  for (const app of Object.keys(want) as MapApp[]) {
    assert.deepEqual([navigationLink(point, app), navigationLink(text, app)], want[app], app);
    assert.equal(navigationLink({}, app), null, app);
  }
  assert.deepEqual([mapApps('android')[0], mapApps('ios')[0], mapApps('other').includes('geo')], ['geo', 'apple', false]);
});

test('links out of the app', () => {
  const android = platform('Mozilla/5.0 (Linux; Android 14)', 5);
  const ios = platform('Mozilla/5.0 (iPhone; CPU iPhone OS 17_0)', 5);
  assert.deepEqual([android, ios, platform('Macintosh', 5), platform('Macintosh', 0)], ['android', 'ios', 'ios', 'other']);
  assert.equal(telLink('+49 (30) 123-45'), 'tel:+493012345');
  assert.equal(telLink('javascript:alert(1)'), 'tel:1');
  assert.equal(telLink('n/a'), null);
  assert.equal(telLink(undefined), null);
  for (const l of ['org.traccar.client://host/?url=x', 'owntracks:///config', 'gpslogger://properties/https://h', 'overland://setup', 'https://h/x']) assert.ok(safeSetupLink(l), l);
  for (const l of ['javascript:alert(1)', 'data:text/html,x', 'x', ' owntracks:', '']) assert.ok(!safeSetupLink(l), l);
  for (const l of ['https://a.example', 'HTTP://a.example', 'mailto:a@b.example', ' tel:1']) assert.ok(safeLink(l), l);
  for (const l of ['javascript:alert(1)', 'java\nscript:x', 'data:text/html,x', '//a.example', 'vbscript:x', '/path']) assert.ok(!safeLink(l), l);
});
