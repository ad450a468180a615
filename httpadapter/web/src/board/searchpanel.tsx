// Finds tasks, open or long over, and drivers.

import { useEffect, useReducer, useRef, useState } from 'preact/hooks';
import { query } from './api';
import type { Board } from './board';
import { Field } from './fields';
import { driverName, nameOf, place, type Task } from './model';
import { due } from './parts';
import { matches, useDrivers } from './people';
import { NoRow } from './read';
import { Search, type ListAnswer } from './search';

export function SearchPanel({ board }: { board: Board; of: string }) {
  const { t } = board;
  const [text, setText] = useState('');
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  const search = useRef<Search | null>(null);
  search.current ??= new Search(
    async (q): Promise<ListAnswer> => board.api.call('GET', query('/v1/task/list', Object.fromEntries(q))),
    () => redraw(),
  );
  useEffect(() => () => search.current?.stop(), []);
  const drivers = useDrivers(board);
  const s = search.current.state;
  const found = s.kind === 'found' || s.kind === 'asking' ? s.found : null;
  const people = text.trim().length >= 2 && Array.isArray(drivers) ? drivers.filter((d) => matches(d, text)).slice(0, 20) : [];
  const box = useRef<HTMLDivElement>(null);
  const move = (e: KeyboardEvent) => {
    if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
    const stops = [...box.current!.querySelectorAll<HTMLElement>('input, .found a')];
    const to = stops[stops.indexOf(e.target as HTMLElement) + (e.key === 'ArrowDown' ? 1 : -1)];
    if (!to) return;
    e.preventDefault();
    to.focus();
  };
  // Enter opens what is on top, once it is the answer to what was typed.
  const first = (e: Event) => {
    e.preventDefault();
    if (s.kind !== 'found') return;
    const task = s.found.tasks[0];
    if (task) board.open('task', task.task_id);
    else if (people[0]) board.open('driver', people[0].driver_id);
  };
  return (
    <div ref={box} onKeyDown={move}>
      <form role="search" onSubmit={first}>
        <Field
          label={t('board.search.label')}
          type="search"
          name="q"
          value={text}
          max={100}
          focus
          hint={t('board.search.hint')}
          onInput={(v) => {
            setText(v);
            search.current!.type(v);
          }}
        />
      </form>
      <p class="calm" role="status">
        {s.kind === 'asking' && t('board.loading')}
        {s.kind === 'failed' && t('board.read.failed')}
        {s.kind === 'found' && (s.found.tasks.length === 0 && people.length === 0 ? t('board.search.none') : t(s.found.next ? 'board.search.many' : 'board.search.n', { n: s.found.tasks.length + people.length }))}
      </p>
      {drivers === 'unread' && <NoRow board={board} row={drivers} gone="board.people.none" />}
      <ul class="found">
        {people.map((d) => (
          <li key={'d' + d.driver_id}>
            <a href={'#driver/' + encodeURIComponent(d.driver_id)}>
              <bdi class="row-title">{driverName(d, d.driver_id)}</bdi>
              <span class="row-sub">{t(d.availability ? 'board.duty.on' : 'board.duty.off')}</span>
            </a>
          </li>
        ))}
        {found?.tasks.map((task) => <FoundTask key={task.task_id} board={board} task={board.task(task.task_id) ?? task} />)}
      </ul>
      {s.kind === 'found' && s.found.next !== '' && (
        <p class="buttons">
          <button type="button" class="other" onClick={() => search.current!.more()}>
            {t('board.search.more')}
          </button>
        </p>
      )}
    </div>
  );
}

export function FoundTask({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const where = place(task);
  const state = task.status === 'completed' ? t('board.outcome.' + task.outcome) : t('board.status.' + task.status);
  const facts = [where?.customer?.name, task.driver_id && driverName(board.driver(task.driver_id), task.driver_id), due(board, task)].filter(Boolean);
  return (
    <li>
      <a href={'#task/' + encodeURIComponent(task.task_id)}>
        <span class="row-title">
          <bdi>{nameOf(task)}</bdi> <span class={'chip ' + (task.outcome || task.status)}>{state}</span>
        </span>
        {where?.address && (
          <bdi class="row-sub" dir="auto">
            {where.address}
          </bdi>
        )}
        {facts.length > 0 && <bdi class="row-sub">{facts.join(' · ')}</bdi>}
      </a>
    </li>
  );
}
