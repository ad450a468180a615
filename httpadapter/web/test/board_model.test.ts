import assert from 'node:assert/strict';
import { test } from 'node:test';
import { step, subject } from '../src/board/keys';
import { liveness } from '../src/board/connection';
import { alike, isLate, stateOf, World, type Driver, type Task } from '../src/board/model';
import { best, days, leave, needs, rows, told, unassigned, whyWaits } from '../src/board/needs';
import { Hues } from '../src/board/hue';
import { differing, moved, placed, withTask, type Stop } from '../src/board/order';
import { distance } from '../src/shared/geo';

const now = Date.parse('2026-03-01T12:00:00.000Z');
const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString();
const rules = { silentAfter: 600_000, standsAfter: 600_000 };

const task = (id: string, more: Partial<Task> = {}): Task => ({ task_id: id, type: 2, status: 'assigned', driver_id: 'asha', created_at: ago(60), version: 1, ...more });
const driver = (id: string, more: Partial<Driver> = {}): Driver => ({ driver_id: id, availability: true, open_tasks: 0, version: 1, last_seen_at: ago(1), ...more });

function world(tasks: Task[] = [], drivers: Driver[] = []): World {
  const w = new World(distance);
  for (const d of drivers) w.apply('driver', d);
  for (const t of tasks) w.apply('task', t);
  w.apply('ready', { at: new Date().toISOString() });
  return w;
}

test('a snapshot is shown whole', () => {
  const w = new World(distance);
  w.apply('task', task('a'));
  assert.equal(w.tasks.size, 0);
  assert.equal(w.partial, true);
  assert.deepEqual(w.apply('ready', { at: ago(0) }), { kind: 'all', id: '' });
  assert.deepEqual([...w.tasks.keys()], ['a']);
  w.apply('reset', {});
  w.apply('task', task('b'));
  assert.deepEqual([...w.tasks.keys()], ['a'], 'what was there stays until the new one is whole');
  w.apply('ready', { at: ago(0) });
  assert.deepEqual([...w.tasks.keys()], ['b'], 'what it does not hold is no more');
});

test('nothing older replaces what is newer', () => {
  const w = world([task('a', { version: 5, notes: 'new' })], [driver('asha', { version: 3, name: 'New' })]);
  assert.equal(w.apply('task', task('a', { version: 4, notes: 'old' })), null);
  assert.equal(w.learn({ task: task('a', { version: 2 }) }), null);
  assert.equal(w.apply('driver', driver('asha', { version: 2, name: 'Old' })), null);
  assert.equal(w.tasks.get('a')!.notes, 'new');
  assert.equal(w.drivers.get('asha')!.name, 'New');
  w.apply('task', task('a', { version: 6, status: 'completed', outcome: 'failed' }));
  assert.equal(w.apply('task', task('a', { version: 5 })), null, 'what has ended is not open again by what is older');
  assert.equal(w.tasks.size, 0);
  w.apply('task', task('a', { version: 7 }));
  assert.equal(w.tasks.has('a') && !w.ended.has('a'), true, 'one that was reopened is');
});

test('a task becomes late without another version', () => {
  const w = world([task('a')]);
  assert.equal(w.apply('task', task('a')), null);
  assert.notEqual(w.apply('task', task('a', { late: true })), null);
  assert.equal(w.tasks.get('a')!.late, true);
});

test('an answer to our own call while a snapshot comes is in it', () => {
  const w = world([task('a')]);
  w.apply('reset', {});
  w.learn({ task: task('a', { version: 3, notes: 'ours' }) });
  assert.equal(w.tasks.get('a')!.notes, 'ours');
  w.apply('task', task('a', { version: 2 }));
  w.apply('ready', { at: ago(0) });
  assert.equal(w.tasks.get('a')!.notes, 'ours');
});

