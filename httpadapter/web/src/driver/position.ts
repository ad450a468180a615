// Where the phone is: watched while on duty or on a trip, thinned, and handed on as fixes.

import { distance, type LngLat } from '../shared/geo';
import { worthKeeping, type Fix } from './model';

export type GpsStatus = 'off' | 'wait' | 'ok' | 'denied' | 'unavailable' | 'insecure';

export interface Me {
  lnglat: LngLat;
  heading: number | null;
  accuracy: number;
  ms: number;
}

/**
 * How often a driver who stands still is heard of, in ms. A customer's page calls a position live
 * for five minutes, and the dispatcher a driver silent after ten: on a trip several beats may get
 * lost before either, and off one the battery counts for more.
 */
const beats = { trip: 30_000, duty: 60_000 };

const options: PositionOptions = { enableHighAccuracy: true, maximumAge: 0, timeout: 30_000 };
const tick = 5_000; // ms between two looks whether a beat is due: one that falls just short is not a whole beat late

export class Positions {
  status: GpsStatus = 'off';
  me: Me | null = null;
  private watch: number | null = null;
  private since = 0; // when the watch began
  private trip = false;
  private kept: { lnglat: LngLat; ms: number } | null = null;
  private heard = 0; // when the last position was kept or asked for
  private timer: ReturnType<typeof setInterval> | undefined;
  private battery: { level: number } | null = null;
  private asking = false; // some phones take minutes to find themselves

  constructor(
    private readonly geolocation: Geolocation | undefined,
    private readonly offset: () => number,
    private readonly onFix: (f: Fix, first: boolean) => void,
    private readonly onAlive: () => void,
    private readonly onChange: () => void,
  ) {}

  /** Starts or stops watching. On a trip positions are taken more often. */
  set(on: boolean, trip: boolean): void {
    this.trip = trip;
    if (on === (this.status !== 'off')) return;
    clearInterval(this.timer);
    this.unwatch();
    this.status = 'off';
    if (on) {
      this.since = this.heard = Date.now();
      this.kept = null;
      this.timer = setInterval(() => this.beat(), tick); // also where no position is to be had: the driver is there
      const nav = navigator as Navigator & { getBattery?: () => Promise<{ level: number }> };
      nav.getBattery?.().then((b) => (this.battery = b)).catch(() => {});
      this.start();
    }
    this.onChange();
  }

  /** Tries again what was refused: leave may have been given since, and a watch that was refused is over. */
  again(): void {
    if (this.status !== 'denied' && this.status !== 'unavailable') return;
    this.start();
    this.onChange();
  }

  private start(): void {
    this.unwatch();
    // Over plain http browsers refuse as if the driver had: so there it is not even asked for.
    if (!this.geolocation || !isSecureContext) {
      this.status = isSecureContext ? 'unavailable' : 'insecure';
      return;
    }
    this.status = 'wait';
    this.asking = false;
    this.watch = this.geolocation.watchPosition((p) => this.take(p), (e) => this.fail(e), options);
  }

  private unwatch(): void {
    if (this.watch !== null) this.geolocation!.clearWatch(this.watch);
    this.watch = null;
  }

  /** Many browsers call back only when the position changes: whoever stands is asked for. */
  private beat(): void {
    const now = Date.now();
    if (now >= this.heard && now - this.heard < (this.trip ? beats.trip : beats.duty)) return;
    this.heard = now;
    if (this.watch === null || this.asking) {
      this.onAlive(); // the driver is there, though nobody knows where
      return;
    }
    this.asking = true;
    this.geolocation!.getCurrentPosition(
      (p) => {
        this.asking = false;
        if (this.watch === null) return; // off duty by now
        if (this.status === 'denied') this.start();
        this.take(p, true);
      },
      (e) => {
        this.asking = false;
        if (this.watch === null) return;
        this.fail(e);
        this.onAlive();
      },
      options,
    );
  }

  private fail(e: GeolocationPositionError): void {
    const next = e.code === e.PERMISSION_DENIED ? 'denied' : this.me && Date.now() - this.me.ms < beats.duty ? this.status : 'unavailable';
    if (next !== this.status) {
      this.status = next;
      this.onChange();
    }
  }

  private take(p: GeolocationPosition, always = false): void {
    const c = p.coords;
    // Some phones count the time of a position from another year: then it is now.
    let ms = Math.abs(p.timestamp - Date.now()) < 24 * 3600_000 ? p.timestamp : Date.now();
    // None is older than the watch, which asks for no kept ones; where one says so its clock is not the phone's. By its word it would be from off duty.
    if (ms < this.since) ms = Date.now();
    if (always && this.kept && ms <= this.kept.ms) ms = Date.now(); // the same position, seen again
    const lnglat: LngLat = [c.longitude, c.latitude];
    const heading = c.heading !== null && Number.isFinite(c.heading) ? c.heading : null;
    this.me = { lnglat, heading, accuracy: c.accuracy, ms };
    this.status = 'ok';
    const metres = this.kept ? distance(this.kept.lnglat, lnglat) : 0;
    if (always || worthKeeping(this.kept, { lnglat, ms }, this.trip, metres)) {
      const first = this.kept === null;
      this.kept = { lnglat, ms };
      this.heard = Date.now();
      const f: Fix = { lnglat, time: new Date(ms + this.offset()).toISOString() };
      if (Number.isFinite(c.accuracy) && c.accuracy >= 0) f.accuracy = c.accuracy;
      if (c.speed !== null && Number.isFinite(c.speed) && c.speed >= 0) f.speed = c.speed;
      if (heading !== null) f.bearing = heading;
      if (this.battery) f.battery = this.battery.level;
      this.onFix(f, first);
    }
    this.onChange();
  }
}

/** Keeps the screen awake while asked to. The browser lets go of the lock whenever the page is hidden. */
export class Awake {
  readonly possible = 'wakeLock' in navigator;
  private wanted = false;
  private lock: WakeLockSentinel | null = null;

  constructor() {
    document.addEventListener('visibilitychange', () => void this.take());
  }

  set(wanted: boolean): void {
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    if (wanted) {
      void this.take();
    } else {
      void this.lock?.release();
      this.lock = null;
    }
  }

  private async take(): Promise<void> {
    if (!this.wanted || !this.possible || document.hidden || (this.lock && !this.lock.released)) return;
    try {
      this.lock = await navigator.wakeLock.request('screen');
      if (!this.wanted) void this.lock.release();
    } catch {
      // Refused, as with a nearly empty battery; the next time the page is shown it is tried again.
    }
  }
}
