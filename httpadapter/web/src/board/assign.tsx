// Whom a task may go to: the nearest first, with how far, how much there is to do already, and why not.

import { useLayoutEffect, useState } from 'preact/hooks';
import type { Board } from './board';
import { Field } from './fields';
import { driverName, nameOf, type Task } from './model';
import { hue } from './hue';
import { waits } from './parts';
import { NoRow } from './read';
import { useTask } from './task';

export function AssignPanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const [taking, setTaking] = useState<string | null>(null); // to whom, of a task that somebody is at
  const [where, setWhere] = useState('');
  const row = useTask(board, of);
  const task = row && row !== 'unread' ? row : null;
  const list = task && task.status !== 'completed' ? board.candidates(of) : null;
  const others = (list?.candidates ?? []).filter((c) => c.driver_id !== task?.driver_id);
  const under = task?.status === 'in_progress';
  const give = async (driver: string, force = false) => {
    if (!task || board.isBusy(of)) return;
    if (under && !force) return setTaking(driver);
    const n = Math.floor(Number(where));
    const a = await board.assign(task, driver, force, n >= 1 ? { leg: 'drop', at: () => n - 1 } : undefined);
    if (a.kind === 'ok') board.close();
    else setTaking(null);
  };
  // At once, so that a key never means who stood there before.
  useLayoutEffect(() => {
    const down = (e: KeyboardEvent) => {
      const n = Number(e.key);
      if (!(n >= 1 && n <= 5) || e.ctrlKey || e.altKey || e.metaKey || (e.target as Element).closest('input, textarea, select')) return;
      const c = others[n - 1];
      if (!c) return;
      e.preventDefault();
      void give(c.driver_id);
    };
    addEventListener('keydown', down);
    return () => removeEventListener('keydown', down);
  });
  if (!task) return <NoRow board={board} row={row as Exclude<typeof row, Task>} gone="board.gone" />;
  if (task.status === 'completed') return <p class="calm">{t('board.assign.over')}</p>;
  return (
    <>
      <p class="panel-lead">
        <bdi>{nameOf(task)}</bdi>
        {task.driver_id && <> · {t('board.assign.now', { name: driverName(board.driver(task.driver_id), task.driver_id) })}</>}
        {task.waiting && <> · {waits(board, task)}</>}
      </p>
      {under && <p class="note">{t('board.assign.under', { name: driverName(board.driver(task.driver_id), task.driver_id ?? '') })}</p>}
      {others.length > 0 && <Field label={t('board.assign.at')} name="at" type="number" value={where} onInput={setWhere} hint={t('board.assign.at.hint')} />}
      {!list && <NoRow board={board} row={board.couldNotRead('candidates ' + of) ? 'unread' : undefined} gone="board.gone" />}
      {list && others.length === 0 && <p class="calm">{t('board.assign.none')}</p>}
      <ol class="candidates">
        {others.map((c, i) => (
          <li key={c.driver_id} class={'candidate ' + c.fit}>
            {i < 5 && <kbd aria-hidden="true">{i + 1}</kbd>}
            <span class="candidate-text">
              <span class="row-title">
                <span class={'swatch c' + hue(c.driver_id)} aria-hidden="true" /> <bdi>{c.name || c.driver_id}</bdi>
              </span>
              <span class="row-sub">
                {c.distance !== undefined && board.metres(c.distance) + ' · '}
                {t('board.load', { n: c.open_tasks })}
                {c.fit !== 'yes' && <em> · {board.config.words['board.fit.' + c.fit] ?? c.fit}</em>}
              </span>
            </span>
            {taking === c.driver_id ? (
              <button type="button" class="do warn" disabled={board.isBusy(of)} onClick={() => void give(c.driver_id, true)}>
                {t('board.assign.take')}
              </button>
            ) : (
              <button type="button" class={c.fit === 'yes' ? 'do' : 'other'} aria-keyshortcuts={i < 5 ? String(i + 1) : undefined} disabled={board.isBusy(of)} onClick={() => void give(c.driver_id)}>
                {t('board.assign.give')}
                <span class="sr"> {c.name || c.driver_id}</span>
              </button>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
