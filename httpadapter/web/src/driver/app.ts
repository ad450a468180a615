// The driver app without its looks: session, tasks, duty, positions, and what was not sent yet.

import type { Config } from '../shared/config';
import { translator, type Translate } from '../shared/config';
import { Pause } from '../shared/sse';
import { clocks } from '../track/words';
import { Api, type Answer } from './api';
import { follow, type Notice } from './feed';
import { apply, onTrip, type Action, type Shown, type ShownTask, type ShownTrip, type TripRequest, type World } from './model';
import { Outbox } from './outbox';
import { Alarm, Awake, Positions } from './position';
import type { Session, Store } from './store';

export interface Banner {
  id: number;
  kind: 'news' | 'problem';
  text: string;
  task?: string;
}

export interface PhoneApp {
  name: string;
  link?: string; // opens and configures the app
  template?: string; // an address to type into it
}

export type JoinError = 'invalid' | 'code.invalid' | 'code.form' | 'limited' | 'offline' | 'failed';

type NewAction = Action extends infer A ? (A extends Action ? Omit<A, 'at' | 'lnglat'> : never) : never;

const nothing: World = { duty: false, tasks: [], trips: [], requests: [] };
/** 128 random bits. Not crypto.randomUUID, which there is only over https. */
function newNonce(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

const fresh = 10 * 60_000; // a notice older than this rings no bell

export class App {
  readonly t: Translate;
  readonly api: Api;
  readonly times: ReturnType<typeof clocks>;
  readonly awake = new Awake();
  readonly positions: Positions;
  session: Session | null = null;
  revoked = false;
  unsent = 0;
  online = true;
  loaded = false;
  banners: Banner[] = [];
  phone: PhoneApp[] | null = null;
  invite: string | null;
  private readonly alarm = new Alarm();
  private world: World = nothing;
  private actions: Action[] = [];
  private taken: Action[] = []; // sent, and not yet in the world as it was last read
  private outbox: Outbox | null = null;
  private feed: AbortController | null = null;
  private readonly pause = new Pause();
  private readonly listeners = new Set<() => void>();
  private refreshing: Promise<void> | null = null;
  private refreshAgain = false;
  private nextBanner = 1;

  constructor(
    readonly config: Config,
    readonly store: Store,
    private readonly place: Location,
  ) {
    this.t = translator(config.words);
    this.times = clocks(config.lang, config.time_zone);
    this.api = new Api(config.base);
    this.api.offset = Math.abs(config.now - Date.now()) > 5_000 ? config.now - Date.now() : 0;
    const m = new RegExp('/join/([^/]+)/?$').exec(place.pathname);
    this.invite = m ? decodeURIComponent(m[1]!) : null;
    this.positions = new Positions(
      navigator.geolocation as Geolocation | undefined,
      () => this.api.offset,
      // The first one says that the driver is to be reckoned with; later ones go in batches.
      (fix, first) => void this.outbox?.add({ kind: 'fix', fix }, first ? 0 : onTrip(this.shown()) ? 2_000 : 10_000),
      () => void (this.online && this.session && this.api.call('POST', '/v1/driver/fixes', { fixes: [] })),
      () => this.changed(),
    );
  }

  subscribe(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  private changed(): void {
    for (const f of this.listeners) f();
  }

  get appUrl(): string {
    return this.config.base + '/driver/';
  }

  /** Whether more waits than the fixes of the last moments, which go in batches. */
  get backlog(): boolean {
    return this.unsent > 0 && (!this.online || this.actions.length > 0 || this.unsent > 30);
  }

  now(): number {
    return this.api.now();
  }

  shown(): Shown {
    return apply(this.world, this.actions, this.taken);
  }

  /** Reads what the phone has kept and goes on from there. */
  async boot(): Promise<void> {
    this.session = (await this.store.get('session')) ?? null;
    this.unsent = await this.store.count();
    this.revoked = !this.session && (await this.store.get('revoked')) !== undefined;
    // An invite is a wish to join; the session that is there goes on only when the driver says so.
    if (this.session && this.invite === null) await this.begin();
    this.loaded = true;
    addEventListener('online', () => this.wake());
    addEventListener('offline', () => this.setOnline(false));
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.wake();
    });
    this.changed();
  }

  private wake(): void {
    this.pause.wake();
    void this.outbox?.flush();
    if (this.session && this.outbox) void this.refresh();
  }

  private async begin(): Promise<void> {
    const s = this.session!;
    this.api.token = s.token;
    this.world = (await this.store.get('world')) ?? { ...nothing, duty: s.driver.availability === true };
    this.actions = await this.store.actions(s.driver.driver_id);
    this.outbox = new Outbox(this.store, this.api, s.driver.driver_id, {
      onChange: () => void this.recount(),
      onDone: (a) => {
        this.taken.push(a);
        void this.refresh();
      },
      onRefused: (a, status, message) => {
        this.tell('problem', this.t(status === 409 || status === 404 ? 'driver.conflict' : 'driver.refused', { message: message || String(status) }), 'task_id' in a ? a.task_id : undefined);
        void this.refresh();
      },
      onOnline: (ok) => this.setOnline(ok),
      onRevoked: () => void this.revoke(),
    });
    void this.outbox.flush();
    this.feed = new AbortController();
    const kept = await this.store.get('feed');
    const after = kept?.driver === s.driver.driver_id ? kept.after : '';
    void follow(
      this.api,
      after,
      {
        onNotice: (n) => this.notice(n),
        onReset: () => void this.refresh(),
        onOnline: (ok) => this.setOnline(ok),
        onRevoked: () => void this.revoke(),
        keep: (id) => void this.store.set('feed', { driver: s.driver.driver_id, after: id }),
      },
      this.pause,
      this.feed.signal,
    );
    this.watch();
    void this.refresh();
  }

  private end(): void {
    this.feed?.abort();
    this.outbox?.stop();
    this.feed = this.outbox = null;
    this.api.token = '';
    this.session = null;
    this.world = nothing;
    this.actions = [];
    this.taken = [];
    this.phone = null;
    this.banners = [];
    this.positions.set(false, false);
    this.awake.set(false);
  }

  /** The token is not valid any more: back to joining. The outbox stays, and goes on when the same driver has joined again. */
  private async revoke(): Promise<void> {
    if (!this.session) return;
    const driver = this.session.driver.driver_id;
    this.end();
    this.revoked = true;
    this.unsent = await this.store.count();
    this.changed();
    await this.store.set('revoked', { driver });
    await this.store.remove('session');
    await this.store.remove('world');
  }

  async signOut(): Promise<void> {
    this.end();
    await this.store.remove('session');
    await this.store.remove('world');
    this.unsent = await this.store.count();
    this.changed();
  }

  /** Leaves the invite aside and goes on with the session that is there. */
  stay(): void {
    this.place.replace(this.appUrl);
  }

  /** Joins with the invite of the address, or with a code. */
  async join(code: string | null): Promise<JoinError | null> {
    this.alarm.arm();
    const secret = code ?? this.invite ?? '';
    // The nonce is kept before it is used: a lost answer can then be asked for again, and the invite is not spent for nothing.
    let kept = await this.store.get('join');
    if (kept?.secret !== secret) {
      kept = { secret, nonce: newNonce() };
      await this.store.set('join', kept);
    }
    const body = code !== null ? { invite_code: code, nonce: kept.nonce } : { invite: secret, nonce: kept.nonce };
    const r = await this.api.call('POST', '/v1/driver/join', body);
    if (r.kind === 'offline') return 'offline';
    if (r.kind === 'failed') {
      if (r.status === 429) {
        this.limitedFor = Math.max(1, Math.ceil(r.retryAfter / 60));
        return 'limited';
      }
      if (r.status === 404 || r.status === 400) return code !== null ? 'code.invalid' : 'invalid';
      return 'failed';
    }
    const session: Session = { token: r.data.token, ingest_url: r.data.ingest_url ?? '', driver: r.data.driver };
    this.end();
    await this.store.remove('world');
    await this.store.set('session', session);
    void navigator.storage?.persist?.().catch(() => {}); // else a full phone may throw the unsent entries away
    await this.store.remove('join');
    await this.store.remove('revoked');
    if (this.invite !== null) {
      // The address holds the invite: leave it, also in the history.
      this.place.replace(this.appUrl);
      return null;
    }
    this.session = session;
    this.revoked = false;
    this.unsent = await this.store.count();
    await this.begin();
    this.changed();
    return null;
  }
  limitedFor = 1; // minutes

  private setOnline(ok: boolean): void {
    if (ok === this.online) return;
    this.online = ok;
    this.changed();
  }

  private async recount(): Promise<void> {
    if (!this.session) return;
    const driver = this.session.driver.driver_id;
    this.actions = await this.store.actions(driver);
    this.unsent = await this.store.count();
    this.watch();
    this.changed();
  }

  /** Positions are sent on duty and on a trip, and the screen stays awake on a trip. */
  private watch(): void {
    const s = this.shown();
    const trip = onTrip(s);
    this.positions.set(s.duty || trip, trip);
    this.awake.set(trip);
  }

  /** Reads tasks, trips, requests and duty. One reading at a time; what changes meanwhile is read by the next. */
  refresh(): Promise<void> {
    if (this.refreshing) {
      this.refreshAgain = true;
      return this.refreshing;
    }
    this.refreshing = this.read().finally(() => {
      this.refreshing = null;
      if (this.refreshAgain) {
        this.refreshAgain = false;
        void this.refresh();
      }
    });
    return this.refreshing;
  }

  private async read(): Promise<void> {
    const token = this.api.token;
    if (token === '') return;
    const covered = new Set(this.taken);
    const [me, tasks, trips, requests] = await Promise.all([
      this.api.call('GET', '/v1/driver/me'),
      this.api.call('GET', '/v1/driver/tasks'),
      this.api.call('GET', '/v1/driver/trips?status=1'),
      this.api.call('GET', '/v1/driver/requests'),
    ]);
    if (this.api.token !== token || !this.session) return;
    for (const r of [me, tasks, trips, requests]) {
      if (r.kind === 'failed' && r.status === 401) {
        await this.revoke();
        return;
      }
    }
    if (me.kind === 'offline') {
      this.setOnline(false);
      return;
    }
    this.setOnline(true);
    const before = this.world;
    const list = <T>(r: Answer, key: string, old: T[]): T[] => (r.kind === 'ok' ? ((r.data[key] as T[] | undefined) ?? []) : old);
    this.world = {
      duty: me.kind === 'ok' ? me.data.driver?.availability === true : before.duty,
      tasks: list(tasks, 'task_list', before.tasks),
      trips: list(trips, 'trips', before.trips),
      requests: list(requests, 'requests', before.requests),
    };
    if ([me, tasks, trips, requests].every((r) => r.kind === 'ok')) this.taken = this.taken.filter((a) => !covered.has(a));
    if (me.kind === 'ok' && me.data.driver) {
      this.session = { ...this.session, driver: me.data.driver };
      await this.store.set('session', this.session);
    }
    await this.store.set('world', this.world);
    await this.recount();
  }

  private notice(n: Notice): void {
    void this.refresh();
    const known = ['assigned', 'unassigned', 'updated', 'cancelled', 'trip_request'].includes(n.kind);
    const at = Date.parse(n.time);
    if (!known || (Number.isFinite(at) && this.now() - at > fresh)) return;
    const words = this.t('driver.notice.' + n.kind);
    this.alarm.ring();
    this.tell('news', words, n.kind === 'assigned' || n.kind === 'updated' ? n.task_id : undefined);
    if (document.hidden && typeof Notification !== 'undefined' && Notification.permission === 'granted') {
      void navigator.serviceWorker?.ready.then((r) => r.showNotification(words, { tag: n.id, body: this.config.name, data: location.origin + this.appUrl })).catch(() => {});
    }
  }

  private tell(kind: Banner['kind'], text: string, task?: string): void {
    this.banners = [{ id: this.nextBanner++, kind, text, task }, ...this.banners.filter((b) => b.text !== text)].slice(0, 3);
    this.changed();
  }

  dismiss(id: number): void {
    this.banners = this.banners.filter((b) => b.id !== id);
    this.changed();
  }

  /** The driver has come to a task by himself: what told of it has done its work. */
  seen(task: string): void {
    const rest = this.banners.filter((b) => b.kind !== 'news' || b.task !== task);
    if (rest.length === this.banners.length) return;
    this.banners = rest;
    this.changed();
  }

  /** Does something as the driver: at once on the phone, and on the server when the network allows. */
  async act(a: NewAction): Promise<void> {
    this.alarm.arm();
    if ('task_id' in a) this.seen(a.task_id);
    const me = this.positions.me;
    const near = me && Date.now() - me.ms < 60_000 && a.type !== 'availability' && a.type !== 'decline' ? { lnglat: me.lnglat } : {};
    const action = { ...a, ...near, at: new Date(this.now()).toISOString() } as Action;
    await this.outbox?.add({ kind: 'action', action }, 0);
  }

  setDuty(on: boolean): Promise<void> {
    return this.act({ type: 'availability', availability: on });
  }

  startTask(t: ShownTask): Promise<void> {
    return this.act({ type: 'start', task_id: t.task_id });
  }

  startTrip(r: TripRequest): Promise<void> {
    return this.act({ type: 'trip_start', tracking_id: r.tracking_id });
  }

  stopTrip(t: ShownTrip): Promise<void> {
    return this.act({ type: 'trip_stop', tracking_id: t.tracking_id, trip_id: t._id });
  }

  /** The set-up links for phone apps that track in the background. */
  async loadPhone(): Promise<void> {
    const r = await this.api.call('GET', '/v1/driver/phone');
    if (r.kind !== 'ok') return;
    const apps: unknown[] = Array.isArray(r.data.apps) ? r.data.apps : [];
    const text = (v: unknown) => (typeof v === 'string' && v !== '' ? v : undefined);
    this.phone = apps.flatMap((v) => {
      const o = v as Record<string, unknown>;
      const name = text(o.name);
      return name ? [{ name, link: text(o.link), template: text(o.template) }] : [];
    });
    this.changed();
  }
}
