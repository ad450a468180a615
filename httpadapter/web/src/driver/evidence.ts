// What a task asks for at its end, what of it is there, and why the server did not take it.

import type { Action, FileKind, ProofKind, Refused, ShownTask, Task } from './model';
import { mostFiles } from './picture';

/** What a driver gives with his word that a task has succeeded. */
export interface Given {
  files?: readonly FileKind[]; // beside those that the task has
  received_by?: string;
  pin?: string;
}

/** What lacks for a task to succeed, in the order in which it is asked for. */
export function lacking(task: Task, given: Given): ProofKind[] {
  return (task.proof ?? []).filter((kind) => {
    switch (kind) {
      case 'name':
        return !(given.received_by?.trim() || task.received_by);
      case 'pin':
        return !/^[0-9]{4}$/.test(given.pin ?? '');
      default:
        return !given.files?.includes(kind) && !task.proofs?.some((p) => p.kind === kind);
    }
  });
}

/** Whether the task takes another file, with those that wait. */
export function takesFile(task: ShownTask, waiting: number): boolean {
  const ended = task.status === 'completed' && task.outcome !== 'cancelled';
  return (task.status === 'in_progress' || ended) && (task.proofs?.length ?? 0) + waiting < mostFiles;
}

export type Refusal = 'gone' | 'changed' | 'route' | 'late' | 'picture' | 'pin' | 'locked' | 'lacks.pin' | 'lacks.name' | 'lacks.picture' | null;

/** Why a step of a task was refused, for which there are words of our own: the server's are in English. */
export function refusalOf(r: Pick<Refused, 'action' | 'status' | 'field' | 'message'>): Refusal {
  const { action, status, field, message } = r;
  if (action.type === 'reorder') return status === 409 ? 'route' : null;
  if (!('task_id' in action)) return null;
  if (status === 404) return 'gone';
  if (action.type === 'proof' && (status === 400 || status === 413 || status === 415)) return 'picture';
  if (status !== 409) return null;
  if (action.type === 'undo') return 'late';
  if (action.type === 'complete') {
    if (field === 'proof') return 'lacks.picture';
    if (field === 'received_by') return 'lacks.name';
    // The server tells a PIN that lacks, is wrong, or was wrong too often by its sentence alone.
    if (field === 'pin') return /lacks/.test(message) ? 'lacks.pin' : /Too many/.test(message) ? 'locked' : 'pin';
  }
  return 'changed';
}

/** A step of a task in the word that the application knows it by. */
export const stepOf = (a: Action): string => (a.type === 'complete' && a.outcome === 'failed' ? 'fail' : a.type);

/** Whether the driver can do something about it, as long as the task is his. */
export function mendable(r: Refused): boolean {
  const why = refusalOf(r);
  return why === 'pin' || why === 'locked' || (why?.startsWith('lacks') ?? false);
}
