import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sameFinger, settling, Stillness, TapGuard, type Point } from '../src/driver/guard';

test('of taps that follow each other closely only the first does something', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 1000;
  let opened = 0;
  const guard = new TapGuard(() => opened++, () => now);
  const tap = (after: number) => {
    now += after;
    t.mock.timers.tick(after);
    return guard.take();
  };
  assert.deepEqual([tap(0), tap(60), tap(60), tap(300)], [true, false, false, false]);
  assert.equal(opened, 0);
  assert.equal(tap(settling - 420), true, 'a tap that did nothing keeps nothing closed');
  assert.equal(opened, 1);
});

test('when it says that taps are taken again they are, though its timer rings before the clock is there', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 1000;
  const seen: boolean[] = [];
  const guard: TapGuard = new TapGuard(() => seen.push(guard.closed), () => now);
  guard.take();
  now += settling - 0.1;
  t.mock.timers.tick(settling);
  assert.deepEqual(seen, [false]);
  assert.equal(guard.take(), true);
});

test('what moves under the finger closes it as a tap does', () => {
  let now = 0;
  const guard = new TapGuard(() => {}, () => now);
  guard.close();
  assert.equal(guard.take(), false);
  now = settling;
  assert.equal(guard.take(), true);
});

test('a finger is as wide as a fingertip, and a key is no finger', () => {
  const at = { x: 100, y: 100 };
  assert.equal(sameFinger(at, { x: 120, y: 110 }), true);
  assert.equal(sameFinger(at, { x: 160, y: 100 }), false);
  assert.equal(sameFinger(at, null), false);
  assert.equal(sameFinger(null, at), false);
});

test('a finger that drums is one tap, and another place is another', () => {
  let now = 0;
  const guard = new TapGuard(() => {}, () => now);
  const tap = (after: number, x: number) => {
    now += after;
    return guard.again({ x, y: 0 });
  };
  assert.deepEqual([tap(0, 0), tap(60, 5), tap(60, 0), tap(600, 0), tap(600, 0)], [false, true, true, true, true]);
  assert.equal(tap(settling, 0), false, 'it has rested');
  assert.equal(tap(60, 100), false);
});

test('a button that has moved by itself is not meant for a while', () => {
  let now = 1000;
  const [stays, moves, comes] = [{}, {}, {}];
  let screen = new Map<object, Point>();
  const still = new Stillness(() => screen, () => now);
  const draw = (...at: [object, number][]) => {
    still.before();
    screen = new Map(at.map(([b, y]) => [b, { x: 0, y }]));
    still.after();
  };
  const stand = () => [stays, moves, comes].map((b) => still.stands(b));
  screen = new Map([[stays, { x: 0, y: 0 }], [moves, { x: 0, y: 50 }]]);
  assert.deepEqual(stand(), [true, true, true]);
  draw([stays, 4], [moves, 110], [comes, 50]);
  assert.deepEqual(stand(), [true, false, false]);
  now += settling;
  assert.deepEqual(stand(), [true, true, true]);
  screen = new Map([[stays, { x: 0, y: -300 }]]); // scrolled
  still.after();
  assert.deepEqual(stand(), [true, true, true], 'what the reader moves is meant');
});
