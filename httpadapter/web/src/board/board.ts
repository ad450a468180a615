// The board without its looks: who is signed in, the live rows, what is selected and open, and what is asked of the server.

import { Alarm } from '../shared/alarm';
import { translator, type Config, type Translate } from '../shared/config';
import { distance, type LngLat } from '../shared/geo';
import { clocks } from '../track/words';
import { Api, query, type Answer } from './api';
import { Connection, liveness, type Liveness } from './connection';
import type { Landing } from './drag';
import { alike, driverName, nameOf, World, type Change, type Driver, type Rules, type Task, type Waiting } from './model';
import { differing, placed, sameOrder, withTask, type Stop } from './order';
import { readOf } from './read';
import { failed, leave, needs, told, type Candidate, type Need } from './needs';
import type { Contact } from '../shared/place';

export interface Session {
  actor: string;
  role: 'dispatch' | 'view';
}

export interface Selection {
  kind: 'task' | 'driver';
  id: string;
}

export interface Toast {
  id: number;
  problem: boolean;
  text: string;
}

/** Whom a task may go to, and why not. */
export interface Options {
  candidates: Candidate[];
  at: number;
}

/** The stops of a driver, as /v1/users/driver/route has them. */
export interface Route {
  stops: { task_id: string; leg: 'pickup' | 'drop'; eta?: { time: string } }[];
  version: number;
  at: number;
  of: number; // the version of the driver that it was read for
}

/** Where a task is to come among the stops that a driver has: which leg of it, and before which of them. */
export interface Where {
  leg: Stop['leg'];
  at: (stops: readonly Stop[]) => number;
}

/** A call that changes something. */
export interface Act {
  about: string[]; // ids of the rows that are changed
  path: string;
  body: object;
  seen?: Task; // as it was when the reader decided, where body names its version
  order?: readonly Stop[]; // of a driver's stops when the reader decided, where body is another order for its version
  headers?: Record<string, string>;
  done?: string; // what is said once it is done
  quiet?: boolean; // says nothing when it is refused: the caller does
}

const moves = ['assigned', 'unassigned', 'declined', 'picked_up', 'completed', 'undone', 'reopened'].map((x) => 'task.' + x); // what changes the stops of a driver
const flashFor = 4_000;
const redraw = 5_000; // ms
const ours = 2_000; // ms after an answer within which the stream tells of the same
const readAgain = 30_000; // ms until what is asked for apart from the stream is asked for again
const unreadFor = 4_000; // ms until what could not be read is read again: less than a redraw
const calls = 2; // of those that go on at once
const peekAfter = 500; // ms that something is held over a driver until his stops are shown
const dayPages = 4; // of 500 tasks that have ended

export class Board {
  readonly t: Translate;
  readonly times: ReturnType<typeof clocks>;
  readonly api: Api;
  readonly alarm = new Alarm(() => this.changed());
  readonly rules: Rules;
  world = new World(distance);
  state: 'checking' | 'offline' | 'out' | 'in' = 'checking';
  session: Session | null = null;
  /** Why there is nobody signed in, where that is not plain: the key of a text. */
  why = '';
  selection: Selection | null = null;
  panel: { name: string; of: string } | null = null;
  toasts: Toast[] = [];
  /** What needs attention now. */
  needs: Need[] = [];
  /** Why tasks wait, of those that do not say so themselves. */
  reasons = new Map<string, string>();
  /** Whether the tasks that ended today are all known. */
  wholeDay = false;
  muted: boolean;
  help = false;
  /** Takes the place of a click on the map, while a panel asks for one. */
  picking: ((at: LngLat) => void) | null = null;

  /** What the panel of a task is to ask at once. */
  asking: { what: 'delete' | 'unassign'; of: string } | null = null;

  /** A place that somebody looks for, before there is a task there. */
  looked: LngLat | null = null;

  /** Where what is dragged would land. */
  landing: Landing | null = null;
  /** A task that is dragged from a list, and where the pointer is. */
  dragged: { task: string; x: number; y: number } | null = null;
  /** Whose stops are shown while something is held over him. */
  peek = '';

