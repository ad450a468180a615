import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bearing, distance, near, turn, unwrap, type LngLat } from '../src/shared/geo';
import { plan, pose, type Fix } from '../src/shared/glide';

const fix = (lng: number, lat: number, seconds: number, heading: number | null = null): Fix => ({ at: [lng, lat], heading, time: seconds * 1000 });
const metre = 1 / 111_195; // degrees of latitude

test('distances and bearings', () => {
  assert.ok(Math.abs(distance([179.95, 0], [-179.9, 0]) - 16_679) < 1);
  assert.ok(Math.abs(distance([0, 0], [0, 1]) - 111_195) < 1);
  assert.equal(Math.round(bearing([0, 0], [0, 1])), 0);
  assert.equal(Math.round(bearing([0, 0], [1, 0])), 90);
  assert.equal(Math.round(bearing([0, 0], [-1, 0])), 270);
});

test('a path runs on across the date line', () => {
  assert.equal(near(-179, 179), 181);
  assert.equal(near(179, -179), -181);
  assert.deepEqual(unwrap([[179, 0], [-179, 0], [-178, 0], [179.5, 0]]), [[179, 0], [181, 0], [182, 0], [179.5, 0]]);
});

test('the shorter turn', () => {
  for (const [a, b, want] of [[350, 10, 20], [10, 350, -20], [0, 180, -180], [90, 90, 0], [720, 45, 45]] as const) assert.equal(turn(a, b), want, `${a} ${b}`);
});

test('a marker glides between near fixes', () => {
  const a = fix(0, 0, 0, 350);
  const b = fix(0, 20 * metre, 2, 10);
  const g = plan(a, a, b, false);
  assert.equal(g.duration, 2000);
  const half = pose(g, 1000);
  assert.ok(Math.abs(half.at[1] - 10 * metre) < 1e-9);
  assert.equal(half.heading, 10);
  assert.ok(Math.abs(pose(g, 333).heading! - 0) < 0.1 || Math.abs(pose(g, 333).heading! - 360) < 0.1);
  assert.deepEqual(pose(g, 2000), { at: b.at, heading: 10 });
  assert.deepEqual(pose(g, 9999), { at: b.at, heading: 10 });
});

test('a marker snaps where gliding would lie', () => {
  const a = fix(0, 0, 0);
  assert.equal(plan(null, null, a, false).duration, 0);
  assert.equal(plan(a, a, fix(0, 299 * metre, 30), false).duration, 4000);
  assert.equal(plan(a, a, fix(0, 302 * metre, 30), false).duration, 0, 'over 300 m');
  assert.equal(plan(a, a, fix(0, 100 * metre, 60), false).duration, 4000);
  assert.equal(plan(a, a, fix(0, 100 * metre, 61), false).duration, 0, 'over 60 s');
  assert.equal(plan(a, a, fix(0, 10 * metre, 2), true).duration, 0, 'reduced motion');
});

test('a heading that is not given comes from the movement', () => {
  const a = fix(0, 0, 0);
  assert.equal(Math.round(plan(a, a, fix(50 * metre, 0, 5), false).to.heading!), 90);
  assert.equal(plan({ at: [0, 0], heading: 45 }, a, fix(1 * metre, 0, 5), false).to.heading, 45, 'creeping keeps the heading');
  assert.equal(plan(a, a, fix(50 * metre, 0, 5, 12), false).to.heading, 12, 'a given one counts');
});

test('a glide crosses the date line the short way', () => {
  const a = fix(179.9999, 0, 0);
  const g = plan(a, a, fix(-179.9999, 0, 2), false);
  assert.ok(g.duration > 0);
  const mid: LngLat = pose(g, 1000).at;
  assert.ok(Math.abs(mid[0] - 180) < 1e-6);
});
