import 'fake-indexeddb/auto';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Api } from '../src/driver/api';
import { calm } from '../src/driver/guard';
import type { Action, FileKind, Fix } from '../src/driver/model';
import { Outbox } from '../src/driver/outbox';
import { Store } from '../src/driver/store';

const at = '2026-03-01T10:00:00.000Z';
const fix = (n: number): Fix => ({ lnglat: [n, 0], time: at });
let databases = 0;

type Reply = (path: string, body: any) => { status: number; data?: unknown; message?: string; field?: string; retryAfter?: string } | Error;

/** An outbox of driver "d" before a server that answers as told. */
async function setUp(t: TestContext, reply: Reply) {
  const store = await Store.open('outbox-' + databases++);
  const sent: { path: string; body: any }[] = [];
  const log: string[] = [];
  const get: typeof fetch = async (url, init) => {
    const path = String(url);
    const body = typeof init?.body === 'string' ? JSON.parse(init.body) : (init?.body ?? undefined);
    const r = reply(path, body);
    if (r instanceof Error) throw r;
    sent.push({ path, body });
    const headers: Record<string, string> = r.retryAfter ? { 'Retry-After': r.retryAfter } : {};
    return Response.json({ success: r.status === 200, message: r.message ?? '', data: r.data ?? {}, error: { field: r.field } }, { status: r.status, headers });
  };
  const outbox = new Outbox(store, new Api('', get), 'd', {
    onChange: () => {},
    onDone: (a) => log.push('done ' + a.type),
    onRefused: () => log.push('refused'),
    onOnline: (ok) => log.push(ok ? 'online' : 'offline'),
    onRevoked: () => log.push('revoked'),
  });
  t.after(async () => {
    outbox.stop();
    await outbox.flush(); // one that is at work still reads from the store
    store.close();
  });
  const picture = (task_id: string, kind: FileKind, byte: number) => store.keepPicture({ driver: 'd', task_id, kind, type: 'image/jpeg', data: new Uint8Array([byte]) });
  const add = async (e: Action | Fix) => store.add('type' in e ? { driver: 'd', kind: 'action', action: e } : { driver: 'd', kind: 'fix', fix: e });
  return { store, outbox, sent, log, add, picture };
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
  assert.equal(await store.count('d'), 0);
  assert.deepEqual(log.filter((l) => l.startsWith('done')), ['done availability', 'done start', 'done complete', 'done availability']);
});

test('without a network nothing is lost, and the next try sends it all', async (t) => {
  let up = false;
  const { store, outbox, sent, log, add } = await setUp(t, () => (up ? { status: 200 } : new TypeError('network')));
  await add(fix(1));
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  assert.equal(await store.count('d'), 2);
  assert.deepEqual(log, ['offline']);
  up = true;
  await outbox.flush();
  assert.equal(await store.count('d'), 0);
  assert.equal(sent.length, 2);
});

test('where the store of the phone fails for a moment, what it has kept is sent at the next try', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let come!: () => void;
  const came = new Promise<void>((done) => (come = done));
  const { store, outbox, sent, add } = await setUp(t, () => (come(), { status: 200 }));
  await add(fix(1));
  const warned = t.mock.method(console, 'warn', () => {});
  const lost = t.mock.method(store, 'head', () => Promise.reject(new DOMException('Connection to Indexed Database server lost', 'UnknownError')));
  await outbox.flush();
  assert.equal(warned.mock.callCount(), 1);
  assert.equal(await store.count('d'), 1);
  lost.mock.restore();
  t.mock.timers.tick(1_000);
  await came; // by itself
  await outbox.flush();
  assert.equal(await store.count('d'), 0);
  assert.equal(sent.length, 1);
});

for (const status of [408, 429, 500, 503]) {
  test(`a ${status} leaves the entry where it is`, async (t) => {
    const { store, outbox, add } = await setUp(t, () => ({ status, retryAfter: '7' }));
    await add({ type: 'start', task_id: '1', at });
    await outbox.flush();
    assert.equal(await store.count('d'), 1);
  });
}

test('a captive portal is no answer', async (t) => {
  const store = await Store.open('outbox-' + databases++);
  const outbox = new Outbox(store, new Api('', () => Promise.resolve(new Response('<html>'))), 'd', { onChange() {}, onDone() {}, onRefused() {}, onOnline() {}, onRevoked() {} });
  t.after(() => (outbox.stop(), store.close()));
  await store.add({ driver: 'd', kind: 'fix', fix: fix(1) });
  await outbox.flush();
  assert.equal(await store.count('d'), 1);
});

