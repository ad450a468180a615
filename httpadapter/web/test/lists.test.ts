import assert from 'node:assert/strict';
import { test } from 'node:test';
import { safeCell, separatorOf, writeCSV } from '../src/board/csv';
import { momentAt, readPath, type PathFix } from '../src/board/replay';
import { Search, type ListAnswer } from '../src/board/search';
import { readSheet } from '../src/board/sheet';
import { readPaste } from '../src/board/paste';

test('no cell is a formula', () => {
  for (const bad of ['=1+1', '+49 151', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '\u00a0=1', '＝1', '=cmd|"/c calc"!A0']) assert.equal(safeCell(bad), "'" + bad, bad);
  for (const good of ['', 'a', '#1001', "'a", '1-2', 'a=b', '12 Beach Road']) assert.equal(safeCell(good), good);
  assert.equal(writeCSV([['=1', 'a,=2'], ['-4', '"=3']], ','), '\uFEFF\'=1,"a,=2"\r\n\'-4,"""=3"\r\n');
});

test('a list that is written is read again', () => {
  const rows = [['Order', 'Address', 'Phone'], ['#1', 'Weg 2; "hinten"\n3. OG', '+49 151 2223334'], ['2', 'a,b', '']];
  for (const separator of [',', ';'] as const) {
    const text = writeCSV(rows, separator);
    assert.ok(text.startsWith('\uFEFF'));
    assert.deepEqual(readSheet(text).rows.map((r) => r.cells), [rows[0], ['#1', 'Weg 2; "hinten"\n3. OG', "'+49 151 2223334"], rows[2]]);
    const task = readPaste(text, { now: 0, zone: 'UTC', monthFirst: false, autoAssign: false }).drafts[0]!.task;
    assert.equal(task.drop?.customer?.mobile, '+49 151 2223334');
  }
  assert.equal(separatorOf('de'), ';');
  assert.equal(separatorOf('en'), ',');
});

const path: PathFix[] = [
  { at: [13, 52], time: 0 },
  { at: [13.01, 52], time: 10_000 },
  { at: [13.01, 52], time: 20_000 },
  { at: [13.01, 52.02], time: 220_000 },
];

test('between two fixes he went straight', () => {
  assert.equal(momentAt([], 5), null);
  assert.deepEqual(momentAt(path, -5), { at: [13, 52], heading: null, silent: false, passed: 0 });
  const half = momentAt(path, 5_000)!;
  assert.ok(Math.abs(half.at[0] - 13.005) < 1e-12 && half.at[1] === 52);
  assert.ok(Math.abs(half.heading! - 90) < 0.1);
  assert.equal(half.silent, false);
  assert.equal(half.passed, 1);
  assert.deepEqual(momentAt(path, 15_000), { at: [13.01, 52], heading: null, silent: false, passed: 2 });
  const silent = momentAt(path, 120_000)!;
  assert.ok(silent.silent && Math.abs(silent.at[1] - 52.01) < 1e-9);
  assert.deepEqual(momentAt(path, 220_000), { at: [13.01, 52.02], heading: null, silent: false, passed: 4 });
  assert.deepEqual(momentAt(path, 1e9)!.at, [13.01, 52.02]);
});

test('a way over the date line is the short one', () => {
  const [lng, lat] = momentAt([{ at: [179.9, 0], time: 0 }, { at: [-179.9, 0], time: 10 }], 5)!.at;
  assert.ok(Math.abs(Math.abs(lng) - 180) < 1e-9 && lat === 0);
});

test('a path is read in order of time', () => {
  assert.deepEqual(readPath([{ lnglat: [2, 1], time: '1970-01-01T00:00:02.000Z' }, { lnglat: [1, 1], time: '1970-01-01T00:00:01.000Z' }, { lnglat: [1], time: 'x' }, null]), [
    { at: [1, 1], time: 1000 },
    { at: [2, 1], time: 2000 },
  ]);
  assert.deepEqual(readPath(undefined), []);
});

const task = (id: string) => ({ task_id: id, type: 2 as const, status: 'created' as const, created_at: '', version: 1 });

/** A search whose answers are given by hand, in any order. */
function searching() {
  const asked: { q: string; answer: (a: ListAnswer) => void }[] = [];
  const s = new Search((query) => new Promise((answer) => asked.push({ q: String(query), answer })), () => {}, 0);
  const until = async (n: number) => {
    while (asked.length < n) await new Promise((r) => setTimeout(r, 1));
  };
  return { s, asked, until };
}

const settled = () => new Promise((r) => setImmediate(r));

test('only the newest question is answered', async () => {
  const { s, asked, until } = searching();
  s.type('h');
  assert.equal(s.state.kind, 'short');
  s.type('haupt');
  await until(1);
  s.type('hauptstr');
  await until(2);
  asked[1]!.answer({ kind: 'ok', data: { task_list: [task('b')], next: 'n' } });
  await settled();
  asked[0]!.answer({ kind: 'ok', data: { task_list: [task('a')] } });
  await settled();
  assert.deepEqual(s.state, { kind: 'found', found: { text: 'hauptstr', tasks: [task('b')], next: 'n' } });
  assert.equal(asked[1]!.q, 'q=hauptstr&limit=50');
  s.more();
  assert.equal(asked[2]!.q, 'q=hauptstr&limit=50&after=n');
  asked[2]!.answer({ kind: 'ok', data: { task_list: [task('c')] } });
  await settled();
  assert.deepEqual(s.state, { kind: 'found', found: { text: 'hauptstr', tasks: [task('b'), task('c')], next: '' } });
  s.more();
  assert.equal(asked.length, 3);
  s.type('');
  assert.equal(s.state.kind, 'idle');
});

test('what cannot be asked says so, and a search that is over stays so', async () => {
  const { s, asked, until } = searching();
  s.type('ab');
  await until(1);
  asked[0]!.answer({ kind: 'failed', message: 'No.' });
  await settled();
  assert.deepEqual(s.state, { kind: 'failed', message: 'No.' });
  s.type('abc');
  await until(2);
  s.stop();
  asked[1]!.answer({ kind: 'offline' });
  await settled();
  assert.equal(s.state.kind, 'asking');
  s.type('x'.repeat(300));
  await until(3);
  assert.equal(new URLSearchParams(asked[2]!.q).get('q')!.length, 100);
});
