import 'fake-indexeddb/auto';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Api } from '../src/driver/api';
import type { Action, Fix } from '../src/driver/model';
import { Outbox } from '../src/driver/outbox';
import { Store } from '../src/driver/store';

const at = '2026-03-01T10:00:00.000Z';
const fix = (n: number): Fix => ({ lnglat: [n, 0], time: at });
let databases = 0;

type Reply = (path: string, body: any) => { status: number; data?: unknown; message?: string; retryAfter?: string } | Error;

/** An outbox of driver "d" before a server that answers as told. */
async function setUp(t: TestContext, reply: Reply) {
  const store = await Store.open('outbox-' + databases++);
  t.after(() => store.close());
  const sent: { path: string; body: any }[] = [];
  const log: string[] = [];
  const get: typeof fetch = async (url, init) => {
    const path = String(url);
    const body = init?.body ? JSON.parse(String(init.body)) : undefined;
    const r = reply(path, body);
    if (r instanceof Error) throw r;
    sent.push({ path, body });
    const headers: Record<string, string> = r.retryAfter ? { 'Retry-After': r.retryAfter } : {};
    return Response.json({ success: r.status === 200, message: r.message ?? '', data: r.data ?? {} }, { status: r.status, headers });
  };
  const outbox = new Outbox(store, new Api('', get), 'd', {
    onChange: () => {},
    onDone: (a) => log.push('done ' + a.type),
    onRefused: (a, status) => log.push(`refused ${a.type} ${status}`),
    onOnline: (ok) => log.push(ok ? 'online' : 'offline'),
    onRevoked: () => log.push('revoked'),
  });
  t.after(() => outbox.stop());
  const add = async (e: Action | Fix) => store.add('type' in e ? { driver: 'd', kind: 'action', action: e } : { driver: 'd', kind: 'fix', fix: e });
  return { store, outbox, sent, log, add };
}

test('everything goes in the order in which it happened', async (t) => {
  const { store, outbox, sent, log, add } = await setUp(t, () => ({ status: 200 }));
  await add({ type: 'availability', availability: true, at });
  await add(fix(1));
  await add(fix(2));
  await add({ type: 'start', task_id: 'a/b', at, lnglat: [1, 2] });
  await add(fix(3));
  await add({ type: 'complete', task_id: 'a/b', outcome: 'failed', reason: 'Refused', at });
  await add({ type: 'availability', availability: false, at });
  await outbox.flush();
  assert.deepEqual(sent, [
    { path: '/v1/driver/availability', body: { availability: true, at } },
    { path: '/v1/driver/fixes', body: { fixes: [fix(1), fix(2)] } },
    { path: '/v1/driver/tasks/a%2Fb/start', body: { at, lnglat: [1, 2] } },
    { path: '/v1/driver/fixes', body: { fixes: [fix(3)] } },
    { path: '/v1/driver/tasks/a%2Fb/complete', body: { at, outcome: 'failed', reason: 'Refused' } },
    { path: '/v1/driver/availability', body: { availability: false, at } },
  ]);
  assert.equal(await store.count(), 0);
  assert.deepEqual(log.filter((l) => l.startsWith('done')), ['done availability', 'done start', 'done complete', 'done availability']);
});

test('without a network nothing is lost, and the next try sends it all', async (t) => {
  let up = false;
  const { store, outbox, sent, log, add } = await setUp(t, () => (up ? { status: 200 } : new TypeError('network')));
  await add(fix(1));
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  assert.equal(await store.count(), 2);
  assert.deepEqual(log, ['offline']);
  up = true;
  await outbox.flush();
  assert.equal(await store.count(), 0);
  assert.equal(sent.length, 2);
});

for (const status of [408, 429, 500, 503]) {
  test(`a ${status} leaves the entry where it is`, async (t) => {
    const { store, outbox, add } = await setUp(t, () => ({ status, retryAfter: '7' }));
    await add({ type: 'start', task_id: '1', at });
    await outbox.flush();
    assert.equal(await store.count(), 1);
  });
}