test('what the server refuses does not hold up the rest', async (t) => {
  const { store, outbox, log, add } = await setUp(t, (path) => (path.includes('/start') ? { status: 409, message: 'no' } : path.includes('/decline') ? { status: 404 } : { status: 200 }));
  const start: Action = { type: 'start', task_id: '1', at, about: '#1001' };
  await add(start);
  await add({ type: 'decline', task_id: '2', at });
  await add(fix(1));
  await outbox.flush();
  assert.equal(await store.count('d'), 0);
  assert.deepEqual(log.filter((l) => l !== 'online'), ['refused', 'done decline']);
  const refused = await store.refused('d');
  assert.deepEqual(refused.map(({ id: _, ...r }) => r), [{ driver: 'd', action: start, status: 409, message: 'no' }]);
  assert.deepEqual(await store.refused('other'), []);
  await store.dismiss(refused[0]!.id);
  assert.deepEqual(await store.refused('d'), []);
});

test('the application is told of a step that was refused, and when its driver has seen it', async (t) => {
  let up = true;
  const { store, outbox, sent, add } = await setUp(t, (path) => (!up ? new TypeError('network') : path.endsWith('/complete') ? { status: 404 } : { status: 200 }));
  await add({ type: 'complete', task_id: 'a/b', outcome: 'failed', at });
  await add({ type: 'availability', availability: false, at });
  await outbox.flush();
  const told = () => sent.filter((s) => /\/(stuck|settle)$/.test(s.path));
  assert.deepEqual(told(), [{ path: '/v1/driver/tasks/a%2Fb/stuck', body: { step: 'fail', at, why: 'gone' } }]);
  assert.equal(await store.count('d'), 0);
  up = false;
  const [refused] = await store.refused('d');
  await store.dismiss(refused!.id);
  await store.dismiss(refused!.id);
  await outbox.flush();
  assert.equal(told().length, 1);
  up = true;
  await outbox.flush();
  assert.deepEqual(told().slice(1), [{ path: '/v1/driver/tasks/a%2Fb/settle', body: { step: 'fail' } }]);
  assert.equal(await store.count('d'), 0);
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
  assert.equal(await store.count('d'), 0);
  assert.deepEqual(kept, [...Array(40).keys()].filter((n) => n !== 13));
});

test('a token that is revoked stops the sending and loses nothing', async (t) => {
  const { store, outbox, sent, log, add } = await setUp(t, () => ({ status: 401 }));
  await add(fix(1));
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  await outbox.flush();
  assert.equal(await store.count('d'), 2);
  assert.equal(sent.length, 1);
  assert.equal(log.at(-1), 'revoked');
});

test('entries of another driver stay until that one has joined again', async (t) => {
  const { store, outbox, sent, add } = await setUp(t, () => ({ status: 200 }));
  await store.add({ driver: 'other', kind: 'action', action: { type: 'start', task_id: 'x', at } });
  await add({ type: 'start', task_id: '1', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/tasks/1/start']);
  assert.equal(await store.count('d'), 0);
  assert.equal(await store.count('other'), 1);
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

test('the end of a task waits for an Undo, and what comes after it waits with it', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(at) });
  const { store, outbox, sent } = await setUp(t, () => ({ status: 200 }));
  const end = (task_id: string): Action => ({ type: 'complete', task_id, outcome: 'succeeded', at });
  await outbox.add({ kind: 'fix', fix: fix(1) }, 9e6);
  await outbox.add({ kind: 'action', action: end('1'), hold: calm }, 9e6);
  await outbox.add({ kind: 'fix', fix: fix(2) }, 9e6);
  assert.deepEqual(await store.actions('d'), [{ ...end('1'), held: true }]);
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/fixes']);
  t.mock.timers.setTime(Date.parse(at) + calm - 1);
  await outbox.flush();
  assert.equal(sent.length, 1);
  t.mock.timers.setTime(Date.parse(at) + calm);
  assert.equal(await outbox.takeBack('1'), false, 'too late');
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/fixes', '/v1/driver/tasks/1/complete', '/v1/driver/fixes']);
  assert.deepEqual(sent[1]!.body, { at, outcome: 'succeeded' });
});

test('what was taken back is never sent; what is released goes at once; a clock put back holds nothing', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(at) });
  const { store, outbox, sent } = await setUp(t, () => ({ status: 200 }));
  const end = (task_id: string): Action => ({ type: 'complete', task_id, outcome: 'failed', reason: 'r', at });
  await outbox.add({ kind: 'action', action: { type: 'start', task_id: '1', at } }, 9e6);
  await outbox.add({ kind: 'action', action: end('1'), hold: calm }, 9e6);
  assert.equal(await outbox.takeBack('2'), false, 'another task');
  assert.equal(await outbox.takeBack('1'), true);
  assert.equal(await outbox.takeBack('1'), false);
  await outbox.add({ kind: 'action', action: end('3'), hold: calm }, 9e6);
  await outbox.release();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/tasks/1/start', '/v1/driver/tasks/3/complete']);
  await outbox.add({ kind: 'action', action: end('4'), hold: calm }, 9e6);
  t.mock.timers.setTime(Date.parse(at) - 3600_000);
  await outbox.flush();
  assert.equal(sent.length, 3);
  assert.equal(await store.count('d'), 0);
});

