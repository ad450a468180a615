// Follows a tracking link: live as long as a stream is to be had, else by asking again and again.

import { backoff, EventParser, Pause, readStream, retryAfter } from '../shared/sse';
import { ended, readTracking, type Tracking } from './state';

export interface Follower {
  onState(t: Tracking): void;
  onConnection(connected: boolean): void;
  onServerTime(ms: number): void;
  onGone(): void; // the link does not work any more
}

const pollEvery = 10_000;
const pollsBetweenStreams = 6; // about a minute until a stream is tried again
const idle = 45_000;

/** Runs until the end, until the link is gone, or until the signal. `pause` may be woken to try at once. */
export async function follow(base: string, f: Follower, pause: Pause, signal: AbortSignal, get: typeof fetch = (...a) => fetch(...a)): Promise<void> {
  let over = false;
  let known = false; // whether a state has come since the last break
  let failures = 0;

  const take = (v: unknown) => {
    const t = readTracking(v);
    if (!t) return;
    known = true;
    failures = 0;
    f.onConnection(true);
    f.onState(t);
    if (ended(t)) over = true;
  };

  /** Asks once. Tells how long to wait before the next time, in ms. */
  const ask = async (): Promise<number> => {
    try {
      const r = await get(base + '/state', { signal, cache: 'no-store', credentials: 'omit' });
      const date = Date.parse(r.headers.get('Date') ?? '');
      if (Number.isFinite(date)) f.onServerTime(date);
      if (r.status === 404) {
        over = true;
        f.onGone();
        return 0;
      }
      if (r.ok) {
        take(((await r.json()) as { data?: { tracking?: unknown } }).data?.tracking);
        return pollEvery;
      }
      return Math.max(pollEvery, 1000 * retryAfter(r));
    } catch {
      if (!signal.aborted) f.onConnection(false);
      return backoff(failures++);
    }
  };

  while (!over && !signal.aborted) {
    known = false;
    const parser = new EventParser((e) => {
      if (e.type !== 'state') return;
      try {
        take(JSON.parse(e.data));
      } catch {
        // A state that is no JSON is skipped; the next one comes.
      }
    });
    const end = await readStream({ fetch: get, url: base + '/live', signal, idle, parser, onOpen: () => f.onConnection(true) });
    if (over || signal.aborted) break;

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
