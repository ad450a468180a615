import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Leg, ShownTask, Stop } from '../src/driver/model';
import type { Place } from '../src/shared/place';
import { moved, nextStop, rebased, routeFrom, routeOf, samePlace, stopsOf } from '../src/driver/route';

/** Stops in short: p1 is the pickup of task 1. */
const stops = (text: string): Stop[] => text.split(' ').filter(Boolean).map((s) => ({ leg: s[0] === 'p' ? 'pickup' : 'drop', task_id: s.slice(1) }) as Stop);
const short = (list: readonly Stop[] | null) => list?.map((s) => s.leg[0] + s.task_id).join(' ');
const task = (id: string, more: Partial<ShownTask> = {}): ShownTask => ({ task_id: id, type: 3, status: 'assigned', pickup: { address: 'Shop' }, drop: { address: 'Door ' + id }, ...more });

test('the route has exactly the stops that are ahead', () => {
  const tasks = [task('1'), task('2', { type: 2, stop: 1 }), task('3', { picked_up_at: 'x' })];
  assert.equal(short(routeOf(tasks, [])), 'd2 p1 d1 d3');
  assert.equal(short(routeOf(tasks, stops('d3 p3 p1 d1 d4'))), 'd3 p1 d1 d2');
});

test('an order made offline is made anew for the route as it is by then', () => {
  const cases: [name: string, from: string, to: string, now: string, want: string | undefined][] = [
    ['as it was', 'd1 d2 d3', 'd3 d1 d2', 'd1 d2 d3', 'd3 d1 d2'],
    ['delivered meanwhile', 'd1 d2 d3', 'd3 d1 d2', 'd2 d3', 'd3 d2'],
    ['one has come', 'd1 d2', 'd2 d1', 'd1 d2 p3 d3', 'd2 d1 p3 d3'],
    ['another order', 'd1 d2 d3', 'd3 d1 d2', 'd2 d1 d3', undefined],
    ['taken, the answer lost', 'd1 d2 d3', 'd3 d1 d2', 'd3 d1 d2', 'd3 d1 d2'],
    ['nothing left', 'd1 d2', 'd2 d1', '', ''],
  ];
  for (const [name, from, to, now, want] of cases) assert.equal(short(rebased(stops(from), stops(to), stops(now))), want, name);
});

test('what one place is', () => {
  const cases: [name: string, a: Place, b: Place, want: boolean][] = [
    ['one address', { address: 'Mill Lane 3' }, { address: ' mill lane  3' }, true],
    ['marks and accents', { address: 'Rue de l’Été, 3' }, { address: 'rue de l’ete 3' }, true],
    ['two addresses', { address: 'Mill Lane 3' }, { address: 'Mill Lane 5' }, false],
    ['two addresses, one door', { address: '3rd floor', lnglat: [13.4, 52.5] }, { address: 'Shop', lnglat: [13.4002, 52.5001] }, true],
    ['40 m', { lnglat: [13.4, 52.5] }, { lnglat: [13.4006, 52.5] }, false],
    ['one name in two towns', { address: 'Mill Lane 3', lnglat: [13.4, 52.5] }, { address: 'Mill Lane 3', lnglat: [9, 50] }, false],
    ['nothing known', {}, {}, false],
  ];
  for (const [name, a, b, want] of cases) assert.equal(samePlace(a, b), want, name);
});

const seen = (tasks: ShownTask[], route: string) => stopsOf(tasks, stops(route)).map((s) => short(routeFrom([s])));

test('neighbours for one place are one stop, of one kind', () => {
  const tasks = ['1', '2', '3'].map((id) => task(id));
  assert.deepEqual(seen(tasks, 'p1 p2 d1 p3 d2 d3'), ['p1 p2', 'd1', 'p3', 'd2', 'd3']);
  const round = [task('1', { drop: { address: 'Shop' } }), task('2')];
  assert.deepEqual(seen(round, 'd1 p2 d2'), ['d1', 'p2', 'd2'], 'what is brought there is not what is fetched there');
});

test('the next stop is the first one under way', () => {
  const next = (...status: ShownTask['status'][]) => nextStop(stopsOf(status.map((s, i) => task(String(i), { type: 2, status: s })), status.map((_, i) => ({ task_id: String(i), leg: 'drop' as Leg }))))?.tasks[0]!.task_id;
  assert.equal(next('assigned', 'assigned'), '0');
  assert.equal(next('assigned', 'in_progress', 'in_progress'), '1');
  assert.equal(next(), undefined);
});

test('a stop is moved as far as pickups stay before their drops', () => {
  const list = stopsOf([task('1'), task('2', { type: 2 }), task('3', { type: 2 })], stops('p1 d2 d1 d3'));
  const move = (from: number, to: number) => short(routeFrom(moved(list, from, to)));
  assert.equal(move(0, 3), 'd2 p1 d1 d3');
  assert.equal(move(2, 0), 'p1 d1 d2 d3');
  assert.equal(move(3, 0), 'd3 p1 d2 d1');
  assert.equal(move(1, 3), 'p1 d1 d3 d2');
  assert.equal(move(1, 9), 'p1 d1 d3 d2');
  assert.equal(move(1, 1), 'p1 d2 d1 d3');
});