const end = (task_id: string, more = {}): Action => ({ type: 'complete', task_id, outcome: 'succeeded', at, about: '#1', ...more });

test('a picture is sent before the end that needs it, byte for byte, and is freed', async (t) => {
  const { store, outbox, sent, add, picture } = await setUp(t, () => ({ status: 200 }));
  await picture('a/b', 'photo', 1);
  await picture('a/b', 'signature', 2);
  await picture('a/b', 'signature', 3); // signed anew
  await picture('other', 'photo', 9);
  await add(fix(1));
  await outbox.add({ kind: 'action', action: end('a/b', { received_by: 'Ada', note: 'blue door', pin: '0123' }) }, 9e6);
  assert.deepEqual((await store.actions('d')).map((a) => a.type), ['proof', 'proof', 'complete']);
  assert.equal((await store.pictures('d', 'a/b')).length, 0, 'they wait for their driver no more');
  await outbox.flush();
  assert.deepEqual(sent.map((s) => [s.path, s.body instanceof Uint8Array ? [...s.body] : s.body]), [
    ['/v1/driver/fixes', { fixes: [fix(1)] }],
    ['/v1/driver/tasks/a%2Fb/proof/photo', [1]],
    ['/v1/driver/tasks/a%2Fb/proof/signature', [3]],
    ['/v1/driver/tasks/a%2Fb/complete', { at, outcome: 'succeeded', received_by: 'Ada', note: 'blue door', pin: '0123' }],
  ]);
  assert.equal(await store.count('d'), 0);
  assert.deepEqual(await left(store), [9]);
});

/** The first bytes of the pictures that are there. */
async function left(store: Store): Promise<number[]> {
  const all = await Promise.all([...Array(10).keys()].map((id) => store.picture(id)));
  return all.flatMap((p) => (p ? [p.data[0]!] : []));
}

test('pictures outlive the app, and are sent in order when there is a network', async (t) => {
  let up = false;
  const { store, outbox, sent, picture } = await setUp(t, () => (up ? { status: 200 } : new TypeError('network')));
  await picture('1', 'photo', 1);
  await outbox.add({ kind: 'action', action: end('1') }, 9e6);
  await picture('2', 'photo', 2);
  await outbox.addPictures({ task_id: '2', at });
  await outbox.flush();
  assert.equal(await store.count('d'), 3);
  assert.deepEqual(await left(store), [1, 2]);
  up = true;
  await outbox.hurry();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/tasks/1/proof/photo', '/v1/driver/tasks/1/complete', '/v1/driver/tasks/2/proof/photo']);
  assert.deepEqual(await left(store), []);
});

test('where the server cannot keep a picture its task waits, and nothing else', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse(at) });
  let full = true;
  const { store, outbox, sent, log, add, picture } = await setUp(t, (path) => (full && path.includes('proof') ? { status: 503, retryAfter: '7' } : { status: 200 }));
  await picture('1', 'photo', 1);
  await outbox.add({ kind: 'action', action: end('1') }, 9e6);
  await add(fix(1));
  await add({ type: 'start', task_id: '2', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/tasks/1/proof/photo', '/v1/driver/fixes', '/v1/driver/tasks/2/start']);
  assert.equal(await store.count('d'), 2);
  await outbox.flush(); // too soon
  assert.equal(sent.length, 3);
  full = false;
  t.mock.timers.setTime(Date.parse(at) + 120_000);
  await outbox.flush();
  assert.deepEqual(sent.slice(3).map((s) => s.path), ['/v1/driver/tasks/1/proof/photo', '/v1/driver/tasks/1/complete']);
  assert.equal(await store.count('d'), 0);
  assert.equal(log.includes('refused'), false);
});

