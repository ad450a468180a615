// Several tasks that are given to one driver together, and which of them he did not get.

import { useLayoutEffect, useState } from 'preact/hooks';
import type { Board } from './board';
import { Check } from './fields';
import { hue } from './hue';
import { driverName, nameOf, type Task } from './model';
import { rows } from './needs';

/** The tasks that are marked, or all that a driver has (of:driver), to be given to whom is chosen or was dropped on (to:driver). */
export function SeveralPanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const [, kind = '', driver = ''] = /^(of|to):(.*)$/s.exec(of) ?? [];
  const from = kind === 'of' ? driver : '';
  const onto = kind === 'to' ? driver : ''; // who comes first, on duty or not
  const tasks = from ? [...board.world.tasks.values()].filter((x) => x.driver_id === from) : board.several;
  const [out, setOut] = useState<ReadonlySet<string>>(new Set()); // of a driver's, those that stay
  const [taking, setTaking] = useState('');
  const [refused, setRefused] = useState<{ to: string; list: { task: Task; why: string }[] }>({ to: '', list: [] });
  const [sending, setSending] = useState(false);
  const chosen = tasks.filter((x) => !out.has(x.task_id));
  const under = chosen.filter((x) => x.status === 'in_progress').length;
  // The nearest to the first of them come first; whoever is too far for that is there by his name.
  const candidates = chosen[0] ? (board.candidates(chosen[0].task_id)?.candidates ?? []) : [];
  const near = candidates.map((c) => c.driver_id);
  const on = rows(board.world, board.now(), board.rules).filter((r) => r.driver.driver_id === onto || (r.state !== 'off' && r.driver.driver_id !== from));
  const place = (id: string) => (id === onto ? -1 : near.includes(id) ? near.indexOf(id) : near.length);
  const list = on.map((r) => r.driver).sort((a, b) => place(a.driver_id) - place(b.driver_id));
  const give = async (to: string, force = false) => {
    if (sending || chosen.length === 0) return;
    if (under > 0 && !force) return setTaking(to);
    setSending(true);
    const list = await board.giveAll(chosen, to, force);
    setSending(false);
    setTaking('');
    setRefused({ to, list });
    if (list.length === 0) board.close();
  };
  useLayoutEffect(() => {
    const down = (e: KeyboardEvent) => {
      const n = Number(e.key);
      if (!(n >= 1 && n <= 5) || e.ctrlKey || e.altKey || e.metaKey || (e.target as Element).closest('input:not([type=checkbox]), textarea, select')) return;
      const d = list[n - 1];
      if (!d) return;
      e.preventDefault();
      void give(d.driver_id);
    };
    addEventListener('keydown', down);
    return () => removeEventListener('keydown', down);
  });
  const left = refused.list.filter((l) => board.world.tasks.get(l.task.task_id)?.driver_id !== refused.to); // an answer that was lost may show later
  const note = left.length > 0 && (
    <div class="note warn" role="alert">
      <p>{t('board.several.left')}</p>
      <ul>
        {left.map((l) => (
          <li key={l.task.task_id}>
            <bdi>{nameOf(l.task)}</bdi>: {l.why}
          </li>
        ))}
      </ul>
    </div>
  );
  if (tasks.length === 0) return note || <p class="calm">{t('board.several.none')}</p>;
  return (
    <>
      {note}
      <ul class="several">
        {tasks.map((x) => (
          <li key={x.task_id}>
            <Check
              label={nameOf(x) + ' · ' + (x.driver_id ? driverName(board.driver(x.driver_id), x.driver_id) + ' · ' : '') + t('board.status.' + x.status)}
              value={!out.has(x.task_id)}
              onChange={(yes) => {
                const next = new Set(out);
                if (yes) next.delete(x.task_id);
                else next.add(x.task_id);
                setOut(next);
              }}
            />
          </li>
        ))}
      </ul>
      {under > 0 && <p class="note">{t('board.several.under', { n: under })}</p>}
      <h3>{t(chosen.length === 1 ? 'board.several.to.one' : 'board.several.to', { n: chosen.length })}</h3>
      {list.length === 0 && <p class="calm">{t('board.assign.none')}</p>}
      <ol class="candidates">
        {list.map((d, i) => {
          const id = d.driver_id;
          const name = driverName(d, id);
          const c = candidates.find((x) => x.driver_id === id);
          return (
            <li key={id} class="candidate">
              {i < 5 && <kbd aria-hidden="true">{i + 1}</kbd>}
              <span class="candidate-text">
                <span class="row-title">
                  <span class={'swatch c' + hue(id)} aria-hidden="true" /> <bdi>{name}</bdi>
                </span>
                <span class="row-sub">
                  {c?.distance !== undefined && board.metres(c.distance) + ' · '}
                  {t('board.load', { n: d.open_tasks })}
                  {!d.availability && <em> · {t('board.fit.off_duty')}</em>}
                </span>
              </span>
              <button type="button" class={taking === id ? 'do warn' : i === 0 ? 'do' : 'other'} aria-keyshortcuts={i < 5 ? String(i + 1) : undefined} disabled={sending || chosen.length === 0} onClick={() => void give(id, taking === id)}>
                {t(taking === id ? 'board.assign.take' : 'board.assign.give')}
                <span class="sr"> {name}</span>
              </button>
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** What is marked, and what can be done with it; nothing while nothing is. */
export function Marked({ board }: { board: Board }) {
  const { t } = board;
  const n = board.several.length;
  if (n === 0 || !board.mayChange || board.panel) return null;
  return (
    <section class="marked" aria-label={t('board.several.title')}>
      <strong>{t(n === 1 ? 'board.several.marked.one' : 'board.several.marked', { n })}</strong>
      <button type="button" class="do" aria-keyshortcuts="h" onClick={() => board.open('several')}>
        {t('board.several.give')} <kbd aria-hidden="true">H</kbd>
      </button>
      <button type="button" class="other" onClick={() => board.unmark()}>
        {t('board.several.clear')}
      </button>
    </section>
  );
}

/** The task that is dragged from a list, at the pointer. */
export function Dragged({ board }: { board: Board }) {
  const d = board.dragged;
  const task = d && board.world.tasks.get(d.task);
  if (!d || !task) return null;
  const n = board.isMarked(d.task) ? board.several.length : 1;
  return (
    <div class="dragged-task" style={{ transform: `translate(${d.x + 12}px, ${d.y + 12}px)` }} aria-hidden="true">
      <bdi>{nameOf(task)}</bdi>
      {n > 1 && <span class="count quiet">{n}</span>}
    </div>
  );
}
