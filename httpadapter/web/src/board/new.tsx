// A task written by hand: a new one, or one that is changed.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Board } from './board';
import { Check, Field } from './fields';
import { alike, nameOf, type Task } from './model';
import { readPoint, writePoint } from './point';
import { changesOf, draftOf, emptyDraft, taskOf, type Errors, type Side, type TaskDraft } from './taskform';
import { NoRow } from './read';
import { useTask } from './task';
import { monthFirst, readSpan, type Clock } from './when';

/** What times are read by that somebody writes at the board. */
export const clockOf = (board: Board): Clock => ({ now: board.now(), zone: board.config.time_zone, monthFirst: monthFirst(navigator.language) });

const until = (board: Board) => (board.config.lang.startsWith('de') ? 'bis' : 'by');

/** A key by which the server knows a form that is sent again. */
const newKey = () => 'board-' + Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('-');

export function NewPanel({ board }: { board: Board; of: string }) {
  const { t } = board;
  const [draft, setDraft] = useState<TaskDraft>(emptyDraft);
  const [auto, setAuto] = useState(false);
  const [errors, setErrors] = useState<Errors>({});
  const [made, setMade] = useState<Task | null>(null);
  const [sending, setSending] = useState(false);
  const key = useRef(newKey());
  const form = useRef<HTMLFormElement>(null);
  const send = (e: Event) => {
    e.preventDefault();
    if (sending) return;
    const read = taskOf(draft, clockOf(board), auto);
    setErrors(read.errors);
    if (Object.keys(read.errors).length > 0) return focusFirst(form.current);
    setSending(true);
    void board.act({ about: [], path: '/v1/task/create', body: read.task, headers: { 'Idempotency-Key': key.current } }).then((a) => {
      setSending(false);
      if (a.kind === 'offline') return; // what is sent again is the same task
      key.current = newKey();
      if (a.kind !== 'ok') return;
      const task = a.data.task as Task;
      setMade(task);
      setDraft(emptyDraft);
      board.select('task', task.task_id);
      form.current?.querySelector<HTMLElement>('input')?.focus();
    });
  };
  return (
    <form class="form" ref={form} onSubmit={send} noValidate>
      <p role="status" class="made">
        {made && (
          <>
            {t('board.new.made', { task: nameOf(made) })} <a href={'#task/' + encodeURIComponent(made.task_id)}>{t('board.new.open')}</a>
          </>
        )}
      </p>
      <TaskFields board={board} draft={draft} onChange={setDraft} errors={errors} sides={['drop', 'pickup']} focus />
      <Check label={t('board.new.auto')} value={auto} onChange={setAuto} />
      <p class="buttons">
        <button class="do" disabled={sending}>
          {t('board.new.save')}
        </button>
      </p>
      <p class="hint">{t('board.new.hint')}</p>
    </form>
  );
}

export function EditPanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const task = useTask(board, of);
  if (!task || task === 'unread') return <NoRow board={board} row={task} gone="board.gone" />;
  if (task.status === 'completed') return <p class="calm">{t('board.edit.over')}</p>;
  return <EditForm board={board} task={task} />;
}

