// Small things that several columns and panels show.

import type { Board } from './board';
import { pull } from './drag';
import { hue } from './hue';
import { driverName, isLate, ms, nameOf, place, type Task } from './model';
import { whyWaits } from './needs';

/** What is agreed with the customer, in few words. */
export function due(board: Board, t: Task): string {
  const from = ms(t.window?.from);
  const to = ms(t.window?.to ?? t.promised);
  const at = (time: number) => board.times.shown(time, board.now());
  if (from < to) return at(from) + ' – ' + (to - from >= 86_400_000 ? at(to) : board.times.clock(to));
  if (Number.isFinite(to)) return board.t('board.due.by', { time: at(to) });
  return Number.isFinite(from) ? board.t('board.due.from', { time: at(from) }) : '';
}

/** Why a task waits, in words; '' where that is not known. */
export const reasonWords = (board: Board, reason: string | undefined): string => (reason ? (board.config.words['board.wait.' + reason] ?? reason) : '');

/** Since when a task waits and why; '' if it does not. */
export function waits(board: Board, t: Task): string {
  const w = whyWaits(t, board.reasons);
  return w ? [board.t('board.why.waiting', { since: board.ago(ms(w.since)) }), reasonWords(board, w.reason)].filter(Boolean).join(' · ') : '';
}

/** A task as a row to choose. */
export function TaskRow({ board, task, why, late }: { board: Board; task: Task; why?: string; late?: boolean }) {
  const { t } = board;
  const where = place(task);
  const title = nameOf(task);
  const address = where?.address && where.address !== title ? where.address : (where?.customer?.name ?? '');
  const who = task.driver_id ? driverName(board.driver(task.driver_id), task.driver_id) : '';
  const when = due(board, task);
  const selected = board.selection?.kind === 'task' && board.selection.id === task.task_id;
  const open = task.status !== 'completed' && board.mayChange;
  return (
    <>
      <button type="button" class={'row-main' + (open ? ' marks' : '')} onPointerDown={(e) => open && pull(board, task.task_id, e)} data-row={'task ' + task.task_id} aria-pressed={selected} onClick={() => (selected ? board.unselect() : board.select('task', task.task_id))}>
        {why && <span class="why">{why}</span>}
        <span class="row-title">
          <bdi>{title}</bdi>
          {when && <span class={'due' + ((late ?? isLate(task, board.now())) ? ' is-late' : '')}>{when}</span>}
        </span>
        {!why && task.waiting && <span class="row-sub waits">{waits(board, task)}</span>}
        {address && (
          <bdi class="row-sub" dir="auto">
            {address}
          </bdi>
        )}
        {who && (
          <span class="row-sub">
            <span class={'swatch c' + hue(task.driver_id!)} aria-hidden="true" /> <bdi>{who}</bdi> · {t('board.status.' + task.status)}
          </span>
        )}
      </button>
      {open && (
        <label class="mark-box">
          <input type="checkbox" checked={board.isMarked(task.task_id)} aria-label={t('board.mark', { task: title })} onChange={(e) => board.mark(task.task_id, e.currentTarget.checked)} />
        </label>
      )}
    </>
  );
}
