import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pause } from '../src/shared/sse';
import { follow } from '../src/track/follow';
import type { Tracking } from '../src/track/state';

const moving = { kind: 'task', type: 2, status: 'in_progress', path: [] };
const done = { kind: 'task', type: 2, status: 'completed', outcome: 'succeeded', path: [] };
const sse = (...states: object[]) =>
  new Response(states.map((s) => `event: state\ndata: ${JSON.stringify(s)}\n\n`).join(''), { headers: { 'Content-Type': 'text/event-stream' } });
const events = (...list: [string, unknown][]) =>
  new Response(list.map(([name, v]) => `event: ${name}\ndata: ${typeof v === 'string' ? v : JSON.stringify(v)}\n\n`).join(''), { headers: { 'Content-Type': 'text/event-stream' } });
const state = (s: object) => Response.json({ message: 'Tracking', success: true, data: { tracking: s } });

/** A pause that never waits, and says how long it would have. */
class NoPause extends Pause {
  readonly waits: number[] = [];
  override wait(ms: number): Promise<void> {
    this.waits.push(ms);
    return Promise.resolve();
  }
}

async function run(answers: (Response | Error)[], shown: Tracking | null = null): Promise<{ seen: string[]; asked: string[]; waits: number[]; states: Tracking[] }> {
  const seen: string[] = [];
  const states: Tracking[] = [];
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
      shown,
      onState: (t: Tracking) => {
        seen.push(t.status);
        states.push(t);
      },
      onConnection: (ok) => ok || seen.push('lost'),
      onServerTime: () => {},
      onGone: () => seen.push('gone'),
    },
    pause,
    stop.signal,
    get,
  );
  return { seen, asked, waits: pause.waits, states };
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
  assert.deepEqual(r.waits, [...Array<number>(6).fill(10_000), 60_000], 'the last one at what has ended');
});

test('a network that is lost and found', async () => {
  const lost = new TypeError('network');
  const r = await run([sse(moving), lost, lost, lost, state(moving), sse(done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'live', 'state', 'state', 'live']);
  assert.deepEqual(r.seen, ['in_progress', 'lost', 'lost', 'in_progress', 'completed']);
  assert.ok(r.waits.slice(0, -1).every((w) => w < 10_000), String(r.waits));
});

test('over already, by 204', async () => {
  const r = await run([new Response(null, { status: 204 }), state(done)]);
  assert.deepEqual(r.asked, ['live', 'state']);
  assert.deepEqual(r.seen, ['completed']);
});

test('a task that has ended is looked at less and less often, and followed when it is open again', async () => {
  const lost = new TypeError('network');
  const r = await run([sse(moving, done), state(done), lost, state(done), state(moving), sse(moving, done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'state', 'state', 'state', 'live']);
  assert.deepEqual(r.seen, ['in_progress', 'completed', 'completed', 'completed', 'in_progress', 'in_progress', 'completed'], 'of what is done no break is told');
  assert.deepEqual(r.waits, [1, 2, 4, 8, 1].map((minutes) => minutes * 60_000));
  const days = await run(Array.from({ length: 8 }, () => state(done)), done as unknown as Tracking);
  assert.deepEqual(days.waits.slice(0, 8), [1, 2, 4, 8, 16, 30, 30, 30].map((minutes) => minutes * 60_000));
});

test('a trip that has ended is over', async () => {
  const trip = (status: string) => ({ kind: 'trip', status, path: [] });
  const r = await run([sse(trip('in_progress'), trip('completed')), state(trip('completed'))]);
  assert.deepEqual(r.asked, ['live']);
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

const position = (second: number) => ({ lnglat: [second / 100, 50], time: `2026-03-01T09:00:${String(second).padStart(2, '0')}.000Z`, live: true });
const driving = (...seconds: number[]) => ({ ...moving, position: position(seconds.at(-1)!), path: seconds.map((s) => position(s).lnglat) });
const move = (second: number) => ({ position: position(second), path_add: [position(second).lnglat] });

test('moves are applied to the state before them', async () => {
  const r = await run([events(['state', driving(10)], ['move', move(11)], ['move', move(12)], ['state', driving(10, 12)], ['move', move(13)], ['state', done])]);
  assert.deepEqual(r.states.map((s) => s.path!.length), [1, 2, 3, 2, 3, 0]);
  assert.deepEqual(r.states[4]!.position, position(13));
  assert.deepEqual(r.asked, ['live']);
});

test('a move that cannot be applied ends the stream, and what came after it is not looked at', async () => {
  for (const bad of [{ position: position(11) }, '{']) {
    const r = await run([events(['state', driving(10)], ['move', bad], ['move', move(12)]), state(driving(10, 11, 12)), events(['state', driving(10, 11, 12)], ['move', move(13)], ['state', done])]);
    assert.deepEqual(r.asked, ['live', 'state', 'live']);
    assert.deepEqual(r.states.map((s) => s.path!.length), [1, 3, 3, 4, 0]);
  }
});

test('a move without a state before it is none', async () => {
  const r = await run([events(['move', move(11)]), state(driving(10, 11)), state(done)]);
  assert.deepEqual(r.asked, ['live', 'state', 'state']);
  assert.deepEqual(r.states.map((s) => s.path!.length), [2, 0]);
});

test('a stream that begins with something older than what is shown is not believed before it was asked for', async () => {
  const late = () => events(['state', driving(10)], ['move', move(11)], ['state', done]);
  const r = await run([events(['state', driving(10, 11, 12)]), state(driving(10, 11, 12)), late(), state(driving(10, 11, 12))]);
  assert.deepEqual(r.asked, ['live', 'state', 'live', 'state']);
  assert.deepEqual(r.states.map((s) => s.position?.time.slice(17, 19)), ['12', '12', '11', undefined]);
});