  private connection: Connection | null = null;
  private started = 0;
  private readonly listeners = new Set<() => void>();
  private readonly movers = new Set<() => void>();
  private drawing = false;
  private readonly busy = new Map<string, number>();
  private readonly flashes = new Map<string, number>();
  private readonly touched = new Map<string, number>(); // by calls of ours, and when they were answered
  private making = 0; // calls of ours under way that make tasks
  private readonly unclaimed = new Set<string>(); // what has come since, and may be theirs
  private readonly options = new Map<string, Options>();
  private readonly routes = new Map<string, Route>();
  private readonly asked = new Map<string, () => Promise<boolean>>();
  private running = 0;
  private seenNeeds: Set<string> | null = null;
  private readonly dismissed: Set<string>;
  private nextToast = 1;
  private waitingAsked = 0;
  private dayRead = false;
  private waitingWanted = true;
  private ticked = 0;
  private was: Liveness['kind'] = 'connecting';
  private ticker: ReturnType<typeof setInterval> | undefined;

  constructor(
    readonly config: Config,
    private readonly kept: Pick<Storage, 'getItem' | 'setItem'> | null,
  ) {
    this.t = translator(config.words);
    this.times = clocks(config.lang, config.time_zone);
    this.api = new Api(location.origin + config.base); // where name and password stand in the address, fetch takes no path alone
    this.rules = { silentAfter: config.silent_after ?? 600_000, standsAfter: 600_000 };
    this.muted = this.recall('muted') === 'yes';
    this.dismissed = new Set((this.recall('left') ?? '').split('\n').filter(Boolean));
  }

