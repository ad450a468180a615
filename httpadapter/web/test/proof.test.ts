import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lacking, mendable, refusalOf, takesFile } from '../src/driver/evidence';
import { reasons, usual } from '../src/driver/fail';
import { apply, type Action, type Refused, type Task } from '../src/driver/model';
import { fit, longSide, mostBytes, NoPicture, within } from '../src/driver/picture';
import { draw, signed, type Stroke } from '../src/driver/signature';

const at = '2026-03-01T10:00:00.000Z';
const task = (more: Partial<Task> = {}): Task => ({ task_id: '1', type: 2, status: 'in_progress', drop: { address: 'D' }, ...more });

test('a picture keeps its shape within the longest side, and is never made larger', () => {
  const cases: [number, number, number, number][] = [
    [4000, 3000, 1600, 1200],
    [3000, 4000, 1200, 1600],
    [1600, 900, 1600, 900],
    [20, 10, 20, 10],
    [50_000, 3, 1600, 1],
  ];
  for (const [width, height, w, h] of cases) assert.deepEqual(fit({ width, height }, longSide), { width: w, height: h }, `${width} × ${height}`);
});

test('a photo gets the best quality that the server takes', async () => {
  const blob = (size: number) => ({ size }) as Blob;
  const sizes = async (size: (longest: number, quality: number) => number) => {
    const tried: [number, number][] = [];
    const last = await within(async (longest, quality) => (tried.push([longest, quality]), blob(size(longest, quality))));
    assert.ok(last.size <= mostBytes);
    return tried;
  };
  assert.deepEqual(await sizes(() => mostBytes), [[1600, 0.82]]);
  assert.deepEqual(await sizes((_, q) => (q > 0.6 ? mostBytes + 1 : 1000)), [[1600, 0.82], [1600, 0.7], [1600, 0.55]]);
  assert.deepEqual((await sizes((longest) => (longest > 800 ? 1e8 : 1000))).at(-1), [800, 0.82]);
  await assert.rejects(within(async () => null), NoPicture);
  await assert.rejects(within(async () => blob(1e9)), NoPicture);
});

test('a touch is no signature; a stroke is', () => {
  assert.equal(signed([]), false);
  assert.equal(signed([[[0.5, 0.2]]]), false);
  assert.equal(signed([[[0.5, 0.2], [0.51, 0.2], [0.52, 0.2]]]), false, 'a blot');
  assert.equal(signed([[[0.1, 0.2], [0.3, 0.25], [0.6, 0.2]]]), true);
  assert.equal(signed([[[0.1, 0.1]], [[0.1, 0.3]], [[0.1, 0.4]]]), true, 'several strokes');
});

test('a signature is drawn at any size, dark on white', () => {
  const strokes: Stroke[] = [[[0, 0], [0.5, 0.25], [1, 0.5]], [[0.5, 0.1]]];
  for (const width of [300, 600]) {
    const done: unknown[] = [];
    const note = (name: string) => (...args: number[]) => void done.push([name, ...args]);
    const c = { fillRect: note('fill'), beginPath: note('begin'), moveTo: note('move'), lineTo: note('line'), quadraticCurveTo: note('curve'), stroke: note('stroke') };
    draw(c as unknown as CanvasRenderingContext2D, strokes, width);
    const w = width;
    assert.deepEqual(done, [
      ['fill', 0, 0, w, w / 2],
      ['begin'], ['move', 0, 0], ['curve', 0, 0, w / 4, w / 8], ['curve', w / 2, w / 4, (3 * w) / 4, (3 * w) / 8], ['line', w, w / 2], ['stroke'],
      ['begin'], ['move', w / 2, w / 10], ['line', w / 2, w / 10], ['stroke'],
    ]);
  }
});

test('what lacks for a task to succeed', () => {
  const all = task({ proof: ['photo', 'signature', 'name', 'pin'] });
  assert.deepEqual(lacking(task(), {}), []);
  assert.deepEqual(lacking(all, {}), ['photo', 'signature', 'name', 'pin']);
  assert.deepEqual(lacking(all, { files: ['signature'], received_by: '  ', pin: '123' }), ['photo', 'name', 'pin']);
  assert.deepEqual(lacking(all, { files: ['photo', 'signature'], received_by: 'Ada', pin: '0123' }), []);
  const given = { ...all, received_by: 'Ada', proofs: [{ id: 'p', kind: 'photo' as const, at }] };
  assert.deepEqual(lacking(given, { pin: '12a4' }), ['signature', 'pin']);
});