test('a captive portal is no answer', async (t) => {
  const store = await Store.open('outbox-' + databases++);
  t.after(() => store.close());
  const outbox = new Outbox(store, new Api('', () => Promise.resolve(new Response('<html>'))), 'd', { onChange() {}, onDone() {}, onRefused() {}, onOnline() {}, onRevoked() {} });
  t.after(() => outbox.stop());
  await store.add({ driver: 'd', kind: 'fix', fix: fix(1) });
  await outbox.flush();
  assert.equal(await store.count(), 1);
});

test('what the server refuses does not hold up the rest', async (t) => {
  const { store, outbox, log, add } = await setUp(t, (path) => (path.includes('/start') ? { status: 409, message: 'no' } : path.includes('/decline') ? { status: 404 } : { status: 200 }));
  await add({ type: 'start', task_id: '1', at });
  await add({ type: 'decline', task_id: '2', at });
  await add(fix(1));
  await outbox.flush();
  assert.equal(await store.count(), 0);
  assert.deepEqual(log.filter((l) => l !== 'online'), ['refused start 409', 'done decline']);
});

test('one fix that makes a batch unreadable is found and dropped alone', async (t) => {
  const kept: number[] = [];
  const { store, outbox, add } = await setUp(t, (_path, body) => {
    const numbers = body.fixes.map((f: Fix) => f.lnglat[0]);
    if (numbers.includes(13)) return { status: 400 };
    kept.push(...numbers);
    return { status: 200 };
  });
  for (let n = 0; n < 40; n++) await add(fix(n));
  await outbox.flush();
  assert.equal(await store.count(), 0);
  assert.deepEqual(kept, [...Array(40).keys()].filter((n) => n !== 13));
});

test('a token that is revoked stops the sending and loses nothing', async (t) => {
  const { store, outbox, sent, log, add } = await setUp(t, () => ({ status: 401 }));
  await add(fix(1));
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  await outbox.flush();
  assert.equal(await store.count(), 2);
  assert.equal(sent.length, 1);
  assert.equal(log.at(-1), 'revoked');
});

test('entries of another driver stay until that one has joined again', async (t) => {
  const { store, outbox, sent, add } = await setUp(t, () => ({ status: 200 }));
  await store.add({ driver: 'other', kind: 'action', action: { type: 'start', task_id: 'x', at } });
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/tasks/1/start']);
  assert.equal(await store.count(), 1);
  assert.deepEqual(await store.actions('other'), [{ type: 'start', task_id: 'x', at }]);
});

test('a trip started and stopped offline is stopped by the id that the start brings', async (t) => {
  const { outbox, sent, add } = await setUp(t, (path) => ({ status: 200, data: path === '/v1/driver/trips' ? { trip: { _id: 'T1' } } : {} }));
  await add({ type: 'trip_start', tracking_id: 'run', at });
  await add({ type: 'trip_stop', tracking_id: 'run', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/trips', '/v1/driver/trips/T1/stop']);
});

test('a trip whose id is not known is looked up', async (t) => {
  const { outbox, sent, add } = await setUp(t, (path) => ({ status: 200, data: path.includes('?') ? { trips: [{ _id: 'T2', tracking_id: 'a b' }] } : {} }));
  await add({ type: 'trip_stop', tracking_id: 'a b', at });
  await add({ type: 'trip_stop', tracking_id: 'ended', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/trips?status=1&tracking_id=a%20b', '/v1/driver/trips/T2/stop', '/v1/driver/trips?status=1&tracking_id=ended']);
});

test('what is kept outlives the app', async () => {
  const name = 'outbox-' + databases++;
  let store = await Store.open(name);
  await store.set('join', { secret: 's', nonce: 'n' });
  await store.add({ driver: 'd', kind: 'fix', fix: fix(1) });
  store.close();
  store = await Store.open(name);
  assert.deepEqual(await store.get('join'), { secret: 's', nonce: 'n' });
  assert.equal((await store.head('d', 10)).length, 1);
  store.close();
});
