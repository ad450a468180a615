import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api } from '../src/board/api';
import { readDrivers } from '../src/board/people';
import { readOf, readOn, type Read } from '../src/board/read';
import { readTask } from '../src/board/task';

/** An API that answers with these, one after the other; null is no answer at all. */
const api = (...answers: ({ status: number; body: unknown } | null)[]) =>
  new Api('', async () => {
    const a = answers.shift();
    if (!a) throw new TypeError('gone');
    return Response.json(a.body, { status: a.status });
  });

const refused = (status: number, code: string) => ({ status, body: { success: false, message: 'No.', error: { code } } });
const done = (data: unknown) => ({ status: 200, body: { success: true, message: 'Yes.', data } });
const task = { task_id: 'a', created_at: '2026-01-01T00:00:00.000Z' };

test('only the word that there is none says that a task is there no more', async () => {
  assert.deepEqual(await readTask(api(refused(404, 'not_found')), 'a'), { kind: 'none' });
  for (const answer of [null, refused(500, 'internal'), refused(503, 'unavailable'), refused(429, 'rate_limited'), refused(401, 'unauthorized'), { status: 502, body: 'Bad Gateway' }])
    assert.deepEqual(await readTask(api(answer), 'a'), { kind: 'unread' }, JSON.stringify(answer));
});

test('a task is read with its contacts, or not yet', async () => {
  const whole = { ...task, drop: { customer: { name: 'Anna' } } };
  assert.deepEqual(await readTask(api(done({ task }), done({ task_list: [{ task_id: 'b' }, whole] })), 'a'), { kind: 'read', value: whole });
  assert.deepEqual(await readTask(api(done({ task }), done({ task_list: [] })), 'a'), { kind: 'read', value: task });
  assert.deepEqual(await readTask(api(done({ task }), refused(500, 'internal')), 'a'), { kind: 'unread' });
});

test('what could not be read is read again, and each try is told', async () => {
  const stop = new AbortController();
  const calls = api(null, refused(503, 'unavailable'), done({ n: 1 }), done({ n: 2 }));
  const told: Read<number>[] = [];
  const waits: number[] = [];
  const pause = { wait: async (ms: number) => void waits.push(ms) };
  const read = async () => readOf(await calls.call('GET', '/'), (d) => d.n as number);
  await readOn(read, (r) => told.push(r), stop.signal, pause);
  assert.deepEqual(told, [{ kind: 'unread' }, { kind: 'unread' }, { kind: 'read', value: 1 }]);
  assert.equal(waits.length, 2);
  assert.ok(waits[0]! >= 500 && waits[1]! > waits[0]! / 2 && waits[1]! <= 2000, String(waits));
});

test('who looks on no more is told nothing', async () => {
  const stop = new AbortController();
  const told: unknown[] = [];
  await readOn(async () => (stop.abort(), { kind: 'unread' }), (r) => told.push(r), stop.signal);
  assert.deepEqual(told, []);
});

test('all drivers are read, or it is not said that there are none', async () => {
  const on = new AbortController().signal;
  const page = (ids: string[], has_more: boolean) => done({ drivers: ids.map((driver_id) => ({ driver_id })), has_more });
  assert.deepEqual(await readDrivers(api(page(['a'], true), page(['b'], false)), on), { kind: 'read', value: [{ driver_id: 'a' }, { driver_id: 'b' }] });
  assert.deepEqual(await readDrivers(api(page([], false)), on), { kind: 'read', value: [] });
  for (const answers of [[null], [page(['a'], true), refused(503, 'unavailable')]]) assert.deepEqual(await readDrivers(api(...answers), on), { kind: 'unread' });
});