test('files are taken while the task is under way and after its end, ten at most', () => {
  const proofs = Array(9).fill({ id: 'p', kind: 'photo', at });
  assert.equal(takesFile(task(), 0), true);
  assert.equal(takesFile(task({ proofs }), 0), true);
  assert.equal(takesFile(task({ proofs }), 1), false);
  assert.equal(takesFile(task({ status: 'assigned' }), 0), false);
  assert.equal(takesFile(task({ status: 'completed', outcome: 'failed' }), 0), true);
  assert.equal(takesFile(task({ status: 'completed', outcome: 'cancelled' }), 0), false);
});

test('a picture on its way counts as given', () => {
  const world = { duty: true, tasks: [task({ proofs: [{ id: 'a', kind: 'photo', at }] })], trips: [], requests: [] };
  const seen = apply(world, [{ type: 'proof', task_id: '1', kind: 'signature', file: 1, at }]).tasks[0]!;
  assert.deepEqual(seen.proofs, [{ id: 'a', kind: 'photo', at }, { id: '', kind: 'signature', at }]);
  assert.equal(world.tasks[0]!.proofs!.length, 1, 'what the server said is left as it is');
});

test('why a step was refused, and what its driver can put right', () => {
  const end: Action = { type: 'complete', task_id: '1', outcome: 'succeeded', at };
  const picture: Action = { type: 'proof', task_id: '1', kind: 'photo', file: 1, at };
  const cases: [Action, number, string, string, string | null, boolean][] = [
    [end, 409, 'pin', 'This is not the PIN of the task.', 'pin', true],
    [end, 409, 'pin', 'Too many wrong PINs were tried; only the dispatcher can complete the task now.', 'locked', true],
    [end, 409, 'pin', 'The task needs more proof before it can succeed; it lacks: pin.', 'lacks.pin', true],
    [end, 409, 'received_by', 'The task needs more proof before it can succeed; it lacks: name, pin.', 'lacks.name', true],
    [end, 409, 'proof', 'The task needs more proof before it can succeed; it lacks: photo.', 'lacks.picture', true],
    [end, 409, '', 'The task is completed already, with another outcome.', 'changed', false],
    [end, 404, 'task_id', '', 'gone', false],
    [end, 400, 'received_by', 'received_by is too long.', null, false],
    [picture, 413, '', 'The picture has more than 40 million pixels.', 'picture', false],
    [picture, 415, '', '', 'picture', false],
    [picture, 400, '', '', 'picture', false],
    [picture, 409, '', '', 'changed', false],
    [{ type: 'undo', task_id: '1', step: 'start', at }, 409, '', 'The step was taken too long ago to be taken back; ask the dispatcher.', 'late', false],
    [{ type: 'undo', task_id: '1', step: 'start', at }, 404, 'task_id', '', 'gone', false],
    [{ type: 'reorder', from: [], to: [], at }, 409, '', '', 'route', false],
    [{ type: 'reorder', from: [], to: [], at }, 400, 'stops', 'stops is required.', null, false],
    [{ type: 'availability', availability: true, at }, 404, '', '', null, false],
  ];
  for (const [action, status, field, message, why, can] of cases) {
    const r: Refused = { id: 1, driver: 'd', action, status, field, message };
    assert.equal(refusalOf(r), why, `${action.type} ${status} ${message}`);
    assert.equal(mendable(r), can, `${action.type} ${status} ${message}`);
  }
});

test('reasons are in the words of the page; one that it leaves out is not offered', () => {
  const words = { not_home: 'Nobody was at home', other: 'Another reason', gate_locked: 'The gate was locked' };
  assert.deepEqual(reasons([...usual, 'gate_locked', 'no_lift'], words), [
    { code: 'not_home', text: 'Nobody was at home' },
    { code: 'gate_locked', text: 'The gate was locked' },
    { code: 'no_lift', text: 'no lift' },
    { code: 'other', text: 'Another reason' },
  ]);
});
