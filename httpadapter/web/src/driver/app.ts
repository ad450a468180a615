// The driver app without its looks: session, tasks, duty, positions, and what was not sent yet.

import { Alarm } from '../shared/alarm';
import type { Config } from '../shared/config';
import { translator, type Translate } from '../shared/config';
import { distance, type LngLat } from '../shared/geo';
import { showNews } from '../shared/news';
import { Pause } from '../shared/sse';
import { clocks } from '../track/words';
import { Api, type Answer } from './api';
import { lacking } from './evidence';
import { usual } from './fail';
import { follow, type Notice } from './feed';
import type { MapApp } from './links';
import { calm, sameFinger, Stillness, TapGuard, type Point } from './guard';
import { apply, lastStep, nextPlace, nextStep, onTrip, type Action, type Refused, type Shown, type ShownTrip, type Stop, type Task, type TripRequest, type World } from './model';
import { Outbox } from './outbox';
import { Awake, Positions } from './position';
import type { LastSteps, Session, Store } from './store';

/** News for the driver. */
export interface Banner {
  id: number;
  text: string;
  task?: string;
}

type Side = 'left' | 'right';

/** Where a step was tapped, and what stands there instead of a button for a while. */
export interface Mark {
  of: string; // the task or tracking id
  trip?: boolean; // of a trip, which has a row of its own
  side: Side;
  words: string;
  refused?: boolean;
}

/** What the app asks its driver before it takes a step. */
export interface Question {
  what: 'proof' | 'fail' | 'decline';
  task: string;
  mark?: Mark; // of the step that it was asked for
}

export interface PhoneApp {
  name: string;
  link?: string; // opens and configures the app
  template?: string; // an address to type into it
}

export type JoinError = 'invalid' | 'code.invalid' | 'code.form' | 'limited' | 'offline' | 'failed';

type NewAction = Action extends infer A ? (A extends Action ? Omit<A, 'at' | 'lnglat' | 'about'> : never) : never;

const nothing: World = { duty: false, tasks: [], trips: [], requests: [] };

