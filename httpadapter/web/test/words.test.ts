import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { translator } from '../src/shared/config';
import { age, clocks, expected, length, Speaker } from '../src/track/words';

const t = translator(JSON.parse(readFileSync('texts/en.json', 'utf8')));
const { clock, shown } = clocks('en-GB', 'UTC');
const now = Date.parse('2026-03-01T10:00:00Z');
const minutes = (n: number) => now + n * 60_000;

test('an expected time is rounded and never in the past', () => {
  const cases: [number, string, string][] = [
    [-30, 'any moment now', ''],
    [0, 'any moment now', ''],
    [0.4, 'any moment now', ''],
    [1, 'in about 1 minute', 'about 10:01'],
    [2.3, 'in about 2 minutes', 'about 10:02'],
    [7.4, 'in about 7 minutes', 'about 10:07'],
    [9.6, 'in about 10 minutes', 'about 10:10'],
    [13, 'in about 13 minutes', 'about 10:13'],
    [14.4, 'in about 14 minutes', 'about 10:14'],
    [14.5, 'in about 15 minutes', 'about 10:15'],
    [16, 'in about 15 minutes', 'about 10:20'],
    [57, 'in about 55 minutes', 'about 11:00'],
    [58, 'in about 1 h 0 min', 'about 11:00'],
    [95, 'in about 1 h 35 min', 'about 11:35'],
  ];
  for (const [left, main, sub] of cases) assert.deepEqual(expected(t, minutes(left), now, clock), { main, sub }, String(left));
});

test('the two ways to say the expected time agree, and the time of day is never one that has passed', () => {
  const at = (ms: number) => String(ms);
  for (let start = 0; start < 60; start += 7) {
    const then = now + start * 1000;
    for (let left = 30; left < 870; left++) {
      const said = expected(t, then + left * 1000, then, at);
      const minutes = Number(/\d+/.exec(said.main)![0]);
      const clock = Number(/\d+/.exec(said.sub)![0]);
      assert.ok(Math.abs(then + minutes * 60_000 - clock) <= 60_000 && clock > then, `${left} s from second ${start}: ${said.main}, ${clock - now} ms`);
    }
  }
});

test('the age of a position', () => {
  const at = (s: number) => age(t, true, now - s * 1000, now, (ms) => shown(ms, now));
  assert.equal(at(-5), 'Position updated just now');
  assert.equal(at(9), 'Position updated just now');
  assert.equal(at(13), 'Position updated 10 s ago');
  assert.equal(at(59), 'Position updated 55 s ago');
  assert.equal(at(61), 'Position updated 1 min ago');
  assert.equal(at(299), 'Position updated 4 min ago');
  assert.equal(age(t, false, now - 600_000, now, (ms) => shown(ms, now)), 'Last seen 09:50');
});

test('a distance', () => {
  const cases: [number, string][] = [[3, '10 m'], [347, '350 m'], [949, '950 m'], [951, '1 km'], [1250, '1.3 km'], [9960, '10 km'], [12_400, '12 km']];
  for (const [m, want] of cases) assert.equal(length(t, m, 'en'), want, String(m));
  assert.equal(length(t, 2500, 'de'), '2,5 km');
});

test('another day is named', () => {
  assert.equal(shown(now, now), '10:00');
  assert.match(shown(now - 86_400_000, now), /28 Feb.*10:00/);
  assert.equal(clocks('en-GB', 'Europe/Berlin').clock(now), '11:00');
  assert.equal(typeof clocks('en-GB', 'Moon/Tranquility').clock(now), 'string');
});

test('the speaker says the newest, once a minute at most', () => {
  const said: string[] = [];
  const s = new Speaker((x) => said.push(x));
  s.offer('a', 0);
  s.offer('b', 10_000);
  s.offer('c', 59_999);
  s.tick(59_999);
  assert.deepEqual(said, ['a']);
  s.tick(60_000);
  assert.deepEqual(said, ['a', 'c']);
  s.offer('d', 61_000);
  s.offer('c', 90_000); // back to what was said: nothing is new
  s.tick(200_000);
  assert.deepEqual(said, ['a', 'c']);
});
