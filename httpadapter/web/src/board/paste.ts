// Makes tasks of the rows of a table: what each is, what is wrong with it, and the key by which it is made once.

import type { LngLat } from '../shared/geo';
import { guessColumns, type Kind, type Table } from './columns';
import { decimal, readPoint, toPoint } from './point';
import { readSheet, type Row } from './sheet';
import { dayOf, dayText, readDay, readSpan, type Clock, type Day } from './when';

export interface PlaceInput {
  lnglat?: LngLat;
  address?: string;
  customer?: { name?: string; mobile?: string };
}

/** A task to be made, as the API takes it. */
export interface NewTask {
  type: 1 | 2 | 3;
  order_id?: string;
  notes?: string;
  pickup?: PlaceInput;
  drop?: PlaceInput;
  window?: { from?: string; to?: string };
  auto_assign?: boolean;
  key?: string;
}

export type Fault = 'place' | 'point' | 'day' | 'time' | 'before' | 'long' | 'control' | 'quote';

/** What is wrong with a row, and in which kind of column. */
export interface Problem {
  kind: Kind;
  fault: Fault;
}

export interface Draft {
  line: number;
  cells: string[];
  task: NewTask; // as far as it could be read
  problems: Problem[]; // none: it can be made
}

export interface Paste {
  table: Table;
  drafts: Draft[];
}

export interface PasteOptions extends Clock {
  columns?: Kind[]; // what a person has said that the columns are
  autoAssign: boolean;
}

/** Reads what was pasted. */
export function readPaste(text: string, o: PasteOptions): Paste {
  const sheet = readSheet(text);
  const guessed = guessColumns(sheet, o);
  const table = o.columns && o.columns.length === guessed.columns.length ? { ...guessed, columns: o.columns } : guessed;
  const seen = new Map<string, number>();
  const drafts = table.rows.map((row) => {
    const d = draft(row, table.columns, o);
    if (row.line === sheet.open) d.problems.push({ kind: '', fault: 'quote' });
    // Equal rows are as many parcels: the second is told from the first by its number, and the same each time.
    const content = contentKey(d.task, dayOf(o.now, o.zone));
    const n = (seen.get(content) ?? 0) + 1;
    seen.set(content, n);
    d.task.key = `paste-${digest(content)}-${n}`;
    return d;
  });
  return { table, drafts };
}

const limits: Partial<Record<Kind, number>> = { order_id: 200, address: 1000, pickup_address: 1000, name: 200, pickup_name: 200, mobile: 32, pickup_mobile: 32, notes: 4000 };
const lines: readonly Kind[] = ['order_id'];

