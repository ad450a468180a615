// A task as it is written by hand, and read from what was written.

import type { Task } from './model';
import type { Place } from '../shared/place';
import type { NewTask, PlaceInput } from './paste';
import { readPoint, writePoint } from './point';
import { readSpan, writeSpan, type Clock, type Span } from './when';

export interface PlaceDraft {
  address: string;
  point: string; // "lat, lng", or nothing
  name: string;
  mobile: string;
}

export interface TaskDraft {
  pickup: PlaceDraft;
  drop: PlaceDraft;
  order: string;
  notes: string;
  when: string;
}

export type Side = 'pickup' | 'drop';

const noPlace: PlaceDraft = { address: '', point: '', name: '', mobile: '' };
export const emptyDraft: TaskDraft = { pickup: noPlace, drop: noPlace, order: '', notes: '', when: '' };

/** What is wrong with what was written: the key of a text, by field. */
export type Errors = Partial<Record<'pickup.point' | 'drop.point' | 'address' | 'when', string>>;

const isEmpty = (p: PlaceDraft) => p.address.trim() === '' && p.point.trim() === '';

function placeOf(p: PlaceDraft, side: Side, errors: Errors): PlaceInput | undefined {
  const address = p.address.trim();
  const point = p.point.trim();
  if (address === '' && point === '') return undefined;
  const at = point ? readPoint(point) : readPoint(address);
  if (point && !at) errors[`${side}.point`] = 'board.error.point';
  const customer = { ...(p.name.trim() ? { name: p.name.trim() } : {}), ...(p.mobile.trim() ? { mobile: p.mobile.trim() } : {}) };
  // An address that is a place in numbers says nothing else.
  return { ...(at ? { lnglat: at } : {}), ...(point || !at ? (address ? { address } : {}) : {}), ...(customer.name || customer.mobile ? { customer } : {}) };
}

function spanOf(d: TaskDraft, c: Clock, errors: Errors): Span {
  const span = readSpan(d.when, c);
  if (span === null) errors.when = 'board.error.when';
  else if (span.from !== undefined && span.to !== undefined && span.to < span.from) errors.when = 'board.error.before';
  return span ?? {};
}

const text = (s: Span) => ({ ...(s.from === undefined ? {} : { from: new Date(s.from).toISOString() }), ...(s.to === undefined ? {} : { to: new Date(s.to).toISOString() }) });

/** A new task of what was written, or what is wrong with that. */
export function taskOf(d: TaskDraft, c: Clock, autoAssign: boolean): { task: NewTask; errors: Errors } {
  const errors: Errors = {};
  const pickup = placeOf(d.pickup, 'pickup', errors);
  const drop = placeOf(d.drop, 'drop', errors);
  if (!pickup && !drop) errors.address = 'board.error.place';
  const span = spanOf(d, c, errors);
  const task: NewTask = { type: pickup && drop ? 3 : pickup ? 1 : 2 };
  if (pickup) task.pickup = pickup;
  if (drop) task.drop = drop;
  if (d.order.trim()) task.order_id = d.order.trim();
  if (d.notes.trim()) task.notes = d.notes.trim();
  if (span.from !== undefined || span.to !== undefined) task.window = text(span);
  if (autoAssign) task.auto_assign = true;
  return { task, errors };
}

const draftOfPlace = (p: Place | undefined): PlaceDraft => ({
  address: p?.address ?? '',
  point: p?.lnglat ? writePoint(p.lnglat) : '',
  name: p?.customer?.name ?? '',
  mobile: p?.customer?.mobile ?? '',
});

export function draftOf(t: Task, until: 'by' | 'bis', zone?: string): TaskDraft {
  const ms = (time: string | undefined) => (time ? Date.parse(time) : undefined);
  const [from, to] = [ms(t.window?.from), ms(t.window?.to)];
  return {
    pickup: draftOfPlace(t.pickup),
    drop: draftOfPlace(t.drop),
    order: t.order_id ?? '',
    notes: t.notes ?? '',
    when: writeSpan({ ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }, until, zone),
  };
}

/** What of a task was changed, as an update takes it: only what is another than it was. */
export function changesOf(was: TaskDraft, d: TaskDraft, c: Clock): { update: Record<string, unknown>; errors: Errors } {
  const errors: Errors = {};
  const update: Record<string, unknown> = {};
  for (const side of ['pickup', 'drop'] as const) {
    const [a, b] = [was[side], d[side]];
    if (a.address === b.address && a.point === b.point && a.name === b.name && a.mobile === b.mobile) continue;
    // An address that has changed is another place, unless its point was written with it.
    const moved = a.address !== b.address && a.point === b.point && a.point !== '';
    const place = placeOf(moved ? { ...b, point: '' } : b, side, errors);
    if (!place) errors.address = 'board.error.place';
    else update[side] = { ...place, customer: { name: b.name.trim(), mobile: b.mobile.trim() } };
  }
  if (was.order !== d.order) update['order_id'] = d.order.trim();
  if (was.notes !== d.notes) update['notes'] = d.notes.trim();
  if (was.when !== d.when) update['window'] = text(spanOf(d, c, errors));
  return { update, errors };
}

/** Whether nothing was written. */
export const isBlank = (d: TaskDraft): boolean => isEmpty(d.pickup) && isEmpty(d.drop) && !d.order.trim() && !d.notes.trim() && !d.when.trim();
