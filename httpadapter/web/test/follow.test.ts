import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pause } from '../src/shared/sse';
import { follow } from '../src/track/follow';
import type { Tracking } from '../src/track/state';

const moving = { kind: 'task', type: 2, status: 'in_progress', path: [] };
const done = { kind: 'task', type: 2, status: 'completed', outcome: 'succeeded', path: [] };
const sse = (...states: object[]) =>
  new Response(states.map((s) => `event: state\ndata: ${JSON.stringify(s)}\n\n`).join(''), { headers: { 'Content-Type': 'text/event-stream' } });
const state = (s: object) => Response.json({ message: 'Tracking', success: true, data: { tracking: s } });

/** A pause that never waits, and says how long it would have. */
class NoPause extends Pause {
  readonly waits: number[] = [];
  override wait(ms: number): Promise<void> {
    this.waits.push(ms);
    return Promise.resolve();
  }
}

async function run(answers: (Response | Error)[]): Promise<{ seen: string[]; asked: string[]; waits: number[] }> {
  const seen: string[] = [];
  const asked: string[] = [];
  const stop = new AbortController();
  const pause = new NoPause();
  const get: typeof fetch = (url) => {
    const a = answers.shift();
    if (!a) {
      stop.abort();
      return Promise.reject(new Error('over'));
    }
    asked.push(String(url).replace('/track/T/', ''));
    return a instanceof Error ? Promise.reject(a) : Promise.resolve(a);
  };
  await follow(
    '/track/T',
    {
      onState: (t: Tracking) => seen.push(t.status),
      onConnection: (ok) => ok || seen.push('lost'),
      onServerTime: () => {},
      onGone: () => seen.push('gone'),
    },
    pause,
    stop.signal,
    get,
  );
  return { seen, asked, waits: pause.waits };
}

test('a stream until the end', async () => {
  const r = await run([sse(moving, moving, done)]);
  assert.deepEqual(r.seen, ['in_progress', 'in_progress', 'completed']);
  assert.deepEqual(r.asked, ['live']);
});

test('a stream that is cut off is taken up again', async () => {
  const r = await run([sse(moving), state(moving), sse(moving, done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'live']);
  assert.equal(r.seen.at(-1), 'completed');
});

test('without a stream the page asks, and tries a stream again after a minute', async () => {
  const full = () => new Response('{}', { status: 429, headers: { 'Retry-After': '30' } });
  const r = await run([full(), ...Array.from({ length: 6 }, () => state(moving)), sse(done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'state', 'state', 'state', 'state', 'state', 'live']);
  assert.deepEqual(r.waits, [10_000, 10_000, 10_000, 10_000, 10_000, 10_000]);
});

test('a network that is lost and found', async () => {
  const lost = new TypeError('network');
  const r = await run([sse(moving), lost, lost, lost, state(moving), sse(done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'live', 'state', 'state', 'live']);
  assert.deepEqual(r.seen, ['in_progress', 'lost', 'lost', 'in_progress', 'completed']);
  assert.ok(r.waits.every((w) => w < 10_000), String(r.waits));
});

test('over already, by 204', async () => {
  const r = await run([new Response(null, { status: 204 }), state(done)]);
  assert.deepEqual(r.asked, ['live', 'state']);
  assert.deepEqual(r.seen, ['completed']);
});

test('a link that has died', async () => {
  const gone = () => Response.json({ message: 'x', success: false }, { status: 404 });
  const r = await run([gone(), gone()]);
  assert.deepEqual(r.seen, ['gone']);
});

test('a state that is no JSON is passed over', async () => {
  const bad = new Response('event: state\ndata: {\n\nevent: other\ndata: 1\n\n' + `event: state\ndata: ${JSON.stringify(done)}\n\n`, { headers: { 'Content-Type': 'text/event-stream' } });
  const r = await run([bad]);
  assert.deepEqual(r.seen, ['completed']);
});
