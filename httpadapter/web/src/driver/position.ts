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

const beat = 60_000; // a driver who stands still is heard of once a minute

export class Positions {
  status: GpsStatus = 'off';
  me: Me | null = null;
  private watch: number | null = null;
  private since = 0; // when the watch began
  private trip = false;
  private kept: { lnglat: LngLat; ms: number } | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private battery: { level: number } | null = null;

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
    if (!on) {
      if (this.watch !== null) this.geolocation!.clearWatch(this.watch);
      this.watch = null;
      clearInterval(this.timer);
      this.status = 'off';
      this.onChange();
      return;
    }
    // Over plain http browsers refuse as if the driver had: so there it is not even asked for.
    if (!this.geolocation || !isSecureContext) {
      this.status = isSecureContext ? 'unavailable' : 'insecure';
      this.onChange();
      return;
    }
    this.status = 'wait';
    this.since = Date.now();
    this.kept = null;
    const options: PositionOptions = { enableHighAccuracy: true, maximumAge: 0, timeout: 30_000 };
    this.watch = this.geolocation.watchPosition((p) => this.take(p), (e) => this.fail(e), options);
    this.timer = setInterval(() => {
      // Many browsers call back only when the position changes.
      if (Date.now() - (this.kept?.ms ?? 0) >= beat) {
        this.geolocation!.getCurrentPosition((p) => this.take(p, true), (e) => this.fail(e), options);
        this.onAlive();
      }
    }, beat);
    const nav = navigator as Navigator & { getBattery?: () => Promise<{ level: number }> };
    nav.getBattery?.().then((b) => (this.battery = b)).catch(() => {});
    this.onChange();
  }

  private fail(e: GeolocationPositionError): void {
    const next = e.code === e.PERMISSION_DENIED ? 'denied' : this.me && Date.now() - this.me.ms < beat ? this.status : 'unavailable';
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

/** Whether the page has been touched since it was opened. Before that, browsers refuse sound and vibration, and complain. */
function touched(): boolean {
  return (navigator.userActivation as UserActivation | undefined)?.hasBeenActive ?? true; // one that does not say is tried
}

/** A sound and a vibration for a new task. Browsers allow sound only after a touch: `arm` is called from one. */
export class Alarm {
  private audio: AudioContext | null = null;

  arm(): void {
    if (!touched()) return; // called by a script, as from a page that fills in the code
    try {
      this.audio ??= new AudioContext();
      if (this.audio.state === 'suspended') void this.audio.resume();
    } catch {
      // No sound here.
    }
  }

  ring(): void {
    if (!touched()) return;
    try {
      navigator.vibrate?.([250, 120, 250]);
    } catch {
      // Not allowed here.
    }
    const a = this.audio;
    if (!a || a.state !== 'running') return;
    for (const [i, hz] of [659, 880, 659, 880].entries()) {
      const from = a.currentTime + i * 0.18;
      const tone = a.createOscillator();
      const gain = a.createGain();
      tone.type = 'triangle';
      tone.frequency.value = hz;
      gain.gain.setValueAtTime(0.0001, from);
      gain.gain.exponentialRampToValueAtTime(0.4, from + 0.02);
      gain.gain.exponentialRampToValueAtTime(0.0001, from + 0.16);
      tone.connect(gain).connect(a.destination);
      tone.start(from);
      tone.stop(from + 0.17);
    }
  }
}