test('positions: the newest one, of drivers that are known', () => {
  const w = world([], [driver('asha', { lnglat: [13, 52], located_at: ago(5) })]);
  assert.equal(w.apply('position', { driver_id: 'nobody', lnglat: [1, 1], at: ago(1) }), null);
  w.apply('position', { driver_id: 'asha', lnglat: [13.1, 52], at: ago(1) });
  assert.equal(w.apply('position', { driver_id: 'asha', lnglat: [9, 9], at: ago(2) }), null);
  assert.deepEqual(w.drivers.get('asha')!.lnglat, [13.1, 52]);
  w.apply('driver', driver('asha', { version: 2, lnglat: [13, 52], located_at: ago(5) }));
  assert.deepEqual(w.drivers.get('asha')!.lnglat, [13.1, 52], 'a row that knows only an older one does not move him back');
});

test('what was erased is gone everywhere', () => {
  const w = world([task('a')], [driver('asha')]);
  w.apply('task', task('b', { status: 'completed', outcome: 'failed' }));
  w.apply('gone', { task_id: 'a' });
  w.apply('gone', { task_id: 'b' });
  w.apply('gone', { driver_id: 'asha' });
  assert.deepEqual([w.tasks.size, w.ended.size, w.drivers.size], [0, 0, 0]);
});

test('what ended on another day and needs nobody is forgotten', () => {
  const w = world([], []);
  const ended = (id: string, minutes: number, more: Partial<Task> = {}) => w.apply('task', task(id, { status: 'completed', outcome: 'succeeded', completed_at: ago(minutes), ...more }));
  ended('today', 5);
  ended('yesterday', 900);
  ended('cancelled', 900, { outcome: 'cancelled' });
  ended('failed', 900, { outcome: 'failed' });
  ended('tried again', 900, { outcome: 'failed', retried_by: 'x' });
  ended('stuck', 900, { stuck: [{ driver_id: 'asha', step: 'complete', at: ago(900), why: '' }] });
  ended('left', 900, { outcome: 'failed' });
  ended('left today', 5, { outcome: 'failed' });
  const forget = () => w.forget(now - 600 * 60_000, (t) => t.task_id.startsWith('left'));
  assert.equal(forget(), true);
  assert.deepEqual([...w.ended.keys()], ['today', 'failed', 'stuck', 'left today']);
  assert.equal(forget(), false);
});

test('what was left as it is is kept as long as it is known, and else the latest of it', () => {
  const w = world();
  w.apply('task', task('1', { status: 'completed', outcome: 'failed', completed_at: ago(1) }));
  const left = new Set<string>();
  for (let i = 1; i <= 9; i++) leave(left, 'failed ' + i, w, 3);
  assert.deepEqual([...left], ['failed 1', 'failed 8', 'failed 9']);
});

test('what a driver is at', () => {
  const w = world([], [driver('asha', { lnglat: [13, 52], located_at: ago(30), open_tasks: 1 })]);
  const state = (d: Driver) => stateOf(d, w, now, rules);
  assert.equal(state(driver('x')), 'free');
  assert.equal(state(driver('x', { open_tasks: 2 })), 'busy', 'since when he stands is not known');
  assert.equal(state(w.drivers.get('asha')!), 'standing');
  w.apply('position', { driver_id: 'asha', lnglat: [13.01, 52], at: ago(1) });
  assert.equal(state(w.drivers.get('asha')!), 'busy');
  assert.equal(state(driver('x', { last_seen_at: ago(11) })), 'silent');
  assert.equal(state(driver('x', { last_seen_at: undefined })), 'silent');
  assert.equal(state(driver('x', { availability: false, last_seen_at: ago(11) })), 'off');
  assert.equal(state(driver('x', { availability: false, open_tasks: 1, last_seen_at: ago(11) })), 'silent', 'off duty with work is not off');
});