function EditForm({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  // What it was when the form was opened: what others change meanwhile is not overwritten unseen.
  const was = useMemo(() => ({ draft: draftOf(task, until(board), board.config.time_zone), task }), []);
  const [draft, setDraft] = useState(was.draft);
  const [errors, setErrors] = useState<Errors>({});
  const form = useRef<HTMLFormElement>(null);
  const back = 'task';
  const send = (e: Event) => {
    e.preventDefault();
    const { update, errors: found } = changesOf(was.draft, draft, clockOf(board));
    setErrors(found);
    if (Object.keys(found).length > 0) return focusFirst(form.current);
    if (Object.keys(update).length === 0) return board.open(back, task.task_id);
    void board
      .act({
        about: [task.task_id, ...(task.driver_id ? [task.driver_id] : [])],
        path: '/v1/task/update',
        body: { task_id: task.task_id, version: was.task.version, ...update },
        seen: was.task,
        done: t('board.done.updated', { task: nameOf(task) }),
      })
      .then((a) => a.kind === 'ok' && board.open(back, task.task_id));
  };
  const under = task.status === 'in_progress';
  const sides: Side[] = [...(task.drop ? (['drop'] as const) : []), ...(task.pickup && !under ? (['pickup'] as const) : [])];
  return (
    <form class="form" ref={form} onSubmit={send} noValidate>
      {!alike(task, was.task) && (
        <p class="note warn" role="alert">
          {t('board.edit.changed')}
        </p>
      )}
      {under && <p class="note">{t('board.edit.under')}</p>}
      <TaskFields board={board} draft={draft} onChange={setDraft} errors={errors} sides={sides} only={under} focus />
      <p class="buttons">
        <button class="do" disabled={board.isBusy(task.task_id)}>
          {t('board.edit.save')}
        </button>
        <a class="other" href={'#task/' + encodeURIComponent(task.task_id)}>
          {t('board.back')}
        </a>
      </p>
    </form>
  );
}

/** Puts the focus on the first field that something is wrong with, once that is drawn. */
function focusFirst(form: HTMLFormElement | null): void {
  requestAnimationFrame(() => requestAnimationFrame(() => form?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()));
}

interface FieldsProps {
  board: Board;
  draft: TaskDraft;
  onChange: (d: TaskDraft) => void;
  errors: Errors;
  sides: readonly Side[];
  only?: boolean; // places and notes alone
  focus?: boolean;
}

function TaskFields({ board, draft, onChange, errors, sides, only, focus }: FieldsProps) {
  const { t } = board;
  const [side, setSide] = useState<Side>(sides[0] ?? 'drop'); // that a click on the map is for
  const set = (s: Side, field: keyof TaskDraft['drop'], value: string) => onChange({ ...draft, [s]: { ...draft[s], [field]: value } });
  const [finding, setFinding] = useState<Side | null>(null);
  const [found, setFound] = useState<Partial<Record<Side, { text: string; point?: string }>>>({});
  const written = useRef(draft);
  written.current = draft;
  const find = async (s: Side) => {
    const address = draft[s].address.trim();
    if (!address || finding) return;
    setSide(s);
    setFinding(s);
    const at = await board.findPlace(address);
    setFinding(null);
    if (written.current[s].address.trim() !== address) return; // it is another by now, or the form was sent
    if (typeof at === 'string') return setFound((f) => ({ ...f, [s]: { text: at } }));
    latest.current(s, 'point', writePoint(at));
    setFound((f) => ({ ...f, [s]: { text: t('board.find.found'), point: writePoint(at) } }));
  };
  // The point that was found for another address is not that of this one.
  const readdress = (s: Side, address: string) => {
    const stale = found[s]?.point !== undefined && found[s].point === draft[s].point;
    setFound((f) => ({ ...f, [s]: undefined }));
    onChange({ ...draft, [s]: { ...draft[s], address, ...(stale ? { point: '' } : {}) } });
  };
  // What is written as a point is shown on the map before it is saved.
  const point = draft[side].point;
  useEffect(() => {
    board.looked = point ? readPoint(point) : null;
    board.changed();
  }, [board, point]);
  useEffect(() => () => void (board.looked = null), [board]);
  const latest = useRef(set);
  latest.current = set;
  const at = useRef(side);
  at.current = side;
  useLayoutEffect(() => {
    board.picking = (p) => latest.current(at.current, 'point', writePoint(p));
    board.changed();
    return () => {
      board.picking = null;
      board.changed();
    };
  }, [board]);
  return (
    <>
      {sides.map((s) => {
        const place = draft[s];
        const fields = (
          <>
            <Field label={t('board.form.address')} name={s + '-address'} value={place.address} onInput={(v) => readdress(s, v)} onFocus={() => setSide(s)} max={1000} focus={focus && s === sides[0]} error={s === sides[0] && errors.address ? t(errors.address) : undefined} />
            {board.config.geocodes && (
              <p class="find">
                <button type="button" class="other small" disabled={finding !== null || place.address.trim() === ''} onClick={() => void find(s)}>
                  {t('board.find')}
                </button>
                <span role="status" class={found[s] && !found[s].point ? 'error' : 'hint'}>
                  {found[s]?.text}
                </span>
              </p>
            )}
            <Field label={t('board.form.point')} name={s + '-point'} value={place.point} onInput={(v) => set(s, 'point', v)} onFocus={() => setSide(s)} hint={t('board.form.point.hint')} error={errors[`${s}.point`] && t(errors[`${s}.point`]!)} />
            <div class="pair">
              <Field label={t('board.form.name')} name={s + '-name'} value={place.name} onInput={(v) => set(s, 'name', v)} onFocus={() => setSide(s)} max={200} />
              <Field label={t('board.form.mobile')} name={s + '-mobile'} type="tel" value={place.mobile} onInput={(v) => set(s, 'mobile', v)} onFocus={() => setSide(s)} max={32} />
            </div>
          </>
        );
        return s === 'pickup' && sides[0] !== 'pickup' ? (
          <details key={s} class="side" open={place.address !== '' || place.point !== '' || undefined}>
            <summary>{t('board.form.pickup')}</summary>
            {fields}
          </details>
        ) : (
          <fieldset key={s} class="side">
            <legend>{t('board.form.' + s)}</legend>
            {fields}
          </fieldset>
        );
      })}
      {!only && (
        <>
          <When board={board} value={draft.when} onInput={(when) => onChange({ ...draft, when })} error={errors.when && t(errors.when)} />
          <Field label={t('board.form.order')} name="order" value={draft.order} onInput={(order) => onChange({ ...draft, order })} max={200} />
        </>
      )}
      <Field label={t('board.form.notes')} name="notes" rows={2} value={draft.notes} onInput={(notes) => onChange({ ...draft, notes })} max={4000} />
    </>
  );
}

/** When it is agreed to be there, read while it is written. */
function When({ board, value, onInput, error }: { board: Board; value: string; onInput: (v: string) => void; error?: string }) {
  const { t } = board;
  const [said, setSaid] = useState('');
  useEffect(() => {
    const span = value.trim() ? readSpan(value, clockOf(board)) : {};
    const at = (ms: number) => board.times.shown(ms, board.now());
    if (!span || (span.from === undefined && span.to === undefined)) setSaid('');
    else if (span.from !== undefined && span.to !== undefined) setSaid(at(span.from) + ' – ' + at(span.to));
    else setSaid(span.to !== undefined ? t('board.due.by', { time: at(span.to) }) : t('board.due.from', { time: at(span.from!) }));
  }, [value]);
  return <Field label={t('board.form.when')} name="when" value={value} onInput={onInput} error={error} hint={said || t('board.form.when.hint')} />;
}
