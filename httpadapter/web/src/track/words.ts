// Times, distances and ages as people say them.

import type { Translate } from '../shared/config';

const minute = 60_000;

export interface Expected {
  main: string; // "in about 12 minutes"
  sub: string; // "about 14:35"
}

/**
 * The expected time in words. It is a guess, so it is rounded: to the minute below fifteen minutes; from there on to five minutes, the time of
 * day up. One that has passed is "any moment now", never a time in the past.
 */
export function expected(t: Translate, eta: number, now: number, clock: (ms: number) => string): Expected {
  const left = eta - now;
  if (left < 0.5 * minute) return { main: t('track.eta.soon'), sub: '' };
  const fine = Math.max(1, Math.round(left / minute));
  // Both by the same step: side by side, a coarse one contradicts a fine one.
  const near = fine < 15;
  const n = near ? fine : 5 * Math.round(fine / 5);
  const at = near ? minute * Math.round(eta / minute) : 5 * minute * Math.ceil(eta / (5 * minute));
  const sub = t('track.eta.clock', { time: clock(at) });
  if (n >= 60) return { main: t('track.eta.hours', { h: Math.floor(n / 60), m: n % 60 }), sub };
  return { main: t(n === 1 ? 'track.eta.minutes.one' : 'track.eta.minutes.other', { n }), sub };
}

/** How old a position is. A live one may be minutes old; one that is not live is "last seen". */
export function age(t: Translate, live: boolean, at: number, now: number, shown: (ms: number) => string): string {
  if (!live) return t('track.position.last', { time: shown(at) });
  const s = Math.max(0, Math.round((now - at) / 1000));
  if (s < 10) return t('track.position.now');
  if (s < 60) return t('track.position.seconds', { n: 5 * Math.floor(s / 5) });
  return t('track.position.minutes', { n: Math.floor(s / 60) });
}

/** A distance in metres, rounded to what one can see. */
export function length(t: Translate, metres: number, lang: string): string {
  if (metres < 950) return t('track.m', { n: Math.max(10, 10 * Math.round(metres / 10)) });
  const km = metres / 1000;
  const n = new Intl.NumberFormat(lang, { maximumFractionDigits: km < 10 ? 1 : 0 }).format(km);
  return t('track.km', { n });
}

/** Tells times of day and days in the brand's zone, else in the browser's. */
export function clocks(lang: string, timeZone: string | undefined) {
  const options = (o: Intl.DateTimeFormatOptions) => {
    try {
      return new Intl.DateTimeFormat(lang, { ...o, timeZone });
    } catch {
      return new Intl.DateTimeFormat(lang, o); // a zone that this browser does not know
    }
  };
  const time = options({ hour: '2-digit', minute: '2-digit' });
  const date = options({ weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
  const day = options({ year: 'numeric', month: 'numeric', day: 'numeric' });
  return {
    clock: (ms: number) => time.format(ms),
    /** The time, and the day when it is not today. */
    shown: (ms: number, now: number) => (day.format(ms) === day.format(now) ? time : date).format(ms),
  };
}

/** Lets a text through at most once a minute; what comes too soon waits, and only the last of it is said. */
export class Speaker {
  private last = -Infinity;
  private said = '';
  private waiting: string | null = null;

  constructor(
    private readonly say: (text: string) => void,
    private readonly gap = minute,
  ) {}

  offer(text: string, now: number): void {
    this.waiting = text === this.said ? null : text;
    this.tick(now);
  }

  tick(now: number): void {
    if (this.waiting === null || now - this.last < this.gap) return;
    this.said = this.waiting;
    this.waiting = null;
    this.last = now;
    this.say(this.said);
  }
}
