import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoff, EventParser, Pause, readStream, type ServerEvent } from '../src/shared/sse';

function parse(...pieces: string[]): { events: ServerEvent[]; lastId: string } {
  const events: ServerEvent[] = [];
  const p = new EventParser((e) => events.push(e));
  for (const s of pieces) p.push(s);
  return { events, lastId: p.lastId };
}

const stream = '\uFEFF: hello\n\nevent: state\nid: 7\ndata: {"a":1,\ndata: "b":2}\n\ndata:x\n\nevent: empty\n\nid\nretry: 5\ndata\n\nevent: cut\ndata: off';
const want = [
  { id: '7', type: 'state', data: '{"a":1,\n"b":2}' },
  { id: '7', type: 'message', data: 'x' },
  { id: '', type: 'message', data: '' },
];

test('events', () => {
  assert.deepEqual(parse(stream).events, want);
});

test('the same however the stream is cut and whatever ends its lines', () => {
  for (const eol of ['\n', '\r\n', '\r']) {
    const text = stream.replaceAll('\n', eol);
    for (let i = 0; i <= text.length; i++) {
      assert.deepEqual(parse(text.slice(0, i), text.slice(i)).events, want, `${JSON.stringify(eol)} ${i}`);
    }
    assert.deepEqual(parse(...text).events, want);
  }
});

const respond = (body: BodyInit | null, init: ResponseInit): typeof fetch => () => Promise.resolve(new Response(body, init));
const sse = { 'Content-Type': 'text/event-stream; charset=utf-8' };

test('how a stream ends', async () => {
  const read = (get: typeof fetch, signal = new AbortController().signal) =>
    readStream({ fetch: get, url: '/', signal, idle: 60_000, parser: new EventParser(() => {}) });
  assert.deepEqual(await read(respond('data: 1\n\n', { headers: sse })), { kind: 'closed' });
  assert.deepEqual(await read(respond(null, { status: 204 })), { kind: 'status', status: 204, retryAfter: 0 });
  assert.deepEqual(await read(respond('{}', { status: 429, headers: { 'Retry-After': '30' } })), { kind: 'status', status: 429, retryAfter: 30 });
  assert.deepEqual(await read(respond('<html>', { headers: { 'Content-Type': 'text/html' } })), { kind: 'status', status: 200, retryAfter: 0 });
  assert.deepEqual(await read(() => Promise.reject(new TypeError('no network'))), { kind: 'lost' });
  const broken = new ReadableStream({ pull: (c) => c.error(new Error('cut')) });
  assert.deepEqual(await read(respond(broken, { headers: sse })), { kind: 'lost' });
});

test('a stream that falls silent is lost, and one with heartbeats is not', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let body!: ReadableStreamDefaultController<Uint8Array>;
  const get: typeof fetch = (_url, init) => {
    const s = new ReadableStream<Uint8Array>({ start: (c) => void (body = c) });
    init!.signal!.addEventListener('abort', () => body.error(new Error('aborted')));
    return Promise.resolve(new Response(s, { headers: sse }));
  };
  let ended = false;
  const end = readStream({ fetch: get, url: '/', signal: new AbortController().signal, idle: 1000, parser: new EventParser(() => {}) });
  void end.then(() => (ended = true));
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    await new Promise((r) => setImmediate(r));
  };
  await settle();
  for (let i = 0; i < 5; i++) {
    t.mock.timers.tick(900);
    body.enqueue(new TextEncoder().encode(': beat\n\n'));
    await settle();
  }
  assert.equal(ended, false);
  t.mock.timers.tick(1001);
  assert.deepEqual(await end, { kind: 'lost' });
});

test('waits double up to a limit', () => {
  assert.equal(backoff(0, 30_000, () => 1), 1000);
  assert.equal(backoff(3, 30_000, () => 0), 4000);
  assert.equal(backoff(99, 30_000, () => 1), 30_000);
});

test('a pause can be cut short', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const p = new Pause();
  const signal = new AbortController();
  const first = p.wait(1e9, signal.signal);
  p.wake();
  await first;
  const second = p.wait(1e9, signal.signal);
  signal.abort();
  await second;
  await p.wait(1e9, signal.signal);
});
