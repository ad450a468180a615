import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { detail, ended, here, moving, phase, placeLabel, readTracking, steps, type Tracking } from '../src/track/state';

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
    assert.equal(here(t), c.place === 'track.place.from' ? 'track.here.pickup' : 'track.here');
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
  })!;
  assert.deepEqual(t.place, { address: 'A' });
  assert.equal(t.position, undefined);
  assert.deepEqual(t.path, [[1, 2], [5, 6]]);
  assert.equal(t.eta, undefined);
});
