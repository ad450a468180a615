import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Fix } from '../src/driver/model';
import { Alarm, Positions } from '../src/driver/position';

/** A phone whose sensors say what the test says. */
function phone(t: TestContext, offset = 0, secure = true) {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.parse('2026-03-01T10:00:00Z') });
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  Object.defineProperty(globalThis, 'isSecureContext', { value: secure, configurable: true });
  let moved: PositionCallback | null = null;
  let failed: PositionErrorCallback | null = null;
  let asked = 0;
  const geolocation = {
    watchPosition: (ok: PositionCallback, bad: PositionErrorCallback) => {
      moved = ok;
      failed = bad;
      return 1;
    },
    clearWatch: () => (moved = failed = null),
    getCurrentPosition: () => void asked++,
  } as unknown as Geolocation;
  const fixes: (Fix & { first: boolean })[] = [];
  let alive = 0;
  const p = new Positions(geolocation, () => offset, (f, first) => fixes.push({ ...f, first }), () => alive++, () => {});
  return {
    p,
    fixes,
    counts: () => ({ asked, alive }),
    watched: () => moved !== null,
    at: (lng: number, more: Partial<GeolocationCoordinates> = {}, timestamp = Date.now()) =>
      moved?.({ timestamp, coords: { longitude: lng, latitude: 50, accuracy: 5, speed: null, heading: null, ...more } } as GeolocationPosition),
    fail: (code: number) => failed?.({ code, PERMISSION_DENIED: 1 } as GeolocationPositionError),
  };
}

test('a fix has what the phone knows, by the server’s clock', (t) => {
  const h = phone(t, 5000);
  h.p.set(true, true);
  assert.equal(h.p.status, 'wait');
  h.at(10, { speed: 7, heading: 90 });
  h.at(10.1, { speed: -1, heading: NaN, accuracy: -1 }, Date.now() + 2000);
  assert.deepEqual(h.fixes, [
    { lnglat: [10, 50], time: '2026-03-01T10:00:05.000Z', accuracy: 5, speed: 7, bearing: 90, first: true },
    { lnglat: [10.1, 50], time: '2026-03-01T10:00:07.000Z', first: false },
  ]);
  assert.equal(h.p.status, 'ok');
});

test('no fix is older than going on duty, and none is from another year', (t) => {
  const h = phone(t);
  h.p.set(true, false);
  h.at(10, {}, Date.now() - 3000);
  assert.equal(h.fixes[0]!.time, '2026-03-01T10:00:00.000Z');
  t.mock.timers.tick(20_000);
  h.at(10.1, {}, Date.parse('2006-01-01'));
  assert.equal(h.fixes[1]!.time, '2026-03-01T10:00:20.000Z');
});

test('off duty nothing is watched; on duty again the first position counts, also in the same place', (t) => {
  const h = phone(t);
  assert.equal(h.watched(), false);
  h.p.set(true, false);
  h.at(10);
  h.p.set(false, false);
  assert.equal(h.watched(), false);
  assert.equal(h.p.status, 'off');
  t.mock.timers.tick(1000);
  h.p.set(true, false);
  h.at(10);
  assert.deepEqual(h.fixes.map((f) => f.first), [true, true]);
});

test('one who stands still is heard of once a minute', (t) => {
  const h = phone(t);
  h.p.set(true, false);
  h.at(10);
  t.mock.timers.tick(60_000);
  assert.deepEqual(h.counts(), { asked: 1, alive: 1 });
  h.p.set(false, false);
  t.mock.timers.tick(300_000);
  assert.deepEqual(h.counts(), { asked: 1, alive: 1 });
});

test('a position that is not allowed', (t) => {
  const h = phone(t);
  h.p.set(true, false);
  h.fail(1);
  assert.equal(h.p.status, 'denied');
  h.at(10);
  h.fail(2);
  assert.equal(h.p.status, 'ok', 'one failure after a fresh position is nothing');
  t.mock.timers.tick(61_000);
  h.fail(2);
  assert.equal(h.p.status, 'unavailable');
});

test('over plain http no position is asked for, and the driver is not blamed', (t) => {
  const h = phone(t, 0, false);
  h.p.set(true, false);
  assert.equal(h.watched(), false);
  assert.equal(h.p.status, 'insecure');
  h.p.set(false, false);
  assert.equal(h.p.status, 'off');
});

test('neither sound nor vibration before a touch', () => {
  let sounds = 0;
  let shaken = 0;
  class Sound {
    state = 'suspended';
    constructor() {
      sounds++;
    }
    async resume() {}
  }
  Object.defineProperty(globalThis, 'AudioContext', { value: Sound, configurable: true });
  for (const [activation, want] of [[{ hasBeenActive: false }, 0], [{ hasBeenActive: true }, 1], [undefined, 1]] as const) {
    sounds = shaken = 0;
    Object.defineProperty(globalThis, 'navigator', { value: { userActivation: activation, vibrate: () => shaken++ }, configurable: true });
    const alarm = new Alarm();
    alarm.arm();
    alarm.ring();
    assert.deepEqual([sounds, shaken], [want, want], JSON.stringify(activation));
  }
});
