import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { translator } from '../src/shared/config';
import { age, clocks, expected, Late, length, Narrowing, planned, readerLocale, span, Speaker, Steady, stops } from '../src/track/words';

const t = translator(JSON.parse(readFileSync('texts/en.json', 'utf8')));
const times = clocks('en', 'UTC', ['en-GB']);
const { shown } = times;
const now = Date.parse('2026-03-01T10:00:00Z');
const minutes = (n: number) => now + n * 60_000;

test('an expected time is a span, and minutes when there are few, and never in the past', () => {
  const cases: [number, string, string][] = [
    [-30, 'any moment now', ''],
    [0, 'any moment now', ''],
    [0.4, 'any moment now', ''],
    [1, 'in about 1 minute', 'about 10:01'],
    [2.3, 'in about 2 minutes', 'about 10:02'],
    [7.4, 'in about 7 minutes', 'about 10:07'],
    [9.4, 'in about 9 minutes', 'about 10:09'],
    [9.5, 'between 10:05 and 10:10', ''],
    [13, 'between 10:10 and 10:15', ''],
    [20, 'between 10:15 and 10:25', ''],
    [40, 'between 10:30 and 10:50', ''],
    [58, 'between 10:45 and 11:10', ''],
    [95, 'between 11:15 and 11:55', ''],
  ];
  for (const [left, main, sub] of cases) assert.deepEqual(expected(t, minutes(left), now, times, true), { main, sub }, String(left));
});

test('an estimate of days is not told, and what was worked out by roads is', () => {
  const days = minutes(40 * 60);
  assert.equal(expected(t, days, now, times, true), null);
  assert.match(expected(t, days, now, times, false)!.main, /^between .*2 Mar.*18:00 and .*3 Mar.*10:00$/);
  assert.notEqual(expected(t, minutes(23 * 60), now, times, true), null);
});

test('minutes and the time of day agree, and that is never one that has passed', () => {
  const at = { ...times, clock: String };
  for (let start = 0; start < 60; start += 7) {
    const then = now + start * 1000;
    for (let left = 30; left < 570; left++) {
      const said = expected(t, then + left * 1000, then, at)!;
      const minutes = Number(/\d+/.exec(said.main)![0]);
      const clock = Number(/\d+/.exec(said.sub)![0]);
      assert.ok(Math.abs(then + minutes * 60_000 - clock) <= 60_000 && clock > then, `${left} s from second ${start}: ${said.main}, ${clock - now} ms`);
    }
  }
});

const five = 5 * 60_000;

test('a span holds the expected time, a fifth to either side, in steps of five minutes', () => {
  for (let start = 0; start < 600; start += 37) {
    const then = now + start * 1000;
    for (let left = 570; left < 20_000; left += 13) {
      const eta = then + left * 1000;
      const s = span(eta, then)!;
      const what = `${left} s from second ${start}: ${(s.from - now) / 60_000} to ${(s.to - now) / 60_000}`;
      assert.ok(s.from % five === 0 && s.to % five === 0 && s.to - s.from >= five, what);
      assert.ok(then < s.from && s.from <= eta && eta <= s.to, what);
      const half = Math.max(200 * left, five / 2);
      assert.ok(Math.abs(eta - half - s.from) <= five / 2 && Math.abs(s.to - eta - half) <= five, what);
    }
  }
  assert.equal(span(minutes(9.4), now), null);
});

test('a span that was told narrows while the time stays inside, and is made anew when it does not', () => {
  const told = (n: Narrowing, eta: number, at: number) => {
    const s = n.take(minutes(eta), minutes(at))!;
    return [(s.from - now) / 60_000, (s.to - now) / 60_000];
  };
  const n = new Narrowing();
  assert.deepEqual(told(n, 60, 0), [50, 70]);
  assert.deepEqual(told(n, 63, 0), [50, 70]); // alone it were 50 to 75
  assert.deepEqual(told(n, 63, 30), [55, 70]);
  assert.deepEqual(told(n, 59, 30), [55, 65]);
  assert.deepEqual(told(n, 63, 31), [55, 65]); // wavering does not widen it
  assert.deepEqual(told(n, 72, 32), [65, 80]);
  assert.deepEqual(told(n, 64, 32), [60, 70]);
  assert.equal(n.take(minutes(64), minutes(55)), null);
});