test('what needs attention, by urgency, each task once', () => {
  const w = world(
    [
      task('waits', { status: 'created', driver_id: '', created_at: ago(9), waiting: { since: ago(9) } }),
      task('waits, unread', { status: 'created', driver_id: '', created_at: ago(9), waiting: { since: ago(8) } }),
      task('new', { status: 'created', driver_id: '', created_at: ago(1), waiting: { since: ago(1) } }),
      task('later', { status: 'created', driver_id: '', created_at: ago(30), waiting: { since: ago(30), reason: 'window' } }),
      task('by hand', { status: 'created', driver_id: '', created_at: ago(31), promised: ago(1) }),
      task('late', { promised: ago(5) }),
      task('later still', { promised: ago(2), late: true }),
      task('waits and late', { status: 'created', driver_id: '', promised: ago(1), waiting: { since: ago(60) } }),
      task('fine', { promised: ago(-5) }),
    ],
    [driver('asha', { open_tasks: 3, last_seen_at: ago(20) }), driver('bilal', { last_seen_at: ago(20) })],
  );
  w.apply('task', task('failed', { status: 'completed', outcome: 'failed', completed_at: ago(3) }));
  w.apply('task', task('again', { status: 'completed', outcome: 'failed', completed_at: ago(3), retried_by: 'x' }));
  w.apply('task', task('left', { status: 'completed', outcome: 'failed', completed_at: ago(3) }));
  w.apply('task', task('good', { status: 'completed', outcome: 'succeeded', completed_at: ago(3) }));
  const reasons = new Map([
    ['waits', 'busy'],
    ['new', 'busy'],
    ['by hand', 'busy'], // as it was when that was read
    ['waits and late', 'no_driver'],
  ]);
  const list = needs(w, reasons, new Set(['failed left']), now, rules);
  assert.deepEqual(
    list.map((n) => [n.key, n.reason]),
    [
      ['late late', undefined],
      ['late later still', undefined],
      ['late waits and late', 'no_driver'],
      ['waiting waits', 'busy'],
      ['waiting waits, unread', undefined],
      ['failed failed', undefined],
      ['silent asha', undefined],
    ],
  );
  assert.deepEqual(
    unassigned(w, list).map((t) => t.task_id),
    ['later', 'by hand', 'new'],
  );
});

test('what a phone could not deliver needs somebody, of open and of ended tasks, and by its last step', () => {
  const at = (minutes: number, step: string) => ({ driver_id: 'asha', step, at: ago(minutes), why: 'gone' });
  const w = world([task('open', { stuck: [at(9, 'pickup'), at(5, 'complete')] }), task('fine', {})], [driver('asha')]);
  w.apply('task', task('over', { status: 'completed', outcome: 'cancelled', completed_at: ago(3), stuck: [at(7, 'fail')] }));
  const list = needs(w, new Map(), new Set(), now, rules);
  assert.deepEqual(
    list.map((n) => [n.why, n.task!.task_id, n.stuck!.step]),
    [
      ['stuck', 'over', 'fail'],
      ['stuck', 'open', 'complete'],
    ],
  );
  w.apply('task', task('open', { version: 9 }));
  assert.equal(needs(w, new Map(), new Set(), now, rules).length, 1, 'settled');
});

test('why a task waits is so when it was read, whichever of list and stream came first', () => {
  const waits = (reason?: string) => task('a', { version: 2, status: 'created', driver_id: '', waiting: { since: ago(9), ...(reason ? { reason } : {}) } });
  for (const first of ['list', 'stream']) {
    const w = world([task('a', { status: 'created', driver_id: '' })]);
    const read = (reason: string) => {
      const { tasks, reasons } = told([waits(reason)]);
      for (const t of tasks) w.learn({ task: t });
      return whyWaits(w.tasks.get('a')!, reasons)?.reason;
    };
    if (first === 'stream') w.apply('task', waits());
    assert.equal(read('busy'), 'busy', first);
    w.apply('task', waits());
    assert.equal(read('too_far'), 'too_far', first);
    assert.equal(whyWaits(w.tasks.get('a')!, new Map())!.reason, undefined, first);
  }
});

test('a task of nobody that nobody waits for is not late', () => {
  assert.equal(isLate(task('a', { status: 'created', promised: ago(9) }), now), false);
  assert.equal(isLate(task('a', { promised: ago(9) }), now), true);
  assert.equal(isLate(task('a', { status: 'completed', promised: ago(9), late: true }), now), false);
});