  subscribe(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  /** Is told of positions, too, which come by the hundred. */
  follow(f: () => void): () => void {
    this.movers.add(f);
    return () => this.movers.delete(f);
  }

  /** Draws anew, once for all that happens at once. */
  changed(): void {
    if (this.drawing) return;
    this.drawing = true;
    const draw = () => {
      if (!this.drawing) return;
      this.drawing = false;
      this.look();
      for (const f of this.listeners) f();
      for (const f of this.movers) f();
    };
    // A page that is not shown has no frames, and still counts in its title.
    if (document.hidden) setTimeout(draw, 250);
    else requestAnimationFrame(draw);
  }

  now(): number {
    return Date.now() + this.world.offset;
  }

  get mayChange(): boolean {
    return this.session?.role === 'dispatch';
  }

  get liveness(): Liveness {
    return liveness(this.connection?.link ?? { heard: 0 }, !this.world.partial || this.wasWhole, this.started, Date.now());
  }

  private wasWhole = false;

  /** Begins: by the token of a link, or as whoever is signed in. */
  async boot(): Promise<void> {
    addEventListener('online', () => this.connection?.pause.wake());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.connection?.pause.wake();
    });
    for (const touch of ['pointerup', 'keydown'] as const) addEventListener(touch, () => this.alarm.arm(), { capture: true, passive: true });
    addEventListener('hashchange', () => void this.readHash());
    if (await this.readHash()) return;
    await this.check();
  }

  /** Takes what the address says: a token that signs in, which is gone from it at once, or a panel. */
  private async readHash(): Promise<boolean> {
    const hash = location.hash.slice(1);
    const token = /^signin=(.+)$/.exec(hash)?.[1];
    if (token !== undefined) {
      history.replaceState(null, '', location.pathname + location.search);
      await this.signIn({ token: decoded(token) });
      return true;
    }
    const [name = '', of = ''] = hash.split('/');
    this.panel = name ? { name, of: decoded(of) } : null;
    if (this.panel?.name !== 'task' || this.panel.of !== this.asking?.of) this.asking = null;
    this.changed();
    return false;
  }

  async check(): Promise<void> {
    this.state = 'checking';
    this.changed();
    const a = await this.api.call('GET', '/v1/session');
    if (a.kind === 'ok') this.enter(a.data.session);
    else if (a.kind === 'offline' || a.status >= 500) this.state = 'offline';
    else this.state = 'out';
    this.changed();
  }

  async signIn(by: { key: string } | { token: string }): Promise<void> {
    this.state = 'checking';
    this.changed();
    const a = await this.api.call('POST', '/v1/session', by);
    if (a.kind === 'ok') {
      this.why = '';
      this.enter(a.data.session);
    } else {
      this.state = 'out';
      this.why = a.kind === 'offline' || a.status >= 500 ? 'board.signin.offline' : a.status === 429 ? 'board.signin.limited' : 'token' in by ? 'board.signin.token' : 'board.signin.key.wrong';
    }
    this.changed();
  }

  async signOut(): Promise<void> {
    const a = await this.api.call('DELETE', '/v1/session');
    if (a.kind !== 'ok') return this.say(this.t('board.signout.failed'), true);
    this.leave('');
  }

  private enter(session: Session): void {
    this.session = session;
    this.state = 'in';
    this.started = Date.now();
    this.connection = new Connection({
      url: this.api.url('/v1/live'),
      fetch: (...a) => fetch(...a),
      onEvent: (type, data) => this.take(this.world.apply(type, data)),
      restart: () => {
        if (this.world.partial) this.world.begin();
        return this.world.partial;
      },
      onChange: () => this.changed(),
      onSignedOut: () => this.leave('board.signin.over'),
    });
    void this.connection.run();
    void this.readDay();
    this.ticker = setInterval(() => this.tick(), 1_000);
  }

  private leave(why: string): void {
    this.connection?.close();
    this.connection = null;
    clearInterval(this.ticker);
    this.world = new World(distance);
    this.wasWhole = this.wholeDay = this.dayRead = false;
    this.session = this.selection = this.panel = this.seenNeeds = null;
    this.asking = null;
    for (const m of [this.options, this.routes, this.busy, this.flashes, this.reasons, this.nobody, this.unread, this.marked]) m.clear();
    this.needs = [];
    this.state = 'out';
    this.why = why;
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);
    this.changed();
  }

  private take(change: Change | null): void {
    if (!change) return;
    if (change.kind === 'position') {
      for (const f of this.movers) f();
      return;
    }
    if (change.kind === 'all') {
      if (this.wasWhole) {
        // It began anew, and what has ended meanwhile was told to nobody.
        this.world.ended.clear();
        this.wholeDay = this.dayRead = false;
        void this.readDay();
      }
      this.wasWhole = true;
    }
    if (change.kind === 'task' || change.kind === 'driver') {
      const row = change.kind === 'task' ? (this.world.tasks.get(change.id) ?? this.world.ended.get(change.id)) : this.world.drivers.get(change.id);
      const others = !this.busy.has(change.id) && !this.touched.has(change.id) && row?.version !== change.was?.version;
      if (others && this.wasWhole) {
        if (this.making > 0 && !change.was && row) this.unclaimed.add(change.id);
        else this.flashes.set(change.id, Date.now());
      }
      if (change.kind === 'task') this.waitingWanted = true;
      if (change.kind === 'task' && !this.world.tasks.has(change.id)) this.options.delete(change.id);
      this.outdate(change.id);
    }
    this.changed();
  }

  /** Whom tasks may go to has changed: what is known of one is read again, and of the others soon. */
  private outdate(task?: string): void {
    for (const [id, o] of this.options) o.at = id === task ? 0 : Math.min(o.at, Date.now() - readAgain + 5_000);
  }

  private tick(): void {
    const now = Date.now();
    let drawn = now - this.ticked > redraw || this.liveness.kind !== this.was; // for what is told by the minute
    for (const [id, at] of this.flashes) if (now - at > flashFor) drawn = this.flashes.delete(id);
    for (const [id, at] of this.touched) if (now - at > ours) this.touched.delete(id);
    if (this.world.forget(this.today, (t) => this.dismissed.has(failed(t)))) this.changed();
    if (this.wasWhole && this.waitingWanted && now - this.waitingAsked > 2_000) void this.readWaiting();
    else if (now - this.waitingAsked > readAgain) this.waitingWanted = true;
    if (!drawn) return;
    this.ticked = now;
    this.was = this.liveness.kind;
    this.changed();
  }

  /** Works out what needs attention, and is heard when that becomes more. */
  private look(): void {
    if (!this.wasWhole) return;
    this.needs = needs(this.world, this.reasons, this.dismissed, this.now(), this.rules);
    const keys = new Set(this.needs.map((n) => n.key));
    // What was so before the board was opened is no news: what has ended is read a little later than the rest.
    const news = this.needs.some((n) => !this.seenNeeds?.has(n.key));
    if (this.seenNeeds && news && !this.muted) this.alarm.ring();
    if (this.dayRead) this.seenNeeds = keys;
    const title = this.t('board.title') + ' · ' + this.config.name;
    const shown = keys.size > 0 ? `(${keys.size}) ${title}` : title;
    if (document.title !== shown) document.title = shown;
  }

  /** Asks why tasks wait, where they do not say so themselves. */
  private async readWaiting(): Promise<void> {
    this.waitingAsked = Date.now();
    this.waitingWanted = false;
    const world = this.world;
    if (![...world.tasks.values()].some((t) => t.waiting && !t.waiting.reason)) return this.reasons.clear();
    const a = await this.api.call('GET', query('/v1/task/list', { waiting: 'true', limit: 1000 }));
    if (this.refused(a) || world !== this.world) return;
    const { tasks, reasons } = told(a.data.task_list as Task[]);
    this.reasons = reasons;
    for (const t of tasks) this.take(world.learn({ task: t }));
    this.changed();
  }

  /** Reads what has ended today, for what failed and for how far each driver is. */
  private async readDay(): Promise<void> {
    const world = this.world;
    let after: string | undefined;
    for (let n = 0; n < dayPages; n++) {
      const a = await this.api.call('GET', query('/v1/task/list', { status: 'completed', created_from: new Date(this.now() - 36 * 3_600_000).toISOString(), limit: 500, after }));
      if (this.refused(a) || world !== this.world) break;
      for (const t of a.data.task_list as Task[]) world.learn({ task: t });
      after = a.data.next as string | undefined;
      if (!after) {
        this.wholeDay = true;
        break;
      }
    }
    if (world !== this.world) return;
    this.dayRead = true;
    this.changed();
  }

  /** Whether an answer is none to go on with. One that says that nobody is signed in ends it all. */
  private refused(a: Answer): a is Exclude<Answer, { kind: 'ok' }> {
    if (a.kind === 'failed' && a.status === 401) this.leave('board.signin.over');
    return a.kind !== 'ok';
  }

  /** When today began. */
  get today(): number {
    return new Date(this.now()).setHours(0, 0, 0, 0);
  }

  task(id: string | undefined): Task | undefined {
    return id === undefined ? undefined : (this.world.tasks.get(id) ?? this.world.ended.get(id));
  }

  driver(id: string | undefined): Driver | undefined {
    return id === undefined ? undefined : this.world.drivers.get(id);
  }

  isBusy(id: string): boolean {
    return this.busy.has(id);
  }

  isFresh(id: string): boolean {
    return this.flashes.has(id);
  }

  select(kind: Selection['kind'], id: string): void {
    this.selection = { kind, id };
    this.changed();
  }

  private readonly marked = new Set<string>();
  private peeking: ReturnType<typeof setTimeout> | undefined;

  isMarked(task: string): boolean {
    return this.marked.has(task);
  }

  /** The open tasks that are marked, to be given to somebody together. */
  get several(): Task[] {
    return [...this.marked].flatMap((id) => this.world.tasks.get(id) ?? []);
  }

  mark(task: string, on = !this.marked.has(task)): void {
    if (on) this.marked.add(task);
    else this.marked.delete(task);
    this.changed();
  }

  unmark(): void {
    this.marked.clear();
    this.changed();
  }

  /** Something is dragged. Over whom it stays for a moment, his stops are shown. */
  hover(at: Landing | null, dragged: Board['dragged'] = null): void {
    if (at?.driver !== this.landing?.driver) {
      clearTimeout(this.peeking);
      if (at) this.peeking = setTimeout(() => ((this.peek = at.driver), this.changed()), peekAfter);
    }
    this.landing = at;
    this.dragged = dragged;
    this.changed();
  }

  /** It is dragged no more. */
  letGo(): void {
    this.hover(null);
    this.peek = '';
  }

  /** Gives a task to whom it was dropped on, and with it the others that are marked if it is one of them. What somebody is at is asked about first. */
  drop(id: string, at: Landing, leg: Stop['leg'] = 'drop'): void {
    const task = this.world.tasks.get(id);
    if (!task) return;
    if (this.marked.has(id) && this.several.length > 1) return this.open('several', 'to:' + at.driver);
    if (task.status === 'in_progress') return this.open('assign', id);
    void this.assign(task, at.driver, false, at.at === null ? undefined : { leg, at: this.before(at.driver, at.at) });
  }

  /** Where a place among the stops of a driver is that are on the screen: before the same stop, or what came after it, also where they have changed since. */
  private before(driver: string, at: number): Where['at'] {
    const later = this.shownStops(driver).slice(at);
    return (stops) => {
      const places = later.map((next) => stops.findIndex((s) => s.task_id === next.task_id && s.leg === next.leg));
      return places.find((i) => i >= 0) ?? stops.length;
    };
  }

  /** The stops of a driver that are on the screen. */
  shownStops(driver: string): Route['stops'] {
    return (this.routes.get(driver)?.stops ?? []).filter((s) => this.world.tasks.has(s.task_id));
  }

  unselect(): void {
    this.selection = null;
    this.changed();
  }

  open(name: string, of = ''): void {
    location.hash = name + (of ? '/' + encodeURIComponent(of) : '');
  }

  /** Opens the panel of a task, which asks whether that is to be done. */
  ask(what: 'delete' | 'unassign', of: string): void {
    this.asking = { what, of };
    this.open('task', of);
    this.changed();
  }

  close(): void {
    this.panel = this.asking = null;
    history.replaceState(null, '', location.pathname + location.search);
    this.changed();
  }

  /** What the map is asked to show. */
  private viewer: ((what: 'selection' | 'whole') => void) | null = null;

  view(what: 'selection' | 'whole'): void {
    this.viewer?.(what);
  }

  onView(f: ((what: 'selection' | 'whole') => void) | null): void {
    this.viewer = f;
  }

  say(text: string, problem = false): void {
    const toast = { id: this.nextToast++, problem, text };
    this.toasts = [...this.toasts.slice(-3), toast];
    setTimeout(() => this.unsay(toast.id), problem ? 15_000 : 5_000);
    this.changed();
  }

  unsay(id: number): void {
    this.toasts = this.toasts.filter((x) => x.id !== id);
    this.changed();
  }

  mute(): void {
    this.muted = !this.muted;
    this.keep('muted', this.muted ? 'yes' : 'no');
    this.changed();
  }

  /** Leaves something that failed as it is. */
  dismiss(need: Need): void {
    leave(this.dismissed, need.key, this.world);
    this.keep('left', [...this.dismissed].join('\n'));
    this.changed();
  }

  private recall(name: string): string | null {
    try {
      return this.kept?.getItem('tracking-board-' + name) ?? null;
    } catch {
      return null;
    }
  }

  private keep(name: string, value: string): void {
    try {
      this.kept?.setItem('tracking-board-' + name, value);
    } catch {
      // Then it is forgotten with the page.
    }
  }

  /** Changes something. The rows it is about are marked till the server has answered. */
  async act(a: Act): Promise<Answer> {
    for (const id of a.about) this.busy.set(id, (this.busy.get(id) ?? 0) + 1);
    this.changed();
    const makes = a.about.length === 0;
    if (makes) this.making++;
    let answer = await this.api.call('POST', a.path, a.body, a.headers);
    if (makes) this.claim(answer);
    if (a.seen && answer.kind === 'failed' && answer.status === 409) {
      // That it has become late meanwhile, say, is nothing to ask the reader about.
      const now = await this.newer(a.seen);
      if (now && alike(now, a.seen)) answer = await this.api.call('POST', a.path, { ...a.body, version: now.version }, a.headers);
    }
    if (a.order && answer.kind === 'failed' && answer.status === 409 && answer.field === 'version') {
      // Nor that something else about the driver has changed: the order is made from the one that there still is.
      const { driver_id } = a.body as { driver_id: string };
      const now = await this.api.call('GET', query('/v1/users/driver/route', { driver_id }));
      if (now.kind === 'ok' && sameOrder(now.data.stops as Stop[], a.order)) answer = await this.api.call('POST', a.path, { ...a.body, version: now.data.version }, a.headers);
    }
    for (const id of a.about) {
      const n = (this.busy.get(id) ?? 1) - 1;
      if (n > 0) this.busy.set(id, n);
      else this.busy.delete(id);
      this.touched.set(id, Date.now()); // what the stream still tells of it is ours
    }
    if (answer.kind === 'ok') {
      const { task, task_list, driver } = answer.data as { task?: Task; task_list?: Task[]; driver?: Driver };
      for (const t of task ? [task] : (task_list ?? [])) this.world.learn({ task: t });
      if (driver) this.world.learn({ driver });
      for (const id of a.about) {
        const route = this.routes.get(id);
        if (route) route.at = 0;
      }
      this.outdate(a.about[0]);
      this.waitingWanted = true;
      if (a.done) this.say(a.done);
    } else if (!this.refused(answer) || answer.kind === 'offline' || answer.status !== 401) {
      if (!a.quiet) this.say((await this.otherStops(answer, a.body, a.order)) ?? (await this.excuse(answer, a.about[0])), true);
    }
    this.changed();
    return answer;
  }

  /** What a call of ours has made is no news of somebody else's; the rest is. */
  private claim(answer: Answer): void {
    this.making--;
    if (answer.kind === 'ok') {
      const { task, results } = answer.data as { task?: Task; results?: { task?: Task }[] };
      for (const t of [task, ...(results ?? []).map((r) => r.task)]) if (t) this.touched.set(t.task_id, Date.now());
    }
    for (const id of this.unclaimed) {
      if (this.making > 0 && !this.touched.has(id)) continue;
      this.unclaimed.delete(id);
      if (!this.touched.has(id)) this.flashes.set(id, Date.now());
    }
  }

  /** A task as it is after what the stream tells of it soon; undefined when it tells nothing. */
  private newer(seen: Task): Promise<Task | undefined> {
    return new Promise((resolve) => {
      const look = () => {
        const now = this.task(seen.task_id);
        if (now && now.version > seen.version) end(now);
      };
      const end = (now?: Task) => {
        clearTimeout(timer);
        unsubscribe();
        resolve(now);
      };
      const unsubscribe = this.subscribe(look);
      const timer = setTimeout(end, 2_000);
      look();
    });
  }

  /** What has changed about the stops of a driver that were to come in an order, and who changed it; null: that was not what was in the way. */
  private async otherStops(a: Exclude<Answer, { kind: 'ok' }>, body: { task_id?: string; driver_id?: string; stops?: Stop[] }, order?: readonly Stop[]): Promise<string | null> {
    const id = body.driver_id;
    if (a.kind !== 'failed' || a.status !== 409 || !body.stops || !id || !/^(stops|version$)/.test(a.field ?? '')) return null;
    const now = await this.api.call('GET', query('/v1/users/driver/route', { driver_id: id }));
    const stops = now.kind === 'ok' ? (now.data.stops as Stop[]) : body.stops;
    const others = differing(body.stops, stops).filter((task) => task !== body.task_id);
    const driver = driverName(this.driver(id), id);
    for (const task of others) {
      const last = await this.lastEvent('task_id', task, moves);
      if (last) return this.t('board.act.stops.by', { driver, task: this.task(task) ? nameOf(this.task(task)!) : task, ...last });
    }
    if (others.length === 0 && order && now.kind === 'ok' && !sameOrder(stops, order)) {
      const last = await this.lastEvent('driver_id', id, ['driver.routed']);
      if (last) return this.t('board.act.stops.order', { driver, ...last });
    }
    return others.length > 0 || order || a.field!.startsWith('stops') ? this.t('board.act.stops', { driver }) : null;
  }

  /** What last happened to something, of these types or whichever there is a word for, in words: what, who and when. */
  private async lastEvent(kind: 'task_id' | 'driver_id', id: string, types?: readonly string[]): Promise<{ what: string; who: string; time: string } | null> {
    const e = await this.api.call('GET', query('/v1/events', { [kind]: id, limit: 1000 }));
    const all = e.kind === 'ok' ? (e.data.events as { type: string; actor: string; time: string }[]) : [];
    const last = all.filter((x) => !types || types.includes(x.type)).at(-1);
    const what = last && this.config.words['board.event.' + last.type];
    return what ? { what, who: this.actor(last.actor), time: this.times.clock(Date.parse(last.time)) } : null;
  }

  /** Why something was not done. Where somebody else was faster, who that was and with what. */
  async excuse(a: Exclude<Answer, { kind: 'ok' }>, about?: string): Promise<string> {
    if (a.kind === 'offline') return this.t('board.act.offline');
    if (a.status === 409 && about !== undefined) {
      const kind = this.task(about) ? 'task_id' : 'driver_id';
      const last = await this.lastEvent(kind, about);
      if (last) return this.t('board.act.conflict', { message: a.message, ...last });
    }
    return this.t('board.act.failed', { message: a.message });
  }

  /** Who an actor is, for people. */
  actor(actor: string): string {
    if (actor === this.session?.actor) return this.t('board.actor.you');
    const [kind, id = ''] = actor.split(/:(.*)/s);
    if (kind === 'driver') return driverName(this.driver(id), id);
    return kind === 'system' ? this.t('board.actor.system') : id || actor;
  }

  /** Whether that could not be read when it was asked for last. */
  couldNotRead(what: string): boolean {
    return this.unread.has(what);
  }

  /** Whom a task may go to, as far as it was read; asks for it where that is some time ago. */
  candidates(task: string): Options | null {
    const have = this.options.get(task);
    if (!have || Date.now() - have.at > readAgain) {
      this.read('candidates ' + task, async () => {
        const a = await this.api.call('GET', query('/v1/task/candidates', { task_id: task, limit: 10 }));
        if (a.kind !== 'ok') return false;
        const { candidates, waiting } = a.data as { candidates: Candidate[]; waiting?: Waiting };
        this.options.set(task, { candidates, at: Date.now() });
        if (waiting?.reason) this.reasons.set(task, waiting.reason);
        else this.reasons.delete(task);
        return true;
      });
    }
    return have ?? null;
  }

  /** The stops of a driver in order, as far as they were read; asks for them where they have changed since. */
  route(driver: string): Route | null {
    const have = this.routes.get(driver);
    const d = this.driver(driver);
    if (d && (!have || have.of !== d.version || Date.now() - have.at > 2 * readAgain)) {
      this.read('route ' + driver, async () => {
        const a = await this.api.call('GET', query('/v1/users/driver/route', { driver_id: driver }));
        if (a.kind === 'ok') this.routes.set(driver, { stops: a.data.stops, version: a.data.version, at: Date.now(), of: d.version });
        return a.kind === 'ok';
      });
    }
    return have ?? null;
  }

  /** A driver who need not be on duty, nor have anything to do: of such the stream tells nothing at first. */
  anyDriver(id: string): Driver | undefined {
    const d = this.driver(id);
    if (!d && !this.nobody.has(id)) {
      this.read('driver ' + id, async () => {
        const a = await this.api.call('GET', query('/v1/users/driver', { driver_id: id }));
        const read = readOf(a, (data) => data.driver as Driver);
        if (read.kind === 'read') this.world.learn({ driver: read.value });
        if (read.kind === 'none') this.nobody.add(id);
        return read.kind !== 'unread';
      });
    }
    return d;
  }

  private readonly nobody = new Set<string>(); // ids of which there is no driver
  private readonly unread = new Map<string, number>(); // what could not be read, and when

  /** Reads something once at a time, and few things at once. What could not be read is read again after a while, if it is still wanted. */
  private read(what: string, read: () => Promise<boolean>): void {
    if (this.asked.has(what) || Date.now() - (this.unread.get(what) ?? 0) < unreadFor) return;
    this.asked.set(what, read);
    this.readNext();
  }

  private readonly reading = new Set<string>();

  private readNext(): void {
    const next = [...this.asked].find(([what]) => !this.reading.has(what));
    if (!next || this.running >= calls) return;
    const [what, read] = next;
    const world = this.world;
    this.running++;
    this.reading.add(what);
    void read().then((done) => {
      if (done) this.unread.delete(what);
      else this.unread.set(what, Date.now());
      this.running--;
      this.reading.delete(what);
      this.asked.delete(what);
      if (world === this.world) this.changed();
      this.readNext();
    });
  }

  /** Gives a task to a driver, whoever had it: in one step. One that is under way is given only by `force`. It comes last, or `where` it is to be among his stops. */
  async assign(task: Task, to: string, force = false, where?: Where): Promise<Answer> {
    let stops: Stop[] | undefined;
    if (where) {
      const a = await this.api.call('GET', query('/v1/users/driver/route', { driver_id: to }));
      if (a.kind !== 'ok') {
        if (!this.refused(a) || a.kind === 'offline' || a.status !== 401) this.say(await this.excuse(a), true);
        return a;
      }
      const has = a.data.stops as Stop[];
      stops = placed(withTask(has, task), task.task_id, where.leg, where.at(has)).map(({ task_id, leg }) => ({ task_id, leg }));
    }
    return this.act({
      about: [task.task_id, to, ...(task.driver_id ? [task.driver_id] : [])],
      path: '/v1/task/assign',
      body: { task_id: task.task_id, driver_id: to, version: task.version, ...(force ? { force } : {}), ...(stops ? { stops } : {}) },
      seen: task,
      done: this.t('board.done.assigned', { task: nameOf(task), driver: driverName(this.driver(to), to) }),
    });
  }

  /**
   * Gives several tasks to a driver: those of one driver in one call, as far as that goes, and else each by itself. It returns which of them he did not get, and why.
   */
  async giveAll(tasks: readonly Task[], to: string, force: boolean): Promise<{ task: Task; why: string }[]> {
    let left: { task: Task; why: string }[] = [];
    const has = (t: Task) => this.world.tasks.get(t.task_id)?.driver_id === to;
    const already = tasks.filter((t) => t.driver_id === to).length;
    const by = new Map<string, Task[]>();
    for (const t of tasks) if (t.driver_id !== to) by.set(t.driver_id ?? '', [...(by.get(t.driver_id ?? '') ?? []), t]);
    for (const [from, list] of by) {
      if (from !== '' && list.length > 1) {
        const ids = list.map((t) => t.task_id);
        const a = await this.act({ about: [...ids, from, to], path: '/v1/users/driver/handover', body: { from, to, task_ids: ids, ...(force ? { force } : {}) }, quiet: true });
        if (a.kind === 'ok') continue;
      }
      // One of them is in the way of the others: each by itself, so that it is known which.
      for (const task of list) {
        const body = { task_id: task.task_id, driver_id: to, version: task.version, ...(force ? { force } : {}) };
        const a = await this.act({ about: [task.task_id, to, ...(from ? [from] : [])], path: '/v1/task/assign', body, seen: task, quiet: true });
        if (a.kind !== 'ok') left.push({ task, why: a.kind === 'offline' ? this.t('board.act.offline') : a.message });
      }
    }
    // An answer may have been lost, or somebody else was faster.
    left = left.filter((l) => !has(l.task)).map((l) => (this.world.ended.has(l.task.task_id) ? { ...l, why: this.t('board.assign.over') } : l));
    for (const t of tasks) this.marked.delete(t.task_id);
    for (const l of left) this.marked.add(l.task.task_id);
    const given = tasks.length - already - left.length;
    if (given > 0) this.say(this.t(given === 1 ? 'board.done.several.one' : 'board.done.several', { n: given, driver: driverName(this.driver(to), to) }));
    return left;
  }

  unassign(task: Task): Promise<Answer> {
    return this.act({ about: [task.task_id, ...(task.driver_id ? [task.driver_id] : [])], path: '/v1/task/unassign', body: { task_id: task.task_id, version: task.version }, seen: task, done: this.t('board.done.unassigned', { task: nameOf(task) }) });
  }

  retry(task: Task): Promise<Answer> {
    return this.act({ about: [task.task_id], path: '/v1/task/retry', body: { task_id: task.task_id, version: task.version }, seen: task, done: this.t('board.done.retried', { task: nameOf(task) }) });
  }

  /** Says that what phones could not deliver of a task has been seen to. */
  settle(task: Task): Promise<Answer> {
    return this.act({ about: [task.task_id], path: '/v1/task/settle', body: { task_id: task.task_id }, done: this.t('board.done.settled', { task: nameOf(task) }) });
  }

  /** Deletes a task that has ended, or that nobody has and that waits for nobody. */
  async remove(task: Task): Promise<boolean> {
    const a = await this.act({ about: [task.task_id], path: '/v1/task/delete', body: { task_id: task.task_id, version: task.version }, seen: task, done: this.t('board.done.deleted', { task: nameOf(task) }) });
    if (a.kind === 'ok') this.take(this.world.apply('gone', { task_id: task.task_id }));
    return a.kind === 'ok';
  }

  /** Erases a customer from all tasks, of which the caller has read some; that one of them is open is told by whoever lists them. */
  async erase(customer: Contact, from: readonly Task[]): Promise<boolean> {
    const a = await this.act({ about: from.map((t) => t.task_id), path: '/v1/contact/erase', body: { mobile: customer.mobile }, quiet: true });
    if (a.kind === 'ok') {
      const n = a.data.erased as number;
      this.say(this.t(n === 1 ? 'board.done.erased.one' : 'board.done.erased', { n, name: customer.name || customer.mobile! }));
    } else if (a.kind === 'offline' || a.status !== 409) this.say(await this.excuse(a), true);
    return a.kind === 'ok';
  }

  /** Where an address is, as the host's geocoder says; else why that is not known. */
  async findPlace(address: string): Promise<LngLat | string> {
    const a = await this.api.call('POST', '/v1/geocode', { address });
    if (a.kind === 'ok') return a.data.lnglat as LngLat;
    this.refused(a);
    return this.t(a.kind === 'offline' ? 'board.find.offline' : a.status === 404 ? 'board.find.unknown' : a.status === 429 ? 'board.find.limited' : 'board.find.failed');
  }

  /** A distance for people. */
  metres(m: number): string {
    return m < 950 ? this.t('track.m', { n: Math.max(10, Math.round(m / 10) * 10) }) : this.t('track.km', { n: (m / 1000).toLocaleString(this.config.lang, { maximumFractionDigits: m < 9_950 ? 1 : 0 }) });
  }

  /** When somebody was last heard, for people. */
  heard(time: number): string {
    const age = this.now() - time;
    return age < 60_000 ? this.t('board.seen.now') : this.t(age < 86_400_000 ? 'board.seen' : 'board.seen.at', { since: this.ago(time) });
  }

  /** How long ago, in few letters. */
  ago(time: number): string {
    const s = Math.max(0, (this.now() - time) / 1000);
    if (s < 60) return this.t('board.ago.now');
    if (s < 3600) return this.t('board.ago.minutes', { n: Math.floor(s / 60) });
    return s < 86_400 ? this.t('board.ago.hours', { n: Math.floor(s / 3600) }) : this.times.shown(time, this.now());
  }
}

/** A part of an address, as it is where it makes no sense. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