for (const status of [400, 404, 409, 413, 415]) {
  test(`a picture that is refused with ${status} is told, and freed`, async (t) => {
    const { store, outbox, log, picture } = await setUp(t, (path) => (path.includes('proof') ? { status } : { status: 200 }));
    await picture('1', 'photo', 1);
    await outbox.add({ kind: 'action', action: end('1') }, 9e6);
    await outbox.flush();
    assert.deepEqual(log.filter((l) => l !== 'online'), ['refused', 'done complete']);
    const [refused] = await store.refused('d');
    assert.equal(refused!.status, status);
    assert.deepEqual(refused!.action, { type: 'proof', task_id: '1', kind: 'photo', file: 1, about: '#1', at });
    assert.deepEqual(await left(store), []);
  });
}

test('a PIN that was refused is told with its order, and kept nowhere', async (t) => {
  const { store, outbox } = await setUp(t, () => ({ status: 409, field: 'pin', message: 'This is not the PIN of the task.' }));
  await outbox.add({ kind: 'action', action: end('1', { pin: '0123', received_by: 'Ada' }) }, 9e6);
  await outbox.flush();
  const [refused] = await store.refused('d');
  assert.equal(refused!.field, 'pin');
  assert.deepEqual(refused!.action, end('1', { received_by: 'Ada' }));
});

test('a phone without room keeps neither the end of a task nor half of it', async (t) => {
  const { store, outbox, picture } = await setUp(t, () => ({ status: 200 }));
  await picture('1', 'photo', 1);
  const put = IDBObjectStore.prototype.add;
  t.after(() => (IDBObjectStore.prototype.add = put));
  IDBObjectStore.prototype.add = function (value, key) {
    if (value.action?.type === 'complete') throw new DOMException('full', 'QuotaExceededError');
    return put.call(this, value, key);
  };
  await assert.rejects(outbox.add({ kind: 'action', action: end('1') }, 9e6), { name: 'QuotaExceededError' });
  assert.equal(await store.count('d'), 0);
  assert.equal((await store.pictures('d', '1')).length, 1, 'the picture waits still');
});

test('what was taken and written for a task goes when the driver has it no more', async (t) => {
  const { store, outbox, picture } = await setUp(t, () => new TypeError('network'));
  await picture('1', 'photo', 1);
  await picture('2', 'photo', 2);
  await picture('3', 'photo', 3);
  await outbox.addPictures({ task_id: '3', at }); // on its way
  await store.keepPicture({ driver: 'other', task_id: '2', kind: 'photo', type: 'image/jpeg', data: new Uint8Array([4]) });
  await store.write('1', { received_by: 'Ada' });
  await store.write('2', { note: 'gone' });
  await store.forget('d', new Set(['1']));
  assert.deepEqual(await left(store), [1, 3, 4]);
  assert.deepEqual([await store.written('1'), await store.written('2')], [{ received_by: 'Ada' }, {}]);
  const [own] = await store.pictures('d', '1');
  await store.dropPicture(own!.id);
  assert.deepEqual(await left(store), [3, 4]);
});

