import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Fix } from '../src/driver/model';
import { Positions } from '../src/driver/position';
import { Alarm } from '../src/shared/alarm';

/** A phone whose sensors say what the test says. */
function phone(t: TestContext, offset = 0, secure = true) {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: Date.parse('2026-03-01T10:00:00Z') });
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  Object.defineProperty(globalThis, 'isSecureContext', { value: secure, configurable: true });
  let moved: PositionCallback | null = null;
  let failed: PositionErrorCallback | null = null;
  let asked = 0;
  let open: { ok: PositionCallback; bad: PositionErrorCallback } | null = null;
  const geolocation = {
    watchPosition: (ok: PositionCallback, bad: PositionErrorCallback) => {
      moved = ok;
      failed = bad;
      return 1;
    },
    clearWatch: () => (moved = failed = null),
    getCurrentPosition: (ok: PositionCallback, bad: PositionErrorCallback) => {
      asked++;
      open = { ok, bad };
    },
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
    /** Answers what was asked last, if it was not answered yet. */
    answer: (how: (ask: { found(lng: number, timestamp: number): void; lost(code: number): void }) => void) => {
      const ask = open;
      open = null;
      if (!ask) return;
      how({
        found: (lng, timestamp) => ask.ok({ timestamp, coords: { longitude: lng, latitude: 50, accuracy: 5, speed: null, heading: null } } as GeolocationPosition),
        lost: (code) => ask.bad({ code, PERMISSION_DENIED: 1 } as GeolocationPositionError),
      });
    },
    /** Lets seconds go by, each by itself: the clock that timers see does not stand still while many of them are due. */
    wait: (seconds: number) => {
      for (let s = 0; s < seconds; s++) t.mock.timers.tick(1000);
    },
    /** The browser has given up the watch, as it does with one that is refused. */
    over: () => void (moved = failed = null),
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

test('one who stands still is heard of once a minute, on a trip twice, also where no position is found', (t) => {
  for (const [trip, minutes, want] of [[false, 10, 10], [true, 10, 20]] as const) {
    const h = phone(t);
    h.p.set(true, trip);
    h.at(10);
    for (let s = 0; s < minutes * 60; s++) {
      t.mock.timers.tick(1000);
      h.answer((ask) => ask.found(10, Date.now() - 120_000)); // the phone tells the same old position
    }
    assert.equal(h.fixes.length, 1 + want, `trip: ${trip}`);
    const gaps = h.fixes.slice(1).map((f, i) => Date.parse(f.time) - Date.parse(h.fixes[i]!.time));
    assert.ok(Math.max(...gaps) <= (trip ? 35_000 : 65_000), `gaps of ${gaps}`);
    assert.equal(h.counts().alive, 0, 'a fix is a sign of life');
    for (let s = 0; s < 120; s++) {
      t.mock.timers.tick(1000);
      h.answer((ask) => ask.lost(3));
    }
    assert.equal(h.counts().alive, trip ? 4 : 2);
    h.p.set(false, false);
    const before = h.counts();
    t.mock.timers.tick(300_000);
    assert.deepEqual(h.counts(), before);
    t.mock.timers.reset();
  }
});

test('a phone that takes long to find itself is not asked twice at once', (t) => {
  const h = phone(t);
  h.p.set(true, true);
  h.at(10);
  h.wait(300);
  assert.deepEqual(h.counts(), { asked: 1, alive: 9 }, 'it is heard of all the while');
  h.answer((ask) => ask.lost(3));
  t.mock.timers.tick(30_000);
  assert.equal(h.counts().asked, 2);
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

test('leave that is given later is used, and the watch is a new one', (t) => {
  for (const ask of ['again', 'beat'] as const) {
    const h = phone(t);
    h.p.set(true, false);
    h.at(10);
    h.fail(1);
    h.over();
    if (ask === 'again') {
      h.p.again();
      assert.equal(h.p.status, 'wait');
    } else {
      t.mock.timers.tick(65_000);
      h.answer((a) => a.found(10, Date.now()));
      assert.equal(h.p.status, 'ok');
    }
    assert.ok(h.watched(), ask);
    t.mock.timers.tick(10_000);
    h.at(11);
    assert.equal(h.p.status, 'ok');
    assert.equal(h.fixes.at(-1)!.lnglat[0], 11);
    h.p.set(false, false);
    h.p.again();
    assert.equal(h.watched(), false, 'off duty there is nothing to try');
    t.mock.timers.reset();
  }
});

test('a driver without any position is heard of all the same', (t) => {
  const h = phone(t, 0, false);
  h.p.set(true, false);
  h.wait(600);
  assert.deepEqual(h.counts(), { asked: 0, alive: 10 });
  h.p.set(false, false);
  h.wait(600);
  assert.deepEqual(h.counts(), { asked: 0, alive: 10 });
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
    const alarm = new Alarm(() => {});
    alarm.arm();
    alarm.ring();
    assert.equal(alarm.sound, 'touch', 'a sound that does not run yet is not promised');
    assert.deepEqual([sounds, shaken], [want, want], JSON.stringify(activation));
  }
});

test('the sound is there once it runs, and not before', async () => {
  let changes = 0;
  class Sound {
    state = 'suspended';
    onstatechange: (() => void) | null = null;
    async resume() {
      this.state = 'running';
    }
  }
  Object.defineProperty(globalThis, 'navigator', { value: { userActivation: { hasBeenActive: true } }, configurable: true });
  Object.defineProperty(globalThis, 'AudioContext', { value: Sound, configurable: true });
  const alarm = new Alarm(() => changes++);
  assert.equal(alarm.sound, 'touch');
  alarm.arm();
  await Promise.resolve();
  assert.equal(alarm.sound, 'on');
  assert.ok(changes > 0);
  Object.defineProperty(globalThis, 'AudioContext', { value: undefined, configurable: true });
  assert.equal(new Alarm(() => {}).sound, 'none');
});
