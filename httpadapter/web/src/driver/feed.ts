// The driver's notices: live over a stream, else by asking. It never decides what is true, it says that something has changed.

import { backoff, EventParser, Pause, readStream } from '../shared/sse';
import type { Api } from './api';

export interface Notice {
  id: string;
  kind: string; // assigned, unassigned, updated, cancelled, trip_request, route, noted, handed_over, reopened
  time: string;
  task_id?: string;
  tracking_id?: string;
}

export interface FeedEvents {
  onNotice(n: Notice): void;
  /** The place in the feed is lost, or a connection was made: read everything again. */
  onReset(): void;
  onOnline(online: boolean): void;
  onRevoked(): void;
  /** Notices up to this id have been seen. */
  keep(after: string): void;
}

const idle = 60_000;
const pollEvery = 10_000;
const pollsBetweenStreams = 6;
const path = '/v1/driver/notifications';

/** Reads a notice from its JSON; the id of the stream's event counts where the notice has none. */
export function readNotice(v: unknown, id: string): Notice | null {
  if (typeof v !== 'object' || v === null) return null;
  const o = v as Record<string, unknown>;
  const text = (x: unknown) => (typeof x === 'string' ? x : typeof x === 'number' ? String(x) : '');
  const n = { id: text(o.id) || id, kind: text(o.kind), time: text(o.time), task_id: text(o.task_id), tracking_id: text(o.tracking_id) };
  return n.id !== '' && n.kind !== '' ? n : null;
}

export async function follow(api: Api, start: string, f: FeedEvents, pause: Pause, signal: AbortSignal, get: typeof fetch = (...a) => fetch(...a)): Promise<void> {
  let after = start;
  let failures = 0;
  const seen = (id: string) => {
    if (id === '' || id === after) return;
    after = id;
    f.keep(id);
  };

  const ask = async (): Promise<number> => {
    const r = await api.call('GET', path + (after === '' ? '' : '?after=' + encodeURIComponent(after)));
    if (signal.aborted) return 0;
    if (r.kind === 'offline') {
      f.onOnline(false);
      return backoff(failures++);
    }
    f.onOnline(true);
    if (r.kind === 'failed') {
      if (r.status === 401) f.onRevoked();
      return Math.max(1000 * r.retryAfter, backoff(failures++, 60_000));
    }
    const recovered = failures > 0;
    failures = 0;
    if (r.data.reset === true || recovered) f.onReset();
    const list: unknown[] = Array.isArray(r.data.notifications) ? r.data.notifications : [];
    for (const v of list) {
      const n = readNotice(v, '');
      if (!n) continue;
      seen(n.id);
      f.onNotice(n);
    }
    if (r.data.reset === true && (typeof r.data.after === 'string' || typeof r.data.after === 'number')) seen(String(r.data.after));
    return list.length >= 100 ? 0 : pollEvery;
  };

  while (!signal.aborted) {
    let opened = false;
    const parser = new EventParser((e) => {
      if (e.type === 'reset') {
        seen(e.id);
        f.onReset();
        return;
      }
      let v: unknown = null;
      try {
        v = JSON.parse(e.data);
      } catch {
        return;
      }
      const n = readNotice(v, e.id);
      if (e.id !== '') seen(e.id);
      if (n) f.onNotice(n);
    });
    const end = await readStream({
      fetch: get,
      url: api.url(path),
      headers: { ...api.auth(), ...(after === '' ? {} : { 'Last-Event-ID': after }) },
      signal,
      idle,
      parser,
      onOpen: () => {
        opened = true;
        failures = 0;
        f.onOnline(true);
        f.onReset();
      },
    });
    if (signal.aborted) return;
    if (end.kind === 'status') {
      // No stream here, or no such driver, which only an answer of the server's own can say: ask for about a minute, then try again.
      for (let i = 0; i < pollsBetweenStreams && !signal.aborted; i++) {
        const wait = await ask();
        await pause.wait(wait, signal);
      }
      continue;
    }
    if (!opened) f.onOnline(false);
    await pause.wait(backoff(opened ? 0 : failures++), signal);
  }
}
