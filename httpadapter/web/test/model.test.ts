import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mapLink, navigationLink, platform, safeSetupLink, telLink } from '../src/driver/links';
import { apply, nextPlace, nextStep, onTrip, openTasks, worthKeeping, type Action, type Task, type World } from '../src/driver/model';
import { safeLink } from '../src/driver/html';

const at = '2026-03-01T10:00:00.000Z';
const task = (id: string, more: Partial<Task> = {}): Task => ({ task_id: id, type: 3, status: 'assigned', pickup: { address: 'P' }, drop: { address: 'D' }, ...more });
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
    ['in_progress', 'pickup', 'pickup', true],
    ['in_progress', 'complete', 'drop', true],
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

test('open tasks: under way first, then the oldest', () => {
  const list = [task('new', { created_at: '3' }), task('done', { status: 'completed' }), task('old', { created_at: '1' }), task('now', { status: 'in_progress', created_at: '2' })];
  assert.deepEqual(openTasks(list).map((t) => t.task_id), ['now', 'old', 'new']);
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

test('links out of the app', () => {
  const android = platform('Mozilla/5.0 (Linux; Android 14)', 5);
  const ios = platform('Mozilla/5.0 (iPhone; CPU iPhone OS 17_0)', 5);
  assert.deepEqual([android, ios, platform('Macintosh', 5), platform('Macintosh', 0)], ['android', 'ios', 'ios', 'other']);
  const point = { lnglat: [13.4, 52.5] as [number, number], address: 'Main Street 1 & 2' };
  assert.equal(navigationLink(point, android), 'geo:52.5,13.4?q=52.5,13.4(Main%20Street%201%20%26%202)');
  assert.equal(navigationLink({ address: 'A B' }, android), 'geo:0,0?q=A%20B');
  assert.equal(navigationLink(point, ios), 'maps://?daddr=52.5,13.4');
  assert.equal(navigationLink({}, ios), null);
  assert.equal(mapLink(point), 'https://www.openstreetmap.org/?mlat=52.5&mlon=13.4#map=17/52.5/13.4');
  assert.equal(telLink('+49 (30) 123-45'), 'tel:+493012345');
  assert.equal(telLink('javascript:alert(1)'), 'tel:1');
  assert.equal(telLink('n/a'), null);
  assert.equal(telLink(undefined), null);
  for (const l of ['org.traccar.client://host/?url=x', 'owntracks:///config', 'gpslogger://properties/https://h', 'overland://setup', 'https://h/x']) assert.ok(safeSetupLink(l), l);
  for (const l of ['javascript:alert(1)', 'data:text/html,x', 'x', ' owntracks:', '']) assert.ok(!safeSetupLink(l), l);
  for (const l of ['https://a.example', 'HTTP://a.example', 'mailto:a@b.example', ' tel:1']) assert.ok(safeLink(l), l);
  for (const l of ['javascript:alert(1)', 'java\nscript:x', 'data:text/html,x', '//a.example', 'vbscript:x', '/path']) assert.ok(!safeLink(l), l);
});