test('what was agreed, until it has passed', () => {
  const at = (n: number) => (Number.isFinite(n) ? minutes(n) : NaN);
  const cases: [number, number, string][] = [
    [60, 180, 'between 11:00 and 13:00'],
    [-60, 60, 'between 09:00 and 11:00'],
    [NaN, 60, 'by 11:00'],
    [60, 60, 'by 11:00'],
    [90, 60, 'by 11:00'],
    [60, NaN, 'from 11:00'],
    [NaN, NaN, ''],
    [-60, -1, ''],
    [NaN, -1, ''],
  ];
  for (const [from, to, want] of cases) assert.equal(planned(t, at(from), at(to), now, times), want, `${from} to ${to}`);
  assert.match(planned(t, minutes(1440), minutes(1560), now, times), /^Mon.*2 Mar, between 10:00 and 12:00$/); // the day once
  assert.match(planned(t, minutes(1440), minutes(2940), now, times), /^between Mon.*2 Mar, 10:00 and Tue.*3 Mar, 11:00$/);
  assert.match(planned(t, NaN, minutes(1440), now, times), /^by Mon.*2 Mar, 10:00$/);
  const german = translator(JSON.parse(readFileSync('texts/de.json', 'utf8')));
  assert.equal(planned(german, minutes(60), minutes(180), now, times), 'zwischen 11:00 und 13:00');
});

test('a round that goes on past midnight', () => {
  const evening = Date.parse('2026-02-28T22:40:00Z');
  const cases: [string, RegExp][] = [
    ['2026-03-01T00:07:00Z', /^00:07$/],
    ['2026-03-01T10:39:00Z', /^10:39$/],
    ['2026-03-01T10:40:00Z', /^Sun.*1 Mar, 10:40$/],
    ['2026-02-28T10:41:00Z', /^10:41$/],
    ['2026-02-28T10:40:00Z', /^Sat.*28 Feb, 10:40$/],
  ];
  for (const [at, want] of cases) assert.match(times.near(Date.parse(at), evening), want);
});

test('the stops before', () => {
  const german = translator(JSON.parse(readFileSync('texts/de.json', 'utf8')));
  const cases: [number | undefined, string, string][] = [
    [undefined, '', ''],
    [0, 'You are next', 'Sie sind als Nächstes dran'],
    [1, '1 stop before you', '1 Stopp vor Ihnen'],
    [3, '3 stops before you', '3 Stopps vor Ihnen'],
  ];
  for (const [n, en, de] of cases) assert.deepEqual([stops(t, n), stops(german, n)], [en, de]);
});

test('late is said once, and taken back only for a time that keeps the promise by minutes', () => {
  const l = new Late();
  assert.equal(l.take(NaN, minutes(90), now), false); // nothing was promised
  assert.equal(l.take(minutes(60), NaN, now), false);
  assert.equal(l.take(minutes(60), minutes(60), now), false);
  assert.equal(l.take(minutes(60), minutes(61), now), true);
  assert.equal(l.take(minutes(60), minutes(58), now), true);
  assert.equal(l.take(minutes(60), NaN, now), true);
  assert.equal(l.take(minutes(60), minutes(55), now), false);
  assert.equal(l.take(minutes(60), NaN, minutes(61)), true); // by the time itself
  assert.equal(l.take(minutes(60), minutes(10), minutes(61)), true);
  assert.equal(l.take(minutes(90), minutes(80), minutes(61)), false); // promised anew
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
  assert.equal(clocks('en', 'Europe/Berlin', ['en-GB']).clock(now), '11:00');
  assert.equal(typeof clocks('en', 'Moon/Tranquility', ['en-GB']).clock(now), 'string');
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

test('hours are counted as the reader is used to', () => {
  const afternoon = Date.parse('2026-03-01T14:35:00Z');
  const cases: [string, string[], RegExp][] = [
    ['en', ['en-GB', 'en-US', 'en'], /^14:35$/],
    ['en', ['en-US', 'en'], /^2:35\sPM$/],
    ['en', ['en', 'en-GB'], /^14:35$/], // the one with a country knows more
    ['en', ['en-AU'], /^2:35\spm$/i],
    ['en', ['en-IE', 'ga'], /^14:35$/],
    ['en', ['sv-SE', 'sv'], /^14:35$/], // English texts for want of Swedish ones, with Swedish hours
    ['en', ['de-DE', 'en-US'], /^2:35\sPM$/], // whose English is American
    ['de', ['de-AT', 'en-US'], /^14:35$/],
    ['de', ['en-US', 'de'], /^14:35$/],
    ['en', ['C', 'x_y', 'fr-FR'], /^14:35$/], // what is no language is passed over
  ];
  for (const [lang, languages, want] of cases) assert.match(clocks(lang, 'UTC', languages).clock(afternoon), want, languages.join());
  assert.match(clocks('en', 'UTC', ['en-GB']).shown(afternoon - 86_400_000, afternoon), /14:35/);
  assert.equal(length(t, 2500, readerLocale('de', ['de-CH']).locale), '2.5 km');
});

test('the expected time shown does not waver', () => {
  const s = new Steady();
  assert.equal(s.take(100_000), 100_000);
  assert.equal(s.take(140_000), 100_000);
  assert.equal(s.take(60_000), 100_000);
  assert.equal(s.take(145_000), 145_000);
  assert.ok(Number.isNaN(s.take(NaN)));
  assert.equal(s.take(144_000), 144_000);
});
