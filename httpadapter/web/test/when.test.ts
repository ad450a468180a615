import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPoint, toPoint, writePoint } from '../src/board/point';
import { dayOf, dayText, instant, monthFirst, readDay, readSpan, writeSpan, type Clock } from '../src/board/when';

const c: Clock = { now: Date.parse('2026-11-28T23:30:00Z'), zone: 'Europe/Berlin', monthFirst: false }; // the 29th there
const text = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 16));
const span = (s: string, clock = c, day?: string) => {
  const found = readSpan(s, clock, day ? readDay(day, clock)!.day : undefined);
  return found && [text(found.from), text(found.to)];
};

test('a span is read as people write it', () => {
  for (const [s, from, to] of [
    ['14:00-16:00', '2026-11-29T13:00', '2026-11-29T15:00'],
    ['14–16 Uhr', '2026-11-29T13:00', '2026-11-29T15:00'],
    ['14.00 Uhr bis 16.30 Uhr', '2026-11-29T13:00', '2026-11-29T15:30'],
    ['2–4 pm', '2026-11-29T13:00', '2026-11-29T15:00'],
    ['11-1 pm', '2026-11-29T10:00', '2026-11-29T12:00'],
    ['9:30 AM to 12:15 PM', '2026-11-29T08:30', '2026-11-29T11:15'],
    ['12 am - 12 pm', '2026-11-28T23:00', '2026-11-29T11:00'],
    ['22:00-02:00', '2026-11-29T21:00', '2026-11-30T01:00'],
    ['23:00-24:00', '2026-11-29T22:00', '2026-11-29T23:00'],
    ['bis 16 Uhr', undefined, '2026-11-29T15:00'],
    ['by 4 pm', undefined, '2026-11-29T15:00'],
    ['ab 8:00', '2026-11-29T07:00', undefined],
    ['14:00', '2026-11-29T13:00', undefined],
    ['28.11.2026 14:00 – 16:00', '2026-11-28T13:00', '2026-11-28T15:00'],
    ['Sa, 28.11.26 14:00', '2026-11-28T13:00', undefined],
    ['28.11. 14:00', '2026-11-28T13:00', undefined],
    ['28.11.2026 22:00 - 29.11.2026 01:00', '2026-11-28T21:00', '2026-11-29T00:00'],
    ['2026-12-01 14:00-16:00', '2026-12-01T13:00', '2026-12-01T15:00'],
    ['2026-12-01T14:00', '2026-12-01T13:00', undefined],
    ['2026-12-01T14:00Z', '2026-12-01T14:00', undefined],
    ['2026-12-01T14:00:00+02:00/2026-12-01T15:00:00.5Z', '2026-12-01T12:00', '2026-12-01T15:00'],
    ['today 8:00-9:00', '2026-11-29T07:00', '2026-11-29T08:00'],
    ['Morgen 8:00-9:00', '2026-11-30T07:00', '2026-11-30T08:00'],
    ['übermorgen 8 Uhr', '2026-12-01T07:00', undefined],
    ['12/31/2026 8:00', '2026-12-31T07:00', undefined],
    ['2/3/2027 8:00', '2027-03-02T07:00', undefined],
    ['', undefined, undefined],
  ] as const)
    assert.deepEqual(span(s), [from, to], s);
  assert.deepEqual(span('2/3/2027 8:00', { ...c, monthFirst: true }), ['2027-02-03T07:00', undefined]);
  assert.deepEqual(span('8-9', c, '1.7.2026'), ['2026-07-01T06:00', '2026-07-01T07:00']);
});

test('what is no span is none', () => {
  for (const s of ['soon', '14', '25:00', '14:60', '13 pm', '0 am', '30.2.2026 8:00', '2026-13-01 8:00', '14:00-', '14:00-16:00 or so', '14:00 16:00', 'bis', '1001', '#14:00', '2026-12-01T25:00Z', '12.5 kg'])
    assert.equal(span(s), null, s);
});

test('a day begins and ends where the board is', () => {
  assert.equal(dayText(dayOf(c.now, c.zone)), '2026-11-29');
  assert.equal(dayText(dayOf(c.now, 'America/New_York')), '2026-11-28');
  // The clocks change: 25 hours in autumn, 23 in spring.
  const day = (s: string) => readDay(s, c)!.day;
  assert.equal(instant(day('26.10.2026'), 0, 'Europe/Berlin') - instant(day('25.10.2026'), 0, 'Europe/Berlin'), 25 * 3_600_000);
  assert.equal(instant(day('30.3.2026'), 0, 'Europe/Berlin') - instant(day('29.3.2026'), 0, 'Europe/Berlin'), 23 * 3_600_000);
  assert.equal(text(instant(day('29.3.2026'), 180, 'Europe/Berlin')), '2026-03-29T01:00');
  assert.equal(instant(day('1.7.2026'), 90), new Date(2026, 6, 1, 1, 30).getTime());
});

test('the order of day and month is that of the country', () => {
  for (const [locale, first] of [['en-US', true], ['en-GB', false], ['en', false], ['de', false], ['de-AT', false]] as const) assert.equal(monthFirst(locale), first, locale);
});

test('a place is read as maps write it, latitude first', () => {
  for (const [s, want] of [
    ['52.52, 13.405', [13.405, 52.52]],
    ['52.52,13.405', [13.405, 52.52]],
    ['52,52; 13,405', [13.405, 52.52]],
    ['52,52 13,405', [13.405, 52.52]],
    ['-33.9 / 18.4', [18.4, -33.9]],
    ['52.52° N, 13.405° E', [13.405, 52.52]],
    ['52.52°N 13.405°O', [13.405, 52.52]],
    ['S 33.9, W 18.4', [-18.4, -33.9]],
    ['geo:52.5,13.4', [13.4, 52.5]],
  ] as const)
    assert.deepEqual(readPoint(s), want, s);
  for (const s of ['', '52.52', '91, 13', '13, 181', '0, 0', 'a, b', '52.52, 13.405, 3', '12 Beach Road', '10115 Berlin']) assert.equal(readPoint(s), null, s);
  assert.equal(toPoint(NaN, 13), null);
  assert.equal(writePoint([13.4050001234, 52.52]), '52.52, 13.405');
  assert.deepEqual(readPoint(writePoint([-0.00001, -33.9])), [-0.00001, -33.9]);
});

test('a span that is written is read again', () => {
  const at = (s: string) => Date.parse(s);
  for (const span of [
    {},
    { from: at('2026-11-28T13:00Z') },
    { to: at('2026-11-28T13:30Z') },
    { from: at('2026-11-28T13:00Z'), to: at('2026-11-28T15:00Z') },
    { from: at('2026-11-28T22:00Z'), to: at('2026-11-29T01:00Z') },
  ])
    for (const until of ['by', 'bis'] as const)
      for (const zone of ['Europe/Berlin', 'America/New_York', undefined]) assert.deepEqual(readSpan(writeSpan(span, until, zone), { ...c, zone }), span, JSON.stringify(span) + zone);
});
