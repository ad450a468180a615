// Sends many tasks in pieces, and tells of each what became of it.

import type { NewTask } from './paste';

export type Fate =
  | { kind: 'waits' } // not sent yet
  | { kind: 'sent' } // no answer yet
  | { kind: 'made'; id: string }
  | { kind: 'there'; id: string } // made before, by an earlier paste
  | { kind: 'refused'; message: string; field: string; conflict: boolean }
  | { kind: 'unknown' }; // no answer came: it may have been made, and can be sent again

/** Whether a task that an answer tells of was there before. */
export type Known = (task: { task_id: string; created_at?: string }) => boolean;

/** What a call was answered with, as far as this looks at it. */
export type BatchAnswer = { kind: 'ok'; data: { results?: unknown } } | { kind: 'offline' } | { kind: 'failed'; status: number; message: string; field?: string };

const most = 500; // of one call
const bytes = 1_500_000; // the API takes 2 MiB

/** Cuts a list where the API's limits are. */
export function pieces(tasks: readonly NewTask[], atMost = most, weight = bytes): [from: number, to: number][] {
  const cuts: [number, number][] = [];
  let from = 0;
  let sum = 0;
  tasks.forEach((t, i) => {
    const w = new TextEncoder().encode(JSON.stringify(t)).length + 1;
    if (i > from && (i - from >= atMost || sum + w > weight)) {
      cuts.push([from, i]);
      from = i;
      sum = 0;
    }
    sum += w;
  });
  if (tasks.length > from) cuts.push([from, tasks.length]);
  return cuts;
}

/**
 * Sends tasks, each with its key, and tells what became of which. A piece that is not answered leaves its rows unknown, and what follows waits: a network that is gone
 * is not asked again and again. Known tells of a task that it was there before.
 */
export async function sendAll(
  tasks: readonly NewTask[],
  call: (body: { tasks: readonly NewTask[] }) => Promise<BatchAnswer>,
  known: Known,
  tell: (at: number, fate: Fate) => void,
): Promise<void> {
  for (const [from, to] of pieces(tasks)) {
    for (let i = from; i < to; i++) tell(i, { kind: 'sent' });
    const answer = await call({ tasks: tasks.slice(from, to) });
    const results = answer.kind === 'ok' && Array.isArray(answer.data.results) ? answer.data.results : [];
    for (let i = from; i < to; i++) tell(i, fateOf(answer, results[i - from], known));
    if (answer.kind !== 'ok') return;
  }
}

function fateOf(answer: BatchAnswer, result: any, known: Known): Fate {
  if (answer.kind === 'failed' && answer.status < 500 && answer.status !== 429) return { kind: 'refused', message: answer.message, field: answer.field ?? '', conflict: false };
  if (answer.kind !== 'ok' || !result) return { kind: 'unknown' };
  const id = result.task?.task_id;
  if (typeof id === 'string') return known(result.task) ? { kind: 'there', id } : { kind: 'made', id };
  const e = result.error ?? {};
  const code = String(e.code ?? '');
  if (code === 'unavailable' || code === 'internal' || code === '') return { kind: 'unknown' };
  return { kind: 'refused', message: String(e.message ?? ''), field: String(e.field ?? ''), conflict: code === 'conflict' };
}

/** How many became what. */
export function tally(fates: readonly Fate[]): Record<Fate['kind'], number> {
  const n = { waits: 0, sent: 0, made: 0, there: 0, refused: 0, unknown: 0 };
  for (const f of fates) n[f.kind]++;
  return n;
}

/** Whether a row may be sent again without being made twice. */
export const again = (f: Fate): boolean => f.kind === 'waits' || f.kind === 'unknown';
