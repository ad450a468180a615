// Days and times of day as people write them in English and German, in the zone of the board.

export interface Day {
  year: number;
  month: number; // 1 … 12
  day: number;
}

/** What a time is read by. */
export interface Clock {
  now: number; // Unix milliseconds
  zone?: string; // IANA; absent: the browser's own
  monthFirst: boolean; // 2/3 is the third of February
}

export interface Span {
  from?: number;
  to?: number;
}

/** Whether people of a language write the month before the day. */
export function monthFirst(locale: string): boolean {
  const parts = new Intl.DateTimeFormat(locale, { month: 'numeric', day: 'numeric' }).formatToParts(0);
  return parts.findIndex((p) => p.type === 'month') < parts.findIndex((p) => p.type === 'day') && /-(US|PH|PW|MH|FM)\b/i.test(locale);
}

/** The day that it is at a moment. */
export function dayOf(ms: number, zone?: string): Day {
  const { year, month, day } = wall(ms, zone);
  return { year, month, day };
}

/** The day as dates are sorted by, YYYY-MM-DD. */
export function dayText({ year, month, day }: Day): string {
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
}

/** The moment of a time of day, in minutes from midnight; those over 24 hours are of the days that follow. */
export function instant({ year, month, day }: Day, minutes: number, zone?: string): number {
  if (!zone) return new Date(year, month - 1, day, 0, minutes).getTime();
  const there = Date.UTC(year, month - 1, day, 0, minutes);
  // Twice: the first guess may lie beyond a change of the clocks.
  const first = there - offset(there, zone);
  return there - offset(first, zone);
}

function offset(ms: number, zone: string): number {
  const w = wall(ms, zone);
  return Date.UTC(w.year, w.month - 1, w.day, w.hour, w.minute, w.second) - 1000 * Math.floor(ms / 1000);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function wall(ms: number, zone?: string): Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number> {
  let format = formats.get(zone ?? '');
  if (!format) {
    const two = '2-digit';
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23', year: 'numeric', month: two, day: two, hour: two, minute: two, second: two });
    formats.set(zone ?? '', format);
  }
  const found: Record<string, number> = {};
  for (const p of format.formatToParts(ms)) found[p.type] = Number(p.value);
  return found as ReturnType<typeof wall>;
}

/** Reads the day that a text begins with; rest is what follows it. Null: it begins with none. */
export function readDay(text: string, c: Clock): { day: Day; rest: string } | null {
  const today = dayOf(c.now, c.zone);
  const word = /^(today|heute|tomorrow|morgen|übermorgen)(?=$|[\s,])[\s,]*/i.exec(text);
  if (word) {
    const ahead = { today: 0, heute: 0, tomorrow: 1, morgen: 1, übermorgen: 2 }[word[1]!.toLowerCase()]!;
    return { day: later(today, ahead), rest: text.slice(word[0].length) };
  }
  let m = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:T|[\s,]+|$)/i.exec(text);
  if (m) return valid(Number(m[1]), Number(m[2]), Number(m[3]), text.slice(m[0].length));
  // With a weekday before it, as spreadsheets show it.
  const bare = text.replace(/^\p{L}{2,10}\.?,?\s+(?=\d)/u, '');
  m = /^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2}(?![:.\d]))?[\s,]*/.exec(bare);
  if (m) return valid(m[3] ? full(m[3]) : today.year, Number(m[2]), Number(m[1]), bare.slice(m[0].length));
  m = /^(\d{1,2})\/(\d{1,2})(?:\/(\d{4}|\d{2}))?(?:[\s,]+|$)/.exec(bare);
  if (!m) return null;
  const [a, b] = [Number(m[1]), Number(m[2])];
  const monthIsFirst = b > 12 || (a <= 12 && c.monthFirst);
  return valid(m[3] ? full(m[3]) : today.year, monthIsFirst ? a : b, monthIsFirst ? b : a, bare.slice(m[0].length));
}

function full(year: string): number {
  return year.length === 2 ? 2000 + Number(year) : Number(year);
}

function valid(year: number, month: number, day: number, rest: string): { day: Day; rest: string } | null {
  const d = new Date(Date.UTC(year, month - 1, day));
  return d.getUTCMonth() === month - 1 && d.getUTCDate() === day ? { day: { year, month, day }, rest } : null;
}

function later({ year, month, day }: Day, days: number): Day {
  const d = new Date(Date.UTC(year, month - 1, day + days));
  return { year: d.getUTCFullYear(), month: d.getUTCMonth() + 1, day: d.getUTCDate() };
}

