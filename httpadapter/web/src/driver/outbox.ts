// Sends what the phone has kept, in order: fixes in batches, actions one by one. Order matters: a fix that reaches the server after
// "off duty" would be thrown away.

import { backoff } from '../shared/sse';
import type { Answer, Api } from './api';
import type { Action, Stop } from './model';
import { rebased } from './route';
import { holding, type Entry, type Store } from './store';

type Step = Exclude<Action, { type: 'proof' }>;

const batch = 500; // the server takes up to 1,000
const longestStuck = 5 * 60_000; // ms

export interface OutboxEvents {
  /** Something was sent or added. */
  onChange(): void;
  /** The server's side, after an action: what is shown is to be read again. */
  onDone(a: Action): void;
  /** The server refused an action for good; it is gone from the outbox, and kept among those refused. */
  onRefused(a: Action): void;
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
  private readonly stuck = new Map<string, { until: number; tries: number }>(); // tasks whose picture the server could not keep
  private batch = batch;
  private stopped = false;

  constructor(
    private readonly store: Store,
    private readonly api: Api,
    private readonly driver: string,
    private readonly events: OutboxEvents,
  ) {}

  /** Keeps an entry and sends it within `delay` ms, if there is a network. An action with `hold` (ms) is sent only then, and can be taken back before. */
  async add(entry: { kind: 'action'; action: Action; hold?: number } | Extract<Entry, { kind: 'fix' }> | Omit<Extract<Entry, { kind: 'fix' }>, 'driver'>, delay: number): Promise<void> {
    const held = entry.kind === 'action' && entry.hold ? { hold: Date.now() + entry.hold } : {};
    const kept = { ...entry, ...held, driver: this.driver } as Entry;
    if (entry.kind === 'action' && entry.action.type === 'complete') {
      const { task_id, at, about } = entry.action;
      await this.store.queue(this.driver, { task_id, at, about }, kept); // what it needs goes before it
    } else {
      await this.store.add(kept);
    }
    this.events.onChange();
    if (this.tries > 0 && entry.kind === 'fix') return; // waits for the network as it is
    this.schedule(delay);
  }

