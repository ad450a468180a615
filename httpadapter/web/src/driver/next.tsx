// One stop, as large as the screen: where it is, when, for whom, and the step that comes next.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { App } from './app';
import { telLink } from '../shared/digits';
import { wantedAt, type ShownTask, type Task } from './model';
import type { Place } from '../shared/place';
import { Navigate } from './navigate';
import { useRoom } from './room';
import { legsOf, type ShownStop } from './route';
import { Steps, stepOf } from './steps';

const link = (task: Task) => '#task/' + encodeURIComponent(task.task_id);

export function Chip({ app, task }: { app: App; task: ShownTask }) {
  const key = task.status === 'completed' ? `completed.${task.outcome || 'succeeded'}` : task.status;
  return (
    <span class="chips">
      {task.pending && app.backlog && <span class="chip unsent">{app.t('driver.pending')}</span>}
      <span class={'chip ' + key.replace('.', ' ') + (task.pending ? ' pending' : '')}>
        {app.t('driver.status.' + key)}
        {task.pending && !app.backlog && <span class="sr">, {app.t('driver.pending')}</span>}
      </span>
    </span>
  );
}

/** When a task is to be done, as was agreed, promised or wanted; '' when nobody said. */
export function due(app: App, task: Task): string {
  const { t, times } = app;
  const now = app.now();
  const at = (s?: string) => (s === undefined ? NaN : Date.parse(s));
  const from = at(task.window?.from);
  const to = at(task.window?.to ?? task.promised);
  const shown = (ms: number) => times.near(ms, now);
  if (from && to) return t('driver.due.between', { from: shown(from), to: times.day(to, from) === '' ? times.clock(to) : times.near(to, from) });
  if (to) return t('driver.due.by', { time: shown(to) });
  if (from) return t('driver.due.from', { time: shown(from) });
  const wanted = wantedAt(task);
  return wanted === null ? '' : shown(wanted);
}

/** When the first of a stop's tasks is due, and whether one is late. */
export function Due({ app, tasks }: { app: App; tasks: readonly Task[] }) {
  const end = (t: Task) => t.window?.to ?? t.promised ?? t.window?.from ?? t.time ?? '~';
  const first = [...tasks].sort((a, b) => (end(a) < end(b) ? -1 : 1)).find((t) => due(app, t) !== '');
  const late = tasks.some((t) => t.late);
  if (!first && !late) return null;
  return (
    <p class={'due' + (late ? ' late' : '')}>
      {first && <span>{due(app, first)}</span>}
      {late && <strong class="chip late">{app.t('driver.late')}</strong>}
    </p>
  );
}

export const placeText = (place: Place) => place.address || (place.lnglat ? `${place.lnglat[1].toFixed(5)}, ${place.lnglat[0].toFixed(5)}` : '');

/** What a stop is for in a word: a pickup, or a delivery, and of how many. */
export function kindOf(app: App, stop: ShownStop): string {
  const kind = app.t('driver.place.' + stop.leg);
  return stop.tasks.length > 1 ? app.t('driver.stop.many', { kind, n: stop.tasks.length }) : kind;
}

export function StopCard({ app, stop, number }: { app: App; stop: ShownStop; number: number }) {
  const { t } = app;
  const [out, setOut] = useState<ReadonlySet<string>>(new Set()); // what the next tap is not for
  const single = stop.tasks.length === 1 ? stop.tasks[0]! : null;
  // Of a parcel that is not picked up yet nothing can be said here, though its house is this one.
  const here = (x: ShownTask) => x.status !== 'in_progress' || legsOf(x)[0] === stop.leg;
  const chosen = stop.tasks.filter((x) => x.held || (!out.has(x.task_id) && here(x)));
  const { step, tasks: on } = stepOf(chosen);
  const there = step === 'pickup' || step === 'complete';
  const tel = telLink(stop.place.customer?.mobile);
  const address = placeText(stop.place);
  const head = (
    <>
      <span class="card-top">
        <span class="stop-kind">
          <span class="number">{number}</span> {kindOf(app, stop)}
        </span>
        {single && <Chip app={app} task={single} />}
      </span>
      <bdi class={'address' + (address.length > 60 ? ' long' : '')}>{address}</bdi>
      <Due app={app} tasks={stop.tasks} />
    </>
  );
  const toggle = (id: string) => {
    const next = new Set(out);
    if (!next.delete(id)) next.add(id);
    setOut(next);
  };
  return (
    <article class={'card task next ' + (stop.tasks.some((x) => x.status === 'in_progress') ? 'in_progress' : stop.tasks[0]!.status)}>
      {single ? (
        <a class="card-link" href={link(single)}>
          {head}
          <span class="sub">
            {stop.place.customer?.name && <bdi>{stop.place.customer.name}</bdi>}
            {single.order_id && <bdi>{t('driver.order', { id: single.order_id })}</bdi>}
          </span>
        </a>
      ) : (
        <div class="card-link">{head}</div>
      )}
      {stop.tasks.map((x) => x.customer_note && <Said key={x.task_id} app={app} what="customer" text={x.customer_note} />)}
      {single?.notes && <Said app={app} what="notes" text={single.notes} />}
      {single && tel && (
        <a class="button call" href={tel}>
          {stop.place.customer?.name ? t('driver.call.name', { name: stop.place.customer.name }) : t('driver.call')}
        </a>
      )}
      {!single && (
        <ul class="parcels">
          {stop.tasks.map((x) => (
            <Parcel key={x.task_id} app={app} task={x} place={x[stop.leg]!} chosen={chosen.includes(x)} free={!x.held && here(x)} onToggle={() => toggle(x.task_id)} />
          ))}
        </ul>
      )}
      <Reach>
        <Steps app={app} tasks={chosen} class="actions">
          {there && on.length === 1 ? (
            <button type="button" class="button" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => app.ask('fail', on[0]!.task_id)}>
              {t('driver.fail')}
            </button>
          ) : (
            <Navigate app={app} place={stop.place} />
          )}
        </Steps>
      </Reach>
    </article>
  );
}

/** What somebody has told the driver. */
function Said({ app, what, text }: { app: App; what: 'customer' | 'notes'; text: string }) {
  return (
    <div class={'said ' + what}>
      <span class="key">{app.t('driver.said.' + what)}</span>
      <p class="pre" dir="auto">
        {text}
      </p>
    </div>
  );
}

/** One of several parcels of a stop; the next tap is for those that are marked. */
function Parcel({ app, task, place, chosen, free, onToggle }: { app: App; task: ShownTask; place: Place; chosen: boolean; free: boolean; onToggle: () => void }) {
  const { t } = app;
  const name = [task.order_id && t('driver.order', { id: task.order_id }), place.customer?.name].filter(Boolean).join(' · ') || t('driver.type.' + task.type);
  return (
    <li class="parcel">
      <label>
        <input type="checkbox" checked={chosen} disabled={!free} onChange={onToggle} />
        <span>
          <bdi>{name}</bdi>
          {task.notes && (
            <span class="parcel-notes" dir="auto">
              {task.notes}
            </span>
          )}
        </span>
        {(task.held || task.pending) && <Chip app={app} task={task} />}
      </label>
      <a class="more" href={link(task)} aria-label={t('driver.details', { name })} />
    </li>
  );
}

/** What is tapped next, at the edge of the screen that the thumb reaches; where it is too high, at the end of the card. */
function Reach({ children }: { children: ComponentChildren }) {
  const { ref, loose } = useRoom<HTMLDivElement>();
  return (
    <div ref={ref} class={'reach' + (loose ? ' loose' : '')}>
      {children}
    </div>
  );
}