test('whom to give a task to', () => {
  const c = (id: string, fit: string) => ({ driver_id: id, fit, open_tasks: 0 });
  assert.equal(best(task('t'), [c('asha', 'yes'), c('bilal', 'busy'), c('chen', 'yes')])!.driver_id, 'chen', 'not the one who has it');
  assert.equal(best(task('t'), [c('bilal', 'too_far'), c('chen', 'busy')])!.driver_id, 'chen');
  assert.equal(best(task('t'), [c('bilal', 'off_duty'), c('chen', 'unfit'), c('dora', 'excluded'), c('fay', 'silent')]), null);
});

test('the list of drivers follows names, not what they are at', () => {
  const w = world([], [driver('a', { name: 'Zoe' }), driver('b', { name: 'Asha', availability: false }), driver('c', { name: 'Ben', last_seen_at: ago(99) })]);
  assert.deepEqual(
    rows(w, now, rules).map((r) => r.driver.name),
    ['Ben', 'Zoe', 'Asha'],
  );
});

test('n of today', () => {
  const w = world([task('a'), task('b')], [driver('asha')]);
  w.apply('task', task('c', { status: 'completed', outcome: 'succeeded', completed_at: ago(3) }));
  w.apply('task', task('d', { status: 'completed', outcome: 'cancelled', completed_at: ago(3) }));
  w.apply('task', task('e', { status: 'completed', outcome: 'succeeded', completed_at: ago(3_000) }));
  assert.deepEqual(days(w, now - 3_600_000).get('asha'), { done: 1, all: 3 });
});

test('a drop does not come before its pickup', () => {
  const s = (task_id: string, leg: 'pickup' | 'drop') => ({ task_id, leg });
  const stops = [s('a', 'pickup'), s('b', 'drop'), s('a', 'drop')];
  assert.deepEqual(moved(stops, 2, 0), [s('a', 'pickup'), s('a', 'drop'), s('b', 'drop')]);
  assert.deepEqual(moved(stops, 0, 2), [s('b', 'drop'), s('a', 'pickup'), s('a', 'drop')]);
  assert.deepEqual(moved(stops, 1, 0), [s('b', 'drop'), s('a', 'pickup'), s('a', 'drop')]);
});

test('what is said of the connection', () => {
  assert.deepEqual(liveness({ heard: 0 }, false, 1_000, 5_000), { kind: 'connecting' });
  assert.deepEqual(liveness({ heard: 0 }, false, 1_000, 11_000), { kind: 'stale', since: 0 });
  assert.deepEqual(liveness({ heard: 98_000 }, true, 1_000, 99_000), { kind: 'live' });
  assert.deepEqual(liveness({ heard: 5_000 }, true, 1_000, 14_000), { kind: 'live' }, 'a short break is not worth a word');
  assert.deepEqual(liveness({ heard: 5_000 }, true, 1_000, 15_000), { kind: 'stale', since: 5_000 });
});

test('J and K go on from where the row was that is there no more', () => {
  const row = (id: string) => ({ kind: 'task' as const, id });
  const list = [row('a'), row('b'), row('c')];
  assert.equal(step(list, null, 1, 0), 0);
  assert.equal(step(list, null, -1, 0), 2);
  assert.equal(step(list, row('a'), 1, 0), 1);
  assert.equal(step(list, row('c'), 1, 2), 2);
  assert.equal(step(list, row('gone'), 1, 1), 1, 'what has come to its place');
  assert.equal(step(list, row('gone'), -1, 1), 0);
  assert.equal(step(list, row('gone'), 1, 9), 2);
  assert.equal(step([], null, 1, 0), -1);
});

test('no two drivers of a small company have the same colour, and nobody changes his', () => {
  const hues = new Hues();
  const names = Array.from({ length: 12 }, (_, i) => 'driver-' + i);
  const first = names.map((n) => hues.take(n));
  assert.equal(new Set(first).size, 12);
  assert.ok(hues.take('one more') < 12);
  assert.deepEqual(names.map((n) => hues.take(n)), first);
});

