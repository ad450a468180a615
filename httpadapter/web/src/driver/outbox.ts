// Sends what the phone has kept, in order: fixes in batches, actions one by one. Order matters: a fix that reaches the server after
// "off duty" would be thrown away.

import { backoff } from '../shared/sse';
import type { Answer, Api } from './api';
import type { Action } from './model';
import type { Entry, Store } from './store';

const batch = 500; // the server takes up to 1,000

export interface OutboxEvents {
  /** Something was sent or added. */
  onChange(): void;
  /** The server's side, after an action: what is shown is to be read again. */
  onDone(a: Action): void;
  /** The server refused an action for good; it is gone from the outbox. */
  onRefused(a: Action, status: number, message: string): void;
  onOnline(online: boolean): void;
  /** The token is not valid any more. Entries stay. */
  onRevoked(): void;
}

export class Outbox {
  private running: Promise<void> | null = null;
  private again = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = 0;
  private tries = 0;
  private batch = batch;
  private stopped = false;

  constructor(
    private readonly store: Store,
    private readonly api: Api,
    private readonly driver: string,
    private readonly events: OutboxEvents,
  ) {}

  /** Keeps an entry and sends it within `delay` ms, if there is a network. */
  async add(entry: { kind: 'action'; action: Action } | Extract<Entry, { kind: 'fix' }> | Omit<Extract<Entry, { kind: 'fix' }>, 'driver'>, delay: number): Promise<void> {
    await this.store.add({ ...entry, driver: this.driver } as Entry);
    this.events.onChange();
    if (this.tries > 0 && entry.kind === 'fix') return; // waits for the network as it is
    this.schedule(delay);
  }

  schedule(delay: number): void {
    if (this.stopped) return;
    const at = Date.now() + delay;
    if (this.timer !== undefined && this.due <= at) return;
    clearTimeout(this.timer);
    this.due = at;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.flush();
    }, delay);
  }

  /** Sends all that there is, now. */
  flush(): Promise<void> {
    if (this.running) {
      this.again = true;
      return this.running;
    }
    this.running = this.locked().finally(() => {
      this.running = null;
      if (this.again && !this.stopped) {
        this.again = false;
        this.schedule(0);
      }
    });
    return this.running;
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  // Two tabs of one phone must not send the same entry at once.
  private async locked(): Promise<void> {
    if (typeof navigator !== 'undefined' && navigator.locks) {
      await navigator.locks.request('tracking-outbox', () => this.run());
    } else {
      await this.run();
    }
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      const head = await this.store.head(this.driver, this.batch);
      const first = head[0];
      if (!first) return;
      if (first.kind === 'action') {
        if (!(await this.sendAction(first.seq, first.action))) return;
        continue;
      }
      const fixes: Extract<(typeof head)[number], { kind: 'fix' }>[] = [];
      for (const e of head) {
        if (e.kind !== 'fix') break;
        fixes.push(e);
      }
      const answer = await this.api.call('POST', '/v1/driver/fixes', { fixes: fixes.map((f) => f.fix) });
      if (answer.kind === 'failed' && (answer.status === 400 || answer.status === 413) && fixes.length > 1) {
        this.batch = Math.max(1, fixes.length >> 1); // find the one that is to blame
        continue;
      }
      if (!this.settled(answer)) return;
      this.batch = Math.min(batch, this.batch * 2);
      await this.store.drop(fixes.map((f) => f.seq));
      this.events.onChange();
    }
  }

  private async sendAction(seq: number, a: Action): Promise<boolean> {
    const { path, body, known } = await this.request(a);
    const answer: Answer = known ?? (await this.api.call('POST', path, body));
    if (!this.settled(answer)) return false;
    if (answer.kind === 'ok' && a.type === 'trip_start' && answer.data.trip?._id) {
      await this.store.set('trips', { ...(await this.store.get('trips')), [a.tracking_id]: answer.data.trip._id });
    }
    await this.store.drop([seq]);
    this.events.onChange();
    // A decline that was sent before, its answer lost, finds the task with somebody else.
    const repeated = answer.kind === 'failed' && a.type === 'decline' && answer.status === 404;
    if (answer.kind === 'failed' && !repeated) this.events.onRefused(a, answer.status, answer.message);
    else this.events.onDone(a);
    return true;
  }

  private async request(a: Action): Promise<{ path: string; body: unknown; known?: Answer }> {
    switch (a.type) {
      case 'availability':
        return { path: '/v1/driver/availability', body: { availability: a.availability, at: a.at } };
      case 'trip_start':
        return { path: '/v1/driver/trips', body: { tracking_id: a.tracking_id, lnglat: a.lnglat, at: a.at } };
      case 'trip_stop': {
        // A trip that was started offline got its id only when the start was sent.
        let id = a.trip_id || (await this.store.get('trips'))?.[a.tracking_id];
        if (!id) {
          const list = await this.api.call('GET', '/v1/driver/trips?status=1&tracking_id=' + encodeURIComponent(a.tracking_id));
          if (list.kind !== 'ok') return { path: '', body: null, known: list };
          id = (list.data.trips as { _id: string; tracking_id: string }[] | undefined)?.find((t) => t.tracking_id === a.tracking_id)?._id;
          if (!id) return { path: '', body: null, known: { kind: 'ok', data: {} } }; // it has ended by itself
        }
        return { path: `/v1/driver/trips/${encodeURIComponent(id)}/stop`, body: { at: a.at, lnglat: a.lnglat } };
      }
      case 'complete':
        return { path: this.task(a.task_id, 'complete'), body: { at: a.at, lnglat: a.lnglat, outcome: a.outcome, reason: a.reason } };
      case 'decline':
        return { path: this.task(a.task_id, 'decline'), body: { at: a.at, reason: a.reason } };
      default:
        return { path: this.task(a.task_id, a.type), body: { at: a.at, lnglat: a.lnglat } };
    }
  }

  private task(id: string, verb: string): string {
    return `/v1/driver/tasks/${encodeURIComponent(id)}/${verb}`;
  }

  /** Whether the server has decided, be it by refusing. Else the entry stays, and is tried again later. */
  private settled(answer: Answer): boolean {
    if (answer.kind === 'offline') {
      this.events.onOnline(false);
      this.schedule(backoff(this.tries++, 60_000));
      return false;
    }
    this.events.onOnline(true);
    if (answer.kind === 'failed') {
      if (answer.status === 401) {
        this.stop();
        this.events.onRevoked();
        return false;
      }
      if (answer.status === 408 || answer.status === 429 || answer.status >= 500) {
        this.schedule(Math.max(1000 * answer.retryAfter, backoff(this.tries++, 60_000)));
        return false;
      }
    }
    this.tries = 0;
    return true;
  }
}
