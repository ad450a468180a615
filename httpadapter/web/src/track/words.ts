// Times, distances and ages as people say them.

import type { Translate } from '../shared/config';

const minute = 60_000;
const far = 12 * 60 * minute;
const furthest = 24 * 60 * minute; // an estimate of more is no time to tell: a guess from a straight line, or a position that is wrong

export interface Expected {
  main: string; // "between 14:35 and 14:50", "in about 8 minutes"
  sub: string; // "about 14:35", of minutes
}

export interface Span {
  from: number;
  to: number;
}

const five = 5 * minute;

/** The span in which somebody is to be expected: a fifth of what is left to either side, in steps of five minutes. Null: so near that minutes are told. */
export function span(eta: number, now: number): Span | null {
  const left = eta - now;
  if (Math.round(left / minute) < 10) return null;
  const half = Math.max(left / 5, five / 2);
  const from = five * Math.round((eta - half) / five);
  return { from, to: Math.max(from + five, five * Math.round((eta + half) / five)) };
}

/** Keeps to a span that has been told while the expected time stays inside: then it only narrows. */
export class Narrowing {
  private told: Span | null = null;

  take(eta: number, now: number): Span | null {
    const next = span(eta, now);
    const told = this.told;
    this.told = next;
    if (told && next && told.from > now && told.from <= eta && eta <= told.to) {
      const both = { from: Math.max(told.from, next.from), to: Math.min(told.to, next.to) };
      if (both.to - both.from >= five) this.told = both;
    }
    return this.told;
  }
}

/** How times are said: of day, with the day where it is another than that of `from` or, near, half a day away, and that day alone ('' for the same). */
export interface Times {
  clock(ms: number): string;
  shown(ms: number, from: number): string;
  near(ms: number, from: number): string;
  day(ms: number, from: number): string;
}

/**
 * The expected time in words. It is a guess: a span, and minutes only when there are few. One that has passed is "any moment now", never a time in the
 * past. Null: too far away to be told.
 */
export function expected(t: Translate, eta: number, now: number, times: Times, estimate = false, told = span(eta, now)): Expected | null {
  const left = eta - now;
  if (estimate && left > furthest) return null;
  if (left < 0.5 * minute) return { main: t('track.eta.soon'), sub: '' };
  // Of what is near, the time of day alone tells which day.
  if (told) return { main: left > far ? between(t, told, now, times) : t('track.eta.between', { from: times.clock(told.from), to: times.clock(told.to) }), sub: '' };
  const n = Math.max(1, Math.round(left / minute));
  const sub = t('track.eta.clock', { time: times.clock(minute * Math.round(eta / minute)) });
  return { main: t(n === 1 ? 'track.eta.minutes.one' : 'track.eta.minutes.other', { n }), sub };
}

/** A span in words, its day told once. */
function between(t: Translate, s: Span, now: number, times: Times): string {
  const day = times.day(s.from, now);
  const once = day !== '' && times.day(s.to, s.from) === '';
  const when = t('track.eta.between', { from: once ? times.clock(s.from) : times.shown(s.from, now), to: times.shown(s.to, s.from) });
  return once ? t('track.eta.day', { day, when }) : when;
}

/** When somebody is to come by what was agreed: instants or NaN. Nothing once that has passed. */
export function planned(t: Translate, from: number, to: number, now: number, times: Times): string {
  if (to < now) return '';
  if (from < to) return between(t, { from, to }, now, times);
  if (Number.isFinite(to)) return t('track.eta.by', { time: times.shown(to, now) });
  return Number.isFinite(from) ? t('track.eta.from', { time: times.shown(from, now) }) : '';
}

export function stops(t: Translate, n: number | undefined): string {
  if (n === undefined) return '';
  if (n === 0) return t('track.stops.none');
  return t(n === 1 ? 'track.stops.one' : 'track.stops.other', { n });
}

/** Whether a promise is broken. What has been told is taken back only for a time that keeps it by minutes, or it would come and go. */
export class Late {
  private promised = NaN;
  private late = false;

  /** The expected time may be NaN, not known. */
  take(promised: number, eta: number, now: number): boolean {
    if (promised !== this.promised) this.late = false;
    this.promised = promised;
    if (now > promised || eta > promised) this.late = true;
    else if (eta <= promised - five) this.late = false;
    return this.late;
  }
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

const base = (tag: string) => tag.split('-')[0]!.toLowerCase();

/** The reader's languages, most wanted first. The browser's own comes last, and only to tell the country of one that is there without. */
export function readerLanguages(): readonly string[] {
  const wanted = globalThis.navigator?.languages ?? [];
  const own = new Intl.DateTimeFormat().resolvedOptions().locale;
  return wanted.length === 0 || wanted.some((l) => base(l) === base(own)) ? [...wanted, own] : wanted;
}

/**
 * How to write times and numbers for a reader of texts in `lang`. The texts know no countries, the reader's languages do: half past two is 14:30 in British
 * English and 2:30 PM in American. A reader whose language the texts are not in gets their language with the hours counted as at home.
 */
export function readerLocale(lang: string, languages: readonly string[]): { locale: string; hourCycle?: Intl.LocaleHourCycleKey } {
  const own = languages.filter((l) => known(l) && base(l) === base(lang));
  const locale = own.find((l) => l.includes('-')) ?? own[0];
  if (locale) return { locale };
  const home = languages.find(known);
  return { locale: lang, hourCycle: home ? new Intl.DateTimeFormat(home, { hour: 'numeric' }).resolvedOptions().hourCycle : undefined };
}

function known(tag: string): boolean {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0;
  } catch {
    return false; // no language tag
  }
}

/** Tells times of day and days in the brand's zone, else in the browser's. */
export function clocks(lang: string, timeZone: string | undefined, languages: readonly string[] = readerLanguages()) {
  const { locale, hourCycle } = readerLocale(lang, languages);
  const options = (o: Intl.DateTimeFormatOptions) => {
    try {
      return new Intl.DateTimeFormat(locale, { ...o, timeZone });
    } catch {
      return new Intl.DateTimeFormat(locale, o); // a zone that this browser does not know
    }
  };
  const halves = options({ hour: 'numeric', hourCycle }).resolvedOptions().hourCycle?.startsWith('h1');
  const hours: Intl.DateTimeFormatOptions = { hour: halves ? 'numeric' : '2-digit', minute: '2-digit', hourCycle };
  const time = options(hours);
  const date = options({ weekday: 'short', day: 'numeric', month: 'short', ...hours });
  const name = options({ weekday: 'short', day: 'numeric', month: 'short' });
  const day = options({ year: 'numeric', month: 'numeric', day: 'numeric' });
  return {
    /** The day when it is another than that of `from`, else ''. */
    day: (ms: number, from: number) => (day.format(ms) === day.format(from) ? '' : name.format(ms)),
    clock: (ms: number) => time.format(ms),
    /** The time, and the day when it is not today. */
    shown: (ms: number, now: number) => (day.format(ms) === day.format(now) ? time : date).format(ms),
    /** The time, and the day when it is half a day or more away: of what is nearer the time tells which day, also past midnight. */
    near: (ms: number, now: number) => (Math.abs(ms - now) < far ? time : date).format(ms),
  };
}

/** Keeps to the expected time that is shown while a new one hardly differs, or the words would waver between two minutes at every red light. */
export class Steady {
  private shown = NaN;

  /** The time to show for this one; NaN is none, and forgets. */
  take(eta: number): number {
    if (!(Math.abs(eta - this.shown) < 0.75 * minute)) this.shown = eta;
    return this.shown;
  }
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