test('what the service marks by itself is no change that anybody has made', () => {
  const task = { task_id: 'a', type: 2, status: 'assigned', driver_id: 'd', created_at: '2026-03-01T10:00:00Z', version: 3 } as Task;
  const cases: [Partial<Task>, boolean][] = [
    [{}, true],
    [{ version: 4, updated_at: '2026-03-01T11:00:00Z', late: true, phase: 'arriving', waiting: { since: '2026-03-01T11:00:00Z' } }, true],
    [{ version: 4, driver_id: 'e' }, false],
    [{ version: 4, status: 'in_progress' }, false],
    [{ version: 4, notes: 'ring' }, false],
    [{ version: 4, arrived_at: '2026-03-01T11:00:00Z' }, false],
  ];
  for (const [more, want] of cases) assert.equal(alike(task, { ...task, ...more }), want, JSON.stringify(more));
});

test('a driver who is given a task has its stops last, and none of them twice', () => {
  const a: Stop = { task_id: 'a', leg: 'drop' };
  const of = (type: 1 | 2 | 3, stops: Stop[]) => withTask(stops, { task_id: 'n', type }).map((s) => s.task_id + ' ' + s.leg);
  assert.deepEqual(of(1, [a]), ['a drop', 'n pickup']);
  assert.deepEqual(of(2, [a]), ['a drop', 'n drop']);
  assert.deepEqual(of(3, [a]), ['a drop', 'n pickup', 'n drop']);
  assert.deepEqual(of(3, [{ task_id: 'n', leg: 'drop' }, a]), ['n drop', 'a drop'], 'what he has already, its goods on board');
});

test('which tasks have come to the stops of a driver, or left them', () => {
  const s = (task_id: string, leg: 'pickup' | 'drop') => ({ task_id, leg });
  const stops = [s('a', 'pickup'), s('b', 'drop'), s('a', 'drop')];
  assert.deepEqual(differing(stops, [stops[2]!, stops[1]!, stops[0]!]), [], 'in another order');
  assert.deepEqual(differing(stops, [s('b', 'drop'), s('a', 'drop')]), ['a'], 'picked up');
  assert.deepEqual(differing([...stops, s('n', 'drop')], [s('c', 'drop'), s('b', 'drop')]), ['a', 'n', 'c']);
});

test('a task that is dropped among the stops of another driver lands there', () => {
  const s = (task_id: string, leg: 'pickup' | 'drop') => ({ task_id, leg });
  const [a, b] = [s('a', 'drop'), s('b', 'drop')];
  const [up, down] = [s('n', 'pickup'), s('n', 'drop')];
  assert.deepEqual(placed([a, b, down], 'n', 'drop', 0), [down, a, b]);
  assert.deepEqual(placed([a, b, down], 'n', 'drop', 2), [a, b, down]);
  assert.deepEqual(placed([a, b, down], 'n', 'drop', 9), [a, b, down]);
  assert.deepEqual(placed([down, a, b], 'n', 'drop', 2), [a, down, b], 'of one that he has, counted with it');
  assert.deepEqual(placed([a, b, up, down], 'n', 'pickup', 1), [a, up, b, down]);
  assert.deepEqual(placed([a, b, up, down], 'n', 'drop', 1), [a, up, down, b], 'a drop never without its pickup before it');
});

test('a key is about the task that is open, else about the one that is selected', () => {
  const selection = { kind: 'task', id: 'behind' } as const;
  assert.equal(subject({ panel: null, selection }), 'behind');
  assert.equal(subject({ panel: { name: 'task', of: 'open' }, selection }), 'open');
  assert.equal(subject({ panel: { name: 'search', of: '' }, selection }), 'behind');
  assert.equal(subject({ panel: null, selection: { kind: 'driver', id: 'd' } }), undefined);
});
