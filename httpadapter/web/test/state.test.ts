import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { asOf, atDoor, detail, earlier, ended, etaLabel, fetching, moved, moving, phase, pin, placeLabel, readTracking, silent, steps, stopsBefore, takesNotes, type Tracking } from '../src/track/state';

interface Case {
  name: string;
  tracking: Tracking;
  phase: string;
  place: string;
  detail: string;
  steps: string[];
}

// The server's rendering is held to the same file by TestPhases.
const cases = JSON.parse(readFileSync('testdata/phases.json', 'utf8')) as Case[];

for (const c of cases) {
  test('phases: ' + c.name, () => {
    const t = readTracking(c.tracking)!;
    assert.equal(phase(t), c.phase);
    assert.equal(placeLabel(t), c.place);
    assert.equal(etaLabel(t), c.phase === 'fetching' || c.phase === 'collecting' ? 'track.eta.label.fetching' : 'track.eta.label');
    assert.equal(detail(t), c.detail);
    assert.deepEqual(steps(t).map((s) => [s.key, s.state, s.at].filter(Boolean).join(' ')), c.steps);
    assert.equal(ended(t) && moving(t), false);
  });
}

test('what is not well formed is left out', () => {
  for (const v of [null, 1, 'x', [], {}, { kind: 'task' }, { kind: 'bus', status: 'created' }]) assert.equal(readTracking(v), null);
  const t = readTracking({
    kind: 'task',
    status: 'in_progress',
    place: { address: 'A', lnglat: [181, 0] },
    position: { lnglat: [1, 2, 3], time: '2026-01-01T00:00:00.000Z' },
    path: [[1, 2], ['3', 4], null, [5, 6]],
    eta: { time: 'soon' },
    stops_before: -1,
    window: 'today',
  })!;
  assert.deepEqual(t.place, { address: 'A' });
  assert.equal(t.position, undefined);
  assert.deepEqual(t.path, [[1, 2], [5, 6]]);
  assert.equal(t.eta, undefined);
  assert.equal(t.stops_before, undefined);
  assert.equal(t.window, undefined);
});

const at = (time: string) => `2026-03-01T09:${time}.000Z`;
const onTheWay = readTracking({
  kind: 'task',
  type: 2,
  status: 'in_progress',
  leg: 'drop',
  order_id: '7',
  position: { lnglat: [1, 1], time: at('20:00'), live: true },
  path: [[0, 1], [1, 1]],
  eta: { time: at('28:00'), computed_at: at('20:00'), source: 'estimate' },
})!;

test('a move lengthens the path, and replaces position and expected time', () => {
  const eta = { time: at('27:00'), computed_at: at('20:10'), source: 'estimate' };
  const position = { lnglat: [2, 1] as [number, number], time: at('20:10'), accuracy: 8, live: true };
  const next = moved(onTheWay, { position, path_add: [[1.5, 1], [2, 1]], eta })!;
  assert.deepEqual(next, { ...onTheWay, position, path: [[0, 1], [1, 1], [1.5, 1], [2, 1]], eta });
  assert.equal(onTheWay.path!.length, 2);
  const silent = moved(next, { position: { ...position, live: false }, path_add: [] })!;
  assert.equal(silent.eta, undefined);
  assert.deepEqual(silent.path, next.path);
});

test('a move says how many stops come first and how far it has come; what it leaves out is so no more', () => {
  const position = { lnglat: [2, 1] as [number, number], time: at('20:10'), live: true };
  const first = moved(onTheWay, { position, path_add: [], stops_before: 2, phase: 'to_drop' })!;
  assert.deepEqual([first.stops_before, first.phase, stopsBefore(first)], [2, 'to_drop', 2]);
  const next = moved(first, { position, path_add: [], stops_before: 0, phase: 'arriving' })!;
  assert.deepEqual([next.stops_before, next.phase, stopsBefore(next)], [0, 'arriving', undefined]);
  assert.equal(phase(next), 'arriving');
  const last = moved(next, { position, path_add: [] })!;
  assert.deepEqual(['stops_before' in last, 'phase' in last, phase(last)], [false, false, 'on_the_way']);
});

test('a move that is not well formed is none', () => {
  const position = { lnglat: [2, 1], time: at('20:10') };
  for (const v of [null, 7, {}, { path_add: [] }, { position }, { position, path_add: [[1, 200]] }, { position: { lnglat: [1], time: at('20:10') }, path_add: [] }]) {
    assert.equal(moved(onTheWay, v), null, JSON.stringify(v));
  }
});

test('a page that hears nothing sees by itself that a position is not live any more', () => {
  const ms = Date.parse(at('20:00'));
  assert.equal(asOf(onTheWay, ms + 300_000), onTheWay);
  const later = asOf(onTheWay, ms + 320_000);
  assert.equal(silent(later), true);
  assert.equal(later.eta, undefined);
  assert.equal(detail(later), 'track.detail.silent');
  assert.equal(asOf({ ...onTheWay, position: undefined }, ms + 320_000).eta, onTheWay.eta);
  const door = { ...onTheWay, eta: { ...onTheWay.eta!, time: at('20:00') } };
  assert.equal(atDoor(door), true);
  assert.equal(atDoor(asOf(door, ms + 320_000)), false);
});

test('a driver who fetches the goods first is not on the way here', () => {
  assert.equal(fetching({ ...onTheWay, type: 3, leg: 'pickup' }), true);
  assert.equal(fetching({ ...onTheWay, type: 3, leg: 'drop' }), false);
  assert.equal(fetching({ ...onTheWay, type: 1, leg: 'pickup' }), false);
});

test('the first try, the PIN and who may write', () => {
  assert.equal(earlier(onTheWay), '');
  assert.equal(earlier({ ...onTheWay, earlier: { outcome: 'failed' } }), 'track.step.not_delivered');
  assert.equal(earlier({ ...onTheWay, type: 1, earlier: { outcome: 'failed' } }), 'track.step.not_collected');
  assert.equal(earlier({ ...onTheWay, earlier: { outcome: 'cancelled' } }), 'track.step.cancelled');
  assert.equal(pin(onTheWay), '');
  assert.equal(pin({ ...onTheWay, pin: '0471' }), '0\u00a04\u00a07\u00a01');
  assert.equal(takesNotes(onTheWay), true);
  assert.equal(takesNotes({ ...onTheWay, status: 'completed' }), false);
  assert.equal(takesNotes({ ...onTheWay, kind: 'trip', status: '1' }), false);
});