function draft(row: Row, columns: readonly Kind[], o: PasteOptions): Draft {
  const problems: Problem[] = [];
  const wrong = (kind: Kind, fault: Fault) => problems.push({ kind, fault });
  const cell = (kind: Kind) => {
    const i = columns.indexOf(kind);
    const text = kind === '' || i < 0 ? '' : (row.cells[i] ?? '');
    return text.replace(/^'(?=[=+\-@])/, ''); // how spreadsheets, and our own lists, say that it is no formula
  };
  const text = (kind: Kind, value = cell(kind)) => {
    if ([...value].length > (limits[kind] ?? Infinity)) wrong(kind, 'long');
    else if (value.includes('\0') || (lines.includes(kind) && /[\u0000-\u001f\u007f-\u009f]/.test(value))) wrong(kind, 'control');
    return value;
  };
  const place = (address: string, at: LngLat | null, name: string, mobile: string): PlaceInput | undefined => {
    if (!at && address === '') return undefined;
    const customer = { ...(name ? { name } : {}), ...(mobile ? { mobile } : {}) };
    return { ...(at ? { lnglat: at } : {}), ...(address ? { address } : {}), ...(name || mobile ? { customer } : {}) };
  };

  const street = [cell('street'), cell('number')].filter(Boolean).join(' ');
  const town = [cell('postcode'), cell('city')].filter(Boolean).join(' ');
  const address = text('address', [cell('address'), street, town].filter(Boolean).join(', '));
  const at = pointOf(cell, wrong);
  const drop = place(address, at, text('name'), text('mobile'));
  const from = point('pickup_point', cell, wrong);
  const pickup = place(text('pickup_address'), from, text('pickup_name'), text('pickup_mobile'));
  if (!drop && !pickup && !problems.some((p) => p.fault === 'point')) wrong(columns.includes('point') ? 'point' : 'address', 'place');

  const task: NewTask = { type: drop && pickup ? 3 : pickup && !drop ? 1 : 2 };
  if (o.autoAssign) task.auto_assign = true;
  if (pickup) task.pickup = pickup;
  if (drop) task.drop = drop;
  if (task.type === 1 && pickup && !pickup.customer && (cell('name') || cell('mobile'))) {
    pickup.customer = { ...(cell('name') ? { name: cell('name') } : {}), ...(cell('mobile') ? { mobile: cell('mobile') } : {}) };
  }
  const order = text('order_id');
  if (order) task.order_id = order;
  const notes = text('notes');
  if (notes) task.notes = notes;
  const window = windowOf(cell, o, wrong);
  if (window) task.window = window;
  return { line: row.line, cells: row.cells, task, problems };
}

type Cell = (kind: Kind) => string;
type Wrong = (kind: Kind, fault: Fault) => void;

function point(kind: Kind, cell: Cell, wrong: Wrong): LngLat | null {
  const text = cell(kind);
  const at = text === '' ? null : readPoint(text);
  if (text !== '' && !at) wrong(kind, 'point');
  return at;
}

function pointOf(cell: Cell, wrong: Wrong): LngLat | null {
  const [lat, lng] = [cell('lat'), cell('lng')];
  if (lat === '' && lng === '') return point('point', cell, wrong);
  const at = toPoint(decimal(lat), decimal(lng));
  if (!at) wrong(lat === '' || Math.abs(decimal(lat)) <= 90 ? 'lng' : 'lat', 'point');
  return at;
}

function windowOf(cell: Cell, o: PasteOptions, wrong: Wrong): NewTask['window'] {
  let day: Day | undefined;
  const written = cell('day');
  if (written !== '') {
    const d = readDay(written, o);
    // Spreadsheets write a day with the time 00:00.
    if (d && /^(00:00(:00)?)?$/.test(d.rest)) day = d.day;
    else wrong('day', 'day');
  }
  const read = (kind: Kind) => {
    const span = readSpan(cell(kind), o, day);
    if (span === null) wrong(kind, 'time');
    return span ?? {};
  };
  const { from: begin, to: end } = read('window');
  const starts = read('from').from;
  const ends = read('to');
  const from = starts ?? begin;
  const to = ends.to ?? ends.from ?? end;
  if (from !== undefined && to !== undefined && to < from) wrong(cell('to') ? 'to' : 'window', 'before');
  if (from === undefined && to === undefined) return undefined;
  const text = (ms: number) => new Date(ms).toISOString();
  return { ...(from === undefined ? {} : { from: text(from) }), ...(to === undefined ? {} : { to: text(to) }) };
}

/**
 * What makes a row the same as one pasted before. An order's number does, whatever else has changed in its row: then the server says that it differs. A row without
 * one is the same on the same day only: whoever gets something each day is pasted each day.
 */
function contentKey(t: NewTask, today: Day): string {
  if (t.order_id) return JSON.stringify(['order', t.order_id, t.type]);
  const { key: _, auto_assign: __, ...content } = t;
  return JSON.stringify(['row', t.window ? '' : dayText(today), content]);
}

/** A short text for a long one, 106 bits of it: two runs of cyrb53 with different beginnings. What is compared with it is the server's, who knows the content. */
export function digest(text: string): string {
  return half(text, 0x9e3779b9) + half(text, 0x85ebca6b);
}

function half(text: string, seed: number): string {
  let a = 0xdeadbeef ^ seed;
  let b = 0x41c6ce57 ^ seed;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 2654435761);
    b = Math.imul(b ^ c, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36).padStart(11, '0');
}