test('the store of an older app is taken over', async () => {
  const name = 'outbox-' + databases++;
  await new Promise<void>((done, fail) => {
    const open = indexedDB.open(name, 1);
    open.onupgradeneeded = () => {
      open.result.createObjectStore('kept').put({ secret: 's', nonce: 'n' }, 'join');
      open.result.createObjectStore('outbox', { keyPath: 'seq', autoIncrement: true }).createIndex('kind', 'kind');
    };
    open.onerror = fail;
    open.onsuccess = () => (open.result.close(), done());
  });
  const store = await Store.open(name);
  assert.deepEqual(await store.get('join'), { secret: 's', nonce: 'n' });
  await store.keepPicture({ driver: 'd', task_id: '1', kind: 'photo', type: 'image/jpeg', data: new Uint8Array([1]) });
  assert.deepEqual(await left(store), [1]);
  store.close();
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

test('arriving and taking back say which task and which step', async (t) => {
  const { outbox, sent, add } = await setUp(t, () => ({ status: 200 }));
  await add({ type: 'arrive', task_id: '1', at, lnglat: [1, 2] });
  await add({ type: 'undo', task_id: '1', step: 'start', at });
  await outbox.flush();
  assert.deepEqual(sent, [
    { path: '/v1/driver/tasks/1/arrive', body: { at, lnglat: [1, 2] } },
    { path: '/v1/driver/tasks/1/undo', body: { at, step: 'start' } },
  ]);
});

test('an order is sent for the route as it is; where somebody else has changed it, it is refused', async (t) => {
  const stops = (ids: string) => [...ids].map((id) => ({ task_id: id, leg: 'drop' as const }));
  let now = 'abc';
  const { outbox, store, sent, log, add } = await setUp(t, (path, body) =>
    path === '/v1/driver/route' ? { status: 200, data: { stops: stops(now).map((s) => ({ ...s, eta: {} })), version: 7, ...body } } : { status: 200 },
  );
  await add({ type: 'reorder', from: stops('xabc'), to: stops('xcab'), at });
  await outbox.flush();
  assert.deepEqual(sent, [{ path: '/v1/driver/route', body: undefined }, { path: '/v1/driver/route', body: { stops: stops('cab'), version: 7 } }]);
  now = 'bac';
  await add({ type: 'reorder', from: stops('abc'), to: stops('cab'), at });
  await outbox.flush();
  assert.equal(sent.length, 3, 'nothing but the question is sent');
  assert.deepEqual((await store.refused('d')).map((r) => [r.action.type, r.status]), [['reorder', 409]]);
  assert.deepEqual(log.filter((l) => l !== 'online'), ['done reorder', 'refused']);
});

test('a page of something in between, and a body that did not come whole, decide nothing', async (t) => {
  for (const page of [
    new Response('<html>no such host</html>', { status: 404 }),
    new Response('{"error":"forbidden"}', { status: 403 }),
    new Response('', { status: 401 }),
    Response.json({ success: false, message: 'The body did not arrive in time.', error: { code: 'invalid' } }, { status: 400 }),
  ]) {
    const api = new Api('', () => Promise.resolve(page));
    assert.equal((await api.call('POST', '/v1/driver/tasks/a/start', {})).kind, 'offline', String(page.status));
  }
  const { store, outbox, add, log } = await setUp(t, () => ({ status: 404, message: 'no' }));
  await add({ type: 'start', task_id: 'a', at });
  await outbox.flush();
  assert.ok(log.includes('refused'), 'the server itself is believed');
  assert.equal(await store.count('d'), 0);
});

test('a picture that the network is too slow for holds up its own task alone, and goes as soon as the network is back', async (t) => {
  let slow = true;
  const { store, outbox, sent, add, picture } = await setUp(t, (path) => (slow && path.includes('proof') ? new Error('aborted') : { status: 200 }));
  await picture('a', 'photo', 1);
  await store.queue('d', { task_id: 'a', at }, { driver: 'd', kind: 'action', action: { type: 'complete', task_id: 'a', outcome: 'succeeded', at } });
  await add(fix(1));
  await add({ type: 'complete', task_id: 'b', outcome: 'succeeded', at });
  await outbox.flush();
  assert.deepEqual(sent.map((s) => s.path), ['/v1/driver/fixes', '/v1/driver/tasks/b/complete']);
  assert.equal(await store.count('d'), 2);
  slow = false;
  await outbox.hurry();
  assert.deepEqual(sent.slice(2).map((s) => s.path), ['/v1/driver/tasks/a/proof/photo', '/v1/driver/tasks/a/complete']);
  assert.equal(await store.count('d'), 0);
});

test('an order is made anew when something else about the driver has changed meanwhile', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stops = [1, 2].map((n) => ({ task_id: String(n), leg: 'drop' as const }));
  let version = 1;
  const { store, outbox, sent, add, log } = await setUp(t, (_path, body) => {
    if (body === undefined) return { status: 200, data: { stops, version } };
    return body.version === 2 ? { status: 200 } : { status: 409, field: 'version', message: 'moved' };
  });
  await add({ type: 'reorder', from: stops, to: [...stops].reverse(), at });
  await outbox.flush();
  assert.equal(await store.count('d'), 1);
  version = 2;
  await outbox.flush();
  assert.equal(await store.count('d'), 0);
  assert.ok(!log.includes('refused'));
  assert.deepEqual(sent.at(-1)!.body, { stops: [...stops].reverse(), version: 2 });
});

test('what is kept of an erased driver is not that of the next one with the id; of others it stays', async (t) => {
  const { store, add, picture } = await setUp(t, () => ({ status: 200 }));
  await add({ type: 'availability', availability: true, at });
  await picture('a', 'photo', 1);
  await store.add({ driver: 'other', kind: 'fix', fix: fix(1) });
  for (let i = 0; i < 60; i++) {
    await store.refuse({ id: 1000 + i, driver: i < 55 ? 'd' : 'other', action: { type: 'start', task_id: String(i), at }, status: 409, message: 'no' });
  }
  assert.equal((await store.refused('d')).length, 55, 'refused steps are kept until they are seen, however many');
  await store.purge('d');
  assert.equal(await store.count('d'), 0);
  assert.deepEqual(await store.pictures('d', 'a'), []);
  assert.deepEqual(await store.refused('d'), []);
  assert.equal(await store.count('other'), 1 + 5, 'a fix, and what is to be told of refused steps');
  assert.equal((await store.refused('other')).length, 5);
});