interface Time {
  minutes: number; // from midnight, as it stands
  half: 'am' | 'pm' | '';
  exact: boolean; // with minutes or a word that makes it a time
}

const time = /^(\d{1,2})(?:([:.h])(\d{2})(?::\d{2}(?:\.\d+)?)?)?\s*(am|pm|a\.m\.|p\.m\.|uhr|h)?(?=$|[^\p{L}\d:])/iu;

function readTime(text: string): { time: Time; rest: string } | null {
  const m = time.exec(text);
  if (!m) return null;
  const [hour, minute] = [Number(m[1]), Number(m[3] ?? 0)];
  const word = (m[4] ?? '').toLowerCase().replaceAll('.', '');
  const half = word === 'am' || word === 'pm' ? word : '';
  if (hour > 24 || minute > 59 || (hour === 24 && minute > 0) || (half !== '' && (hour < 1 || hour > 12))) return null;
  return { time: { minutes: 60 * hour + minute, half, exact: m[2] !== undefined || word !== '' }, rest: text.slice(m[0].length).trim() };
}

/** Minutes from midnight. A half of the day may stand at the other end alone: 2–4 pm. */
function minutesOf(t: Time, half: Time['half']): number {
  if (half === '') return t.minutes;
  return (t.minutes % 720) + (half === 'pm' ? 720 : 0);
}

const dash = /^(?:-|–|—|to\b|till\b|until\b|bis\b|and\b|und\b)\s*/i;
const upTo = /^(?:by|before|until|till|bis|vor)\s+/i;
const since = /^(?:from|after|since|ab|nach|von)\s+/i;

/**
 * Reads a span: "14:00-16:00", "2–4 pm", "bis 16 Uhr", "28.11.2026 14:00 – 16:00". One moment alone is the begin. What names no day is of the one given, else of today.
 * Null: that is no span.
 */
export function readSpan(text: string, c: Clock, day?: Day): Span | null {
  text = text.trim();
  if (text === '') return {};
  const whole = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))(?:\s*(?:\/|-|–|to|bis)\s*(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)))?$/i.exec(text);
  if (whole) {
    const [from, to] = [Date.parse(whole[1]!), whole[2] ? Date.parse(whole[2]) : undefined];
    return Number.isNaN(from) || Number.isNaN(to) ? null : to === undefined ? { from } : { from, to };
  }
  const end = upTo.exec(text);
  const begin = end ? null : since.exec(text);
  text = text.slice((end ?? begin)?.[0].length ?? 0);

  const first = readDay(text, c);
  const on = first?.day ?? day ?? dayOf(c.now, c.zone);
  const at = readTime(first ? first.rest : text);
  if (!at) return null;
  const alone = at.rest === '';
  if (alone || end) {
    if (!alone || !(at.time.exact || end || begin || first)) return null;
    const ms = instant(on, minutesOf(at.time, at.time.half), c.zone);
    return end ? { to: ms } : { from: ms };
  }
  const between = dash.exec(at.rest);
  if (!between) return null;
  const second = at.rest.slice(between[0].length);
  const other = readDay(second, c);
  const till = readTime(other ? other.rest : second);
  if (!till || till.rest !== '') return null;
  const close = minutesOf(till.time, till.time.half);
  let open = minutesOf(at.time, at.time.half);
  if (at.time.half === '' && till.time.half !== '') {
    open = minutesOf(at.time, till.time.half);
    if (open > close && !other) open = at.time.minutes; // 11–1 pm
  }
  const over = !other && close < open ? 24 * 60 : 0; // past midnight
  return { from: instant(on, open, c.zone), to: instant(other?.day ?? on, close + over, c.zone) };
}

/** A span as it is written to be read, and read again by readSpan; whatever the language. */
export function writeSpan({ from, to }: Span, until: 'by' | 'bis', zone?: string): string {
  const day = (ms: number) => dayText(dayOf(ms, zone));
  const two = (n: number) => String(n).padStart(2, '0');
  const clock = (ms: number) => {
    const w = wall(ms, zone);
    return two(w.hour) + ':' + two(w.minute);
  };
  if (from !== undefined && to !== undefined) return `${day(from)} ${clock(from)} – ${day(to) === day(from) ? '' : day(to) + ' '}${clock(to)}`;
  if (to !== undefined) return `${until} ${day(to)} ${clock(to)}`;
  return from === undefined ? '' : `${day(from)} ${clock(from)}`;
}