  /** Sends the pictures of a task that wait for their driver's word. */
  async addPictures(of: { task_id: string; at: string; about?: string }): Promise<void> {
    await this.store.queue(this.driver, of);
    this.events.onChange();
    this.schedule(0);
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

  /** Sends all that there is, now. What fails is tried again later. */
  flush(): Promise<void> {
    if (this.running) {
      this.again = true;
      return this.running;
    }
    this.running = this.locked()
      .catch((e) => {
        console.warn(e); // the phone's store fails, perhaps for a moment
        this.schedule(backoff(this.tries++, 60_000));
      })
      .finally(() => {
        this.running = null;
        if (this.again && !this.stopped) {
          this.again = false;
          this.schedule(0);
        }
      });
    return this.running;
  }

  /** Sends all that there is, pictures that had to wait too: the network is back. */
  async hurry(): Promise<void> {
    await this.running;
    this.stuck.clear();
    await this.flush();
  }

  /** Takes back the end of a task that is held. False: it is on its way. */
  async takeBack(task: string): Promise<boolean> {
    const found = await this.store.takeBack(this.driver, task);
    if (found) this.events.onChange();
    return found;
  }

  /** Sends what is held now, as when the phone may be put away. */
  async release(): Promise<void> {
    await this.store.release(this.driver);
    this.events.onChange();
    await this.flush();
  }

  /**
   * The page closes: says the end of a task at once, as nothing that waits for the store would still
   * run. It stays in the outbox, and is said again when the app is next opened: that is no new end.
   */
  farewell(end: Extract<Action, { type: 'complete' }>): void {
    const { path, body } = this.completion(end);
    void this.api.call('POST', path, body, { keepalive: true });
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
      const head = await this.ready();
      const first = head[0];
      if (!first) return;
      const wait = first.kind === 'action' ? holding(first.hold) : 0;
      if (wait > 0) {
        this.schedule(wait); // what was done after it waits with it: order matters
        return;
      }
      if (first.kind === 'action') {
        const { action } = first;
        if (action.type === 'proof') {
          if (!(await this.sendPicture(first.seq, action))) return;
        } else if (!(await this.sendAction(first.seq, action))) {
          return;
        }
        continue;
      }
      if (first.kind === 'word') {
        const { verb, task_id, body } = first.word;
        if (!this.settled(await this.api.call('POST', this.task(task_id, verb), body))) return;
        await this.store.drop([first.seq]); // be it that the server knows nothing of that task any more
        this.events.onChange();
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

  /** The head of what can be sent now. Where a picture cannot be kept, what is done with its task waits for it, and nothing else does. */
  private async ready(): Promise<Required<Entry>[]> {
    const now = Date.now();
    const waiting = [...this.stuck].filter(([, s]) => s.until > now && s.until <= now + longestStuck);
    if (waiting.length > 0) this.schedule(Math.min(...waiting.map(([, s]) => s.until)) - now);
    return this.store.head(this.driver, this.batch, new Set(waiting.map(([task]) => task)));
  }

  private async sendPicture(seq: number, a: Extract<Action, { type: 'proof' }>): Promise<boolean> {
    const picture = await this.store.picture(a.file);
    if (!picture) {
      await this.store.drop([seq]);
      return true;
    }
    const answer = await this.api.put(this.task(a.task_id, 'proof/' + a.kind), picture.data, picture.type);
    if (answer.kind === 'offline' || (answer.kind === 'failed' && answer.status >= 500)) {
      // The server's place for files may be out of order, or the network too slow for a picture, while all else works.
      this.events.onOnline(answer.kind === 'failed');
      const tries = this.stuck.get(a.task_id)?.tries ?? 0;
      const asked = answer.kind === 'failed' ? 1000 * answer.retryAfter : 0;
      const wait = Math.min(longestStuck, Math.max(asked, backoff(tries, 60_000)));
      this.stuck.set(a.task_id, { until: Date.now() + wait, tries: tries + 1 });
      return true;
    }
    if (!this.settled(answer)) return false;
    this.stuck.delete(a.task_id);
    await this.conclude(seq, a, answer);
    return true;
  }

  private async sendAction(seq: number, a: Step): Promise<boolean> {
    const { path, body, known } = await this.request(a);
    // What the driver did goes on its way also when the page is put away while it does.
    const answer: Answer = known ?? (await this.api.call('POST', path, body, { keepalive: true }));
    if (!this.settled(answer)) return false;
    if (a.type === 'reorder' && answer.kind === 'failed' && answer.status === 409 && answer.field === 'version') {
      this.schedule(backoff(this.tries++, 60_000)); // something about the driver has changed since: the order is made anew
      return false;
    }
    if (answer.kind === 'ok' && a.type === 'trip_start' && answer.data.trip?._id) {
      await this.store.set('trips', { ...(await this.store.get('trips')), [a.tracking_id]: answer.data.trip._id });
    }
    // A decline that was sent before, its answer lost, finds the task with somebody else.
    const repeated = answer.kind === 'failed' && a.type === 'decline' && answer.status === 404;
    await this.conclude(seq, a, repeated ? { kind: 'ok', data: {} } : answer);
    return true;
  }

  /** The server has decided on an action. */
  private async conclude(seq: number, a: Action, answer: Answer): Promise<void> {
    if (answer.kind === 'failed') {
      const { pin: _, ...action } = a as Action & { pin?: string }; // it is the customer's
      await this.store.refuse({ id: seq, driver: this.driver, action: action as Action, status: answer.status, ...(answer.field && { field: answer.field }), message: answer.message || String(answer.status) });
      this.events.onChange();
      this.events.onRefused(a);
      return;
    }
    await this.store.drop([seq], a.type === 'proof' ? a.file : undefined);
    this.events.onChange();
    this.events.onDone(a);
  }

  private async request(a: Step): Promise<{ path: string; body: unknown; known?: Answer }> {
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
      case 'reorder':
        return this.reorder(a);
      case 'undo':
        return { path: this.task(a.task_id, a.type), body: { at: a.at, lnglat: a.lnglat, step: a.step } };
      case 'complete':
        return this.completion(a);
      case 'decline':
        return { path: this.task(a.task_id, 'decline'), body: { at: a.at, reason: a.reason, reason_code: a.reason_code } };
      default:
        return { path: this.task(a.task_id, a.type), body: { at: a.at, lnglat: a.lnglat } };
    }
  }

  /**
   * An order of the stops is made anew for the route as it is by now: what was done before it, or has
   * come since, is no conflict; another order of somebody else's is, and is left as it is.
   */
  private async reorder(a: Extract<Action, { type: 'reorder' }>): Promise<{ path: string; body: unknown; known?: Answer }> {
    const path = '/v1/driver/route';
    const now = await this.api.call('GET', path);
    if (now.kind !== 'ok') return { path, body: null, known: now };
    const route = (now.data.stops as Stop[]).map(({ task_id, leg }) => ({ task_id, leg }));
    const stops = rebased(a.from, a.to, route);
    if (!stops) return { path, body: null, known: { kind: 'failed', status: 409, message: '', retryAfter: 0 } };
    return { path, body: { stops, version: now.data.version } };
  }

  private completion(a: Extract<Action, { type: 'complete' }>): { path: string; body: unknown } {
    const { at, lnglat, outcome, reason, reason_code, received_by, note, pin } = a;
    return { path: this.task(a.task_id, 'complete'), body: { at, lnglat, outcome, reason, reason_code, received_by, note, pin } };
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