/** 128 random bits. Not crypto.randomUUID, which there is only over https. */
function newNonce(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

const underway = calm + 3_000; // ms that sending a step may take, also one that was held, without a word: what comes and goes moves the page
const closeBy = 150; // metres of a stop within which the server may see an arrival
const closeEvery = 10_000; // ms between asking it
const fresh = 10 * 60_000; // a notice older than this rings no bell

/** Where each button is on the screen. */
function buttons(): Map<HTMLButtonElement, Point> {
  return new Map([...document.querySelectorAll('button')].map((b) => [b, b.getBoundingClientRect()]));
}

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
  banners: Banner[] = [];
  phone: PhoneApp[] | null = null;
  invite: string | null;
  refused: Refused[] = [];
  /** The step that was taken last, while its place on the screen is kept clear. */
  step: Mark | null = null;
  asked: Question | null = null;
  /** The side of the row on which the next step's button is: never where the one before it was. */
  side: Side = 'left';
  /** The steps of the last tap, which may be taken back. */
  last: LastSteps | null = null;
  /** The app that shows the way. */
  maps: MapApp | null = null;
  readonly guard = new TapGuard(() => this.changed());
  readonly still = new Stillness(buttons);
  private readonly alarm = new Alarm(() => this.changed());
  private point: Point | null = null; // of the click under way; null: by keyboard
  private clear: Point | null = null; // where the last step was tapped
  private arriving: ReturnType<typeof setTimeout> | undefined;
  private calmTimer: ReturnType<typeof setTimeout> | undefined;
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
    const m = new RegExp('/join/([^/]+)/?$').exec(place.pathname);
    this.invite = m ? decodeURIComponent(m[1]!) : null;
    this.positions = new Positions(
      navigator.geolocation as Geolocation | undefined,
      () => this.api.offset,
      // The first one says that the driver is to be reckoned with; later ones go in batches.
      (fix, first) => {
        // A full phone keeps none.
        void this.outbox?.add({ kind: 'fix', fix }, first ? 0 : onTrip(this.shown()) ? 2_000 : 10_000).catch(() => {});
        this.lookForArrival(fix.lnglat);
      },
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

  /** The words that the server takes as a reason_code. */
  get reasons(): string[] {
    return this.world.reasons ?? usual;
  }

  get appUrl(): string {
    return this.config.base + '/driver/';
  }

  /** Whether more waits than the fixes of the last moments, which go in batches, what is held for an Undo, and a step on its way. */
  get backlog(): boolean {
    return this.unsent > 0 && (!this.online || this.unsent > 30 || this.actions.some((a) => !a.held && this.now() - Date.parse(a.at) > underway));
  }

  now(): number {
    return this.api.now();
  }

  shown(): Shown {
    return apply(this.world, this.actions, this.taken);
  }

  /** Whether the order of the stops can be changed. */
  get reorders(): boolean {
    return this.world.reorder === true;
  }

  /** Whether a new task can be heard. */
  get sound(): 'on' | 'touch' | 'none' {
    return this.alarm.sound;
  }

  /** Reads what the phone has kept and goes on from there. False: the page is being left. */
  async boot(): Promise<boolean> {
    this.session = (await this.store.get('session')) ?? null;
    // Not by the page's time: without a network the page is one that was kept.
    this.api.offset = (await this.store.get('offset')) ?? 0;
    const revoked = await this.store.get('revoked');
    const owner = this.session?.driver.driver_id ?? revoked?.driver;
    this.unsent = owner === undefined ? 0 : await this.store.count(owner);
    this.revoked = !this.session && revoked !== undefined;
    if (this.session && this.invite !== null && this.session.invite === this.invite) {
      this.stay(); // the driver has come by the link that this phone has joined by: it has done its work
      return false;
    }
    // Another invite is a wish to join; the session that is there goes on only when the driver says so.
    if (this.session && this.invite === null) await this.begin();
    addEventListener('online', () => this.wake());
    addEventListener('offline', () => this.setOnline(false));
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) void this.outbox?.release();
      else this.wake();
    });
    addEventListener('pagehide', () => {
      for (const a of this.actions) {
        // What must be said before it waits. One that is on its way may be cut off: said twice it is no other end, but a PIN would be tried twice.
        if (a.type !== 'complete' || (!a.held && a.pin)) break;
        this.outbox?.farewell(a);
      }
      void this.outbox?.release();
    });
    addEventListener(
      'click',
      (e) => {
        if (this.meant(e)) return;
        e.preventDefault();
        e.stopImmediatePropagation();
      },
      { capture: true },
    );
    // Leave that is given in the phone's settings counts at once, where the browser tells.
    void navigator.permissions
      ?.query({ name: 'geolocation' })
      .then((leave) => leave.addEventListener('change', () => this.positions.again()))
      .catch(() => {});
    for (const touch of ['pointerup', 'keydown'] as const) addEventListener(touch, () => this.alarm.arm(), { capture: true, passive: true });
    this.changed();
    return true;
  }

  /**
   * Whether a click was meant for what it hits. Not the second half of a double tap, nor a tap at
   * what has moved under the finger, be it that a banner has gone, a list has shifted, a question
   * has opened, or a step's button has made way for the next. Keys have no place, and are meant.
   */
  private meant(e: MouseEvent): boolean {
    this.point = e.detail > 0 ? { x: e.clientX, y: e.clientY } : null;
    const target = e.target as Element;
    // A map is tapped twice to zoom, and a text to mark a word; a label passes its click on to its box.
    if (this.point === null || target.closest('.leaflet-container, input, textarea')) return true;
    if (this.step && sameFinger(this.clear, this.point)) return false;
    const button = target.closest('button');
    if (button && (button.getAttribute('aria-disabled') === 'true' || !this.still.stands(button))) return false;
    return !target.closest('button, a, summary, label, dialog') || !this.guard.again(this.point);
  }

  private wake(): void {
    this.pause.wake();
    this.positions.again();
    void this.outbox?.hurry();
    if (this.session && this.outbox) void this.refresh();
  }

  private async begin(): Promise<void> {
    const s = this.session!;
    this.api.token = s.token;
    this.world = (await this.store.get('world')) ?? { ...nothing, duty: s.driver.availability === true };
    await this.store.set('owner', { driver: s.driver.driver_id, created_at: s.driver.created_at });
    await this.store.release(s.driver.driver_id); // held by a page that is no more, which may have sent it as it closed
    this.actions = await this.store.actions(s.driver.driver_id);
    this.refused = await this.store.refused(s.driver.driver_id);
    this.maps = (await this.store.get('maps')) ?? null;
    const last = await this.store.get('last');
    this.last = last?.driver === s.driver.driver_id ? last : null;
    this.outbox = new Outbox(this.store, this.api, s.driver.driver_id, {
      onChange: () => void this.recount(),
      onDone: (a) => {
        this.taken.push(a);
        void this.refresh();
      },
      onRefused: (a) => {
        const of = 'task_id' in a ? a.task_id : 'tracking_id' in a ? a.tracking_id : null;
        if (this.step?.of === of && a.type !== 'proof') this.step = { ...this.step!, words: this.t('driver.step.refused'), refused: true };
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
    this.refused = [];
    this.step = this.asked = this.last = null;
    clearTimeout(this.arriving);
    this.arriving = undefined;
    this.positions.set(false, false);
    this.awake.set(false);
  }

  /** The token is not valid any more: back to joining. The outbox stays, and goes on when the same driver has joined again. */
  private async revoke(): Promise<void> {
    if (!this.session) return;
    const driver = this.session.driver.driver_id;
    this.end();
    this.revoked = true;
    this.unsent = await this.store.count(driver);
    this.changed();
    await this.store.set('revoked', { driver });
    await this.store.remove('session');
    await this.store.remove('world');
  }

  async signOut(): Promise<void> {
    const driver = this.session?.driver.driver_id;
    this.end();
    await this.store.remove('session');
    await this.store.remove('world');
    this.unsent = driver === undefined ? 0 : await this.store.count(driver);
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
    const session: Session = { token: r.data.token, ingest_url: r.data.ingest_url ?? '', driver: r.data.driver, ...(code === null ? { invite: secret } : {}) };
    this.end();
    await this.store.remove('world');
    const { driver_id: driver, created_at } = session.driver;
    const owner = await this.store.get('owner');
    if (owner?.driver === driver && owner.created_at !== created_at) await this.store.purge(driver);
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
    this.unsent = await this.store.count(session.driver.driver_id);
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
    const [actions, refused] = await Promise.all([this.store.actions(driver), this.store.refused(driver)]);
    if (this.session?.driver.driver_id !== driver) return;
    this.actions = actions;
    this.refused = refused;
    this.unsent = await this.store.count(driver);
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

  /** The server knows by the fixes that a driver has come to a stop, and tells nobody: close by it is asked. */
  private lookForArrival(at: LngLat): void {
    const close = (t: Task) => {
      const place = nextPlace(t)?.place.lnglat;
      return nextStep(t) === 'arrive' && place !== undefined && distance(at, place) < closeBy;
    };
    if (this.arriving !== undefined || !this.shown().tasks.some(close)) return;
    this.arriving = setTimeout(() => {
      this.arriving = undefined;
      void this.refresh().then(() => this.positions.me && !document.hidden && this.lookForArrival(this.positions.me.lnglat));
    }, closeEvery);
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
    const [me, tasks, route, trips, requests] = await Promise.all([
      this.api.call('GET', '/v1/driver/me'),
      this.api.call('GET', '/v1/driver/tasks'),
      this.api.call('GET', '/v1/driver/route'),
      this.api.call('GET', '/v1/driver/trips?status=1'),
      this.api.call('GET', '/v1/driver/requests'),
    ]);
    if (this.api.token !== token || !this.session) return;
    const answers = [me, tasks, route, trips, requests];
    for (const r of answers) {
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
    if (this.api.offset !== ((await this.store.get('offset')) ?? 0)) await this.store.set('offset', this.api.offset);
    const before = this.world;
    const list = <T>(r: Answer, key: string, old: T[]): T[] => (r.kind === 'ok' ? ((r.data[key] as T[] | undefined) ?? []) : old);
    const duty = me.kind === 'ok' ? me.data.driver?.availability === true : before.duty;
    const own = [...this.taken, ...this.actions].some((a) => a.type === 'availability'); // whose effect may not be in `me` yet
    this.world = {
      duty,
      rest: duty && !own ? undefined : before.rest,
      reorder: me.kind === 'ok' ? me.data.reorder === true : before.reorder,
      undoFor: me.kind === 'ok' ? me.data.undo_for : before.undoFor,
      reasons: me.kind === 'ok' && Array.isArray(me.data.reasons) ? me.data.reasons : before.reasons,
      tasks: list(tasks, 'task_list', before.tasks),
      route: list(route, 'stops', before.route ?? []),
      trips: list(trips, 'trips', before.trips),
      requests: list(requests, 'requests', before.requests),
    };
    if (answers.every((r) => r.kind === 'ok')) this.taken = this.taken.filter((a) => !covered.has(a));
    if (me.kind === 'ok' && me.data.driver) {
      this.session = { ...this.session, driver: me.data.driver };
      await this.store.set('session', this.session);
    }
    await this.store.set('world', this.world);
    if (tasks.kind === 'ok') await this.store.forget(this.session.driver.driver_id, new Set(this.world.tasks.map((x) => x.task_id)));
    await this.recount();
  }

  private notice(n: Notice): void {
    void this.refresh();
    const known = ['assigned', 'unassigned', 'updated', 'cancelled', 'trip_request', 'route', 'noted', 'handed_over', 'reopened'].includes(n.kind);
    const at = Date.parse(n.time);
    if (!known || (Number.isFinite(at) && this.now() - at > fresh)) return;
    const words = this.t('driver.notice.' + n.kind);
    this.alarm.ring();
    this.tell(words, ['assigned', 'updated', 'noted', 'reopened'].includes(n.kind) ? n.task_id : undefined);
    if (document.hidden && typeof Notification !== 'undefined' && Notification.permission === 'granted') {
      const news = { id: n.id, text: words, body: this.config.name, url: location.origin + this.appUrl };
      void navigator.serviceWorker?.ready.then((r) => showNews(r, news, this.t)).catch(() => {});
    }
  }

  /** Tells of something. However much there is to tell, it is one line. */
  private tell(text: string, task?: string): void {
    this.banners = [{ id: this.nextBanner++, text, task }, ...this.banners];
    this.changed();
  }

  /** The driver has seen a refused step. */
  async dismissRefused(id: number): Promise<void> {
    await this.store.dismiss(id);
    this.outbox?.schedule(0);
    await this.recount();
  }

  dismiss(): void {
    this.banners = [];
    this.changed();
  }

  /** The driver has come to a task by himself: what told of it has done its work. */
  seen(task: string): void {
    const rest = this.banners.filter((b) => b.task !== task);
    if (rest.length === this.banners.length) return;
    this.banners = rest;
    this.changed();
  }

  /** Asks the driver, as when a task's end wants proof. A tap that follows another too soon does nothing. */
  ask(what: Question['what'], task: string, mark?: Mark): void {
    if (!this.guard.take()) return;
    this.asked = { what, task, mark };
    this.changed();
  }

  answered(): void {
    this.asked = null;
    this.changed();
  }

  /**
   * Does something as the driver: at once on the phone, and on the server when the network allows.
   * The end of a task waits for an Undo first; one that lacks proof asks for it. A tap that follows
   * another too soon does nothing.
   */
  async act(what: NewAction | NewAction[], mark?: Mark): Promise<void> {
    const steps = [what].flat();
    const shown = this.shown();
    const asks = (a: NewAction) => a.type === 'complete' && a.outcome === 'succeeded' && shown.tasks.some((x) => x.task_id === a.task_id && lacking(x, {}).length > 0);
    const [first] = steps;
    // Of several parcels those that need no proof go together, and then the others one by one.
    const free = steps.filter((a) => !asks(a));
    const some = mark && free.length < steps.length ? { ...mark, words: this.t('driver.step.complete') } : mark;
    if (free.length > 0) await this.commit(free, some);
    else if (first?.type === 'complete') this.ask('proof', first.task_id, some);
  }

  /** Act with nothing left to ask. */
  async commit(what: NewAction | NewAction[], mark?: Mark): Promise<void> {
    this.alarm.arm();
    if (!this.guard.take()) return;
    this.asked = null;
    const steps = [what].flat();
    for (const a of steps) if ('task_id' in a) this.seen(a.task_id);
    this.remember(steps, mark);
    if (mark) this.keepCalm(mark);
    const me = this.positions.me;
    const near = me && Date.now() - me.ms < 60_000 ? { lnglat: me.lnglat } : {};
    const at = new Date(this.now()).toISOString();
    setTimeout(() => this.changed(), underway + 100); // should it wait still, that is to be said
    for (const a of steps) {
      const place = ['availability', 'decline', 'proof', 'reorder'].includes(a.type) ? {} : near;
      const action = { ...a, ...place, about: this.about(a), at } as Action;
      const hold = a.type === 'complete' && !document.hidden ? calm : 0;
      try {
        await this.outbox?.add({ kind: 'action', action, hold }, hold);
      } catch {
        this.full(mark);
        return;
      }
      // What was refused before is mended by this, or is refused anew.
      const mended = this.refused.filter((r) => a.type === 'complete' && 'task_id' in r.action && r.action.task_id === a.task_id);
      for (const r of mended) await this.dismissRefused(r.id);
    }
  }

  /** Gives the pictures that wait for their driver's word, of a task that has ended. */
  async givePictures(task: string): Promise<void> {
    if (!this.guard.take()) return;
    this.asked = null;
    const about = this.about({ type: 'decline', task_id: task });
    await this.outbox?.addPictures({ task_id: task, at: new Date(this.now()).toISOString(), about }).catch(() => this.full());
  }

  /** The phone has no room left: what was done is not kept, and not done. */
  private full(mark?: Mark): void {
    if (mark && this.step === mark) this.step = null;
    this.tell(this.t('driver.full'));
  }

  /** Keeps what the tap did, as long as it can be taken back; what came after it takes its place. */
  private remember(steps: readonly NewAction[], mark?: Mark): void {
    const done = steps.flatMap((a) => (a.type === 'start' || a.type === 'pickup' || a.type === 'complete' ? [{ task_id: a.task_id, step: a.type }] : []));
    if (done.length > 0) {
      const about = done.length === 1 ? this.about(steps[0]!) : undefined;
      this.last = { driver: this.session!.driver.driver_id, at: this.now(), steps: done, words: mark?.words ?? '', about };
    } else if (steps.some((a) => a.type === 'undo')) {
      this.last = null; // one step can be taken back, and not the one before it
    } else {
      return;
    }
    void (this.last ? this.store.set('last', this.last) : this.store.remove('last'));
  }

  /** The last steps, while the server would take them back and the place where they were tapped is free again. */
  returnable(shown: Shown): LastSteps | null {
    const last = this.last;
    if (!last || this.step || this.now() - last.at > 1000 * (this.world.undoFor ?? 0)) return null;
    return last.steps.every(({ task_id, step }) => shown.tasks.some((t) => t.task_id === task_id && !t.held && lastStep(t) === step)) ? last : null;
  }

  /** Takes back steps that were sent, or are on their way. */
  async takeBack(last: LastSteps): Promise<void> {
    await this.commit(last.steps.map((s) => ({ type: 'undo', ...s })));
  }

  setMaps(app: MapApp): void {
    this.maps = app;
    void this.store.set('maps', app);
    this.changed();
  }

  /** What the driver knows a step's task or trip by. */
  private about(a: NewAction): string | undefined {
    if ('tracking_id' in a) return a.tracking_id;
    const task = 'task_id' in a ? this.world.tasks.find((x) => x.task_id === a.task_id) : undefined;
    return task && (task.order_id || nextPlace(task)?.place.address);
  }

  /** Keeps the screen as it is around the step that is taken, for a while. */
  private keepCalm(mark: Mark): void {
    this.step = mark;
    if (!mark.trip) this.side = mark.side === 'left' ? 'right' : 'left';
    this.clear = this.point;
    clearTimeout(this.calmTimer);
    this.calmTimer = setTimeout(() => {
      this.step = null;
      this.guard.close(); // what has moved now must not be hit by a finger that was on its way
      void this.recount(); // what was held is held no more
      this.changed();
    }, calm + 100);
  }

  /** Takes back the ends of tasks, mostly before they were sent. */
  async undo(tasks: readonly string[], mark: Mark): Promise<void> {
    if (!this.guard.take()) return;
    this.keepCalm(mark);
    this.last = null;
    void this.store.remove('last');
    for (const task of tasks) {
      if (await this.outbox?.takeBack(task)) continue;
      // It is on its way, or sent: the server takes it back.
      const action: Action = { type: 'undo', step: 'complete', task_id: task, at: new Date(this.now()).toISOString(), about: this.about({ type: 'decline', task_id: task }) };
      await this.outbox?.add({ kind: 'action', action }, 0).catch(() => this.full(mark));
    }
    this.changed();
  }

  /** Goes on duty or off it; a break is off duty with a word for it, which the phone keeps. */
  async setDuty(on: boolean, rest = false): Promise<void> {
    if (this.guard.closed) return;
    this.world = { ...this.world, rest: rest ? new Date(this.now()).toISOString() : undefined };
    await this.act({ type: 'availability', availability: on, ...(rest ? { rest } : {}) });
    await this.store.set('world', this.world);
  }

  /** Puts the stops in another order, at once on the phone. */
  reorder(from: Stop[], to: Stop[]): Promise<void> {
    return this.act({ type: 'reorder', from, to });
  }

  startTrip(r: TripRequest): Promise<void> {
    const mark: Mark = { of: r.tracking_id, trip: true, side: 'left', words: this.t('driver.step.trip_start') };
    return this.act({ type: 'trip_start', tracking_id: r.tracking_id }, mark);
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
