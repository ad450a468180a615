// Follows a tracking link: live as long as a stream is to be had, else by asking again and again.

import { backoff, EventParser, Pause, readStream, retryAfter } from '../shared/sse';
import { ended, moved, readTracking, type Tracking } from './state';

export interface Follower {
  shown: Tracking | null; // at first
  onState(t: Tracking): void;
  onConnection(connected: boolean): void;
  onServerTime(ms: number): void;
  onGone(): void; // the link does not work any more
}

const pollEvery = 10_000;
const pollsBetweenStreams = 6; // about a minute until a stream is tried again
const idle = 45_000;
const firstLook = 60_000; // after the end of a task, at whether it is open again; the next ones come half as often each
const lastLook = 30 * 60_000;

/** Whether a state has a position from before that of another one. */
function older(t: Tracking, than: Tracking): boolean {
  return Date.parse(t.position?.time ?? '') < Date.parse(than.position?.time ?? '');
}

/**
 * Runs until the link is gone, until its trip ends, or until the signal. A task that has ended is looked at now and then, since it may be opened
 * again, and since a new attempt of one that failed shows under the same link. `pause` may be woken to try at once.
 */
export async function follow(base: string, f: Follower, pause: Pause, signal: AbortSignal, get: typeof fetch = (...a) => fetch(...a)): Promise<void> {
  let over = f.shown !== null && ended(f.shown);
  let gone = false;
  let known = false; // whether a state has come since the last break
  let failures = 0;

  let held: Tracking | null = null; // what the present stream has said, moves applied; null: nothing yet
  let shown = f.shown;
  let heard = 0; // events of streams

  const take = (t: Tracking) => {
    shown = t;
    known = true;
    failures = 0;
    f.onConnection(true);
    f.onState(t);
    if (ended(t)) over = true;
  };

  const takeEvent = (type: string, data: string, broken: () => void) => {
    if (type !== 'state' && type !== 'move') return;
    let v: unknown;
    try {
      v = JSON.parse(data);
    } catch {
      return type === 'move' ? broken() : undefined; // a state that is no JSON is skipped; the next one comes
    }
    const first = held === null;
    const t = type === 'state' ? readTracking(v) : held && moved(held, v);
    if (!t) return type === 'move' ? broken() : undefined;
    heard++;
    held = t;
    // The reader that a stream shares with others may be a moment behind what was asked for: then it is asked for again.
    if (first && shown && older(t, shown)) void ask();
    else take(t);
  };

  /** Asks once. Tells how long to wait before the next time, in ms. */
  const ask = async (): Promise<number> => {
    const before = heard;
    try {
      const r = await get(base + '/state', { signal, cache: 'no-store', credentials: 'omit' });
      const date = Date.parse(r.headers.get('Date') ?? '');
      if (Number.isFinite(date)) f.onServerTime(date);
      if (r.status === 404) {
        over = gone = true;
        f.onGone();
        return 0;
      }
      if (r.ok) {
        const t = readTracking(((await r.json()) as { data?: { tracking?: unknown } }).data?.tracking);
        if (t && heard === before) take(t); // else a stream has said something newer meanwhile
        return pollEvery;
      }
      return Math.max(pollEvery, 1000 * retryAfter(r));
    } catch {
      if (!signal.aborted && !(shown && ended(shown))) f.onConnection(false); // of what is done nothing is missed
      return backoff(failures++);
    }
  };

  for (let look = firstLook; !gone && !signal.aborted; ) {
    if (over) {
      if (shown?.kind === 'trip') return;
      await pause.wait(look, signal);
      look = Math.min(2 * look, lastLook);
      if (signal.aborted) return;
      over = false;
      const before = failures;
      await ask();
      over ||= failures > before; // not heard is not open
      continue;
    }
    look = firstLook;
    known = false;
    held = null;
    const stream = new AbortController(); // a move that cannot be applied ends it: the next one begins with a state
    const stop = () => stream.abort();
    signal.addEventListener('abort', stop);
    const parser = new EventParser((e) => stream.signal.aborted || takeEvent(e.type, e.data, stop));
    const end = await readStream({ fetch: get, url: base + '/live', signal: stream.signal, idle, parser, onOpen: () => f.onConnection(true) });
    signal.removeEventListener('abort', stop);
    if (over || signal.aborted) continue;

    // Refused (429, an old proxy), or open without bringing anything (a proxy that buffers): ask instead, for about a minute.
    const useless = end.kind === 'status' ? end.status !== 204 && end.status !== 404 : !known;
    for (let i = 0; useless && i < pollsBetweenStreams && !over && !signal.aborted; i++) {
      const before = failures;
      const wait = await ask();
      if (over || (before > 0 && failures === 0)) break; // the network is back, and with it perhaps the stream
      await pause.wait(wait, signal);
    }
    if (useless) continue;

    // Closed by the server, broken off, or over: how do things stand?
    const wait = await ask();
    if (!over && !signal.aborted) await pause.wait(end.kind === 'status' || failures > 0 ? wait : backoff(0), signal);
  }
}
