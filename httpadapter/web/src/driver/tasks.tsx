// The list of work, and one task.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from './app';
import { reasons } from './fail';
import { safeFragment } from './html';
import { telLink } from '../shared/digits';
import { nextPlace, nextStep, openTasks, type Shown, type ShownTask, type ShownTrip, type Task, type TripRequest } from './model';
import type { Place } from '../shared/place';
import { Navigate } from './navigate';
import { Chip, Due, placeText, StopCard } from './next';
import { StopList } from './order';
import { ProofCard } from './proof';
import { useRoom } from './room';
import { nextStop, stopsOf, type ShownStop } from './route';
import { Done, StepButton, Steps } from './steps';

export function TasksView({ app, shown }: { app: App; shown: Shown }) {
  const { t } = app;
  const stops = stopsOf(shown.tasks, shown.route);
  const next = nextStop(stops);
  const done = shown.tasks.filter((x) => x.status === 'completed' && !x.held);
  const own = new Set(shown.tasks.map((x) => x.task_id));
  const trips = shown.trips.filter((x) => !own.has(x.tracking_id)); // a task's trip is shown with its task
  const active = new Set(trips.map((x) => x.tracking_id));
  const requests = shown.requests.filter((r) => !active.has(r.tracking_id));
  const empty = !next && trips.length === 0 && requests.length === 0;
  return (
    <>
      {empty && (
        <div class="empty">
          <span class="empty-sign" aria-hidden="true" />
          <h2>{t('driver.tasks.none')}</h2>
          <p>{t(shown.duty ? 'driver.tasks.none.on.' + app.sound : 'driver.tasks.none.off')}</p>
        </div>
      )}
      {next && (
        <div class="first">
          <Today app={app} shown={shown} />
          <StopCard key={next.key} app={app} stop={next} number={stops.indexOf(next) + 1} />
        </div>
      )}
      <Last app={app} shown={shown} />
      {stops.length > 1 && (
        <section>
          <div class="group-top">
            <h2 class="group">{t('driver.tasks.later')}</h2>
            {app.reorders && (
              <a class="button small" href="#order">
                {t('driver.reorder')}
              </a>
            )}
          </div>
          <StopList app={app} stops={stops} />
        </section>
      )}
      {trips.length > 0 && (
        <section>
          <h2 class="group">{t('driver.trips')}</h2>
          {trips.map((trip) => (
            <TripCard key={trip.tracking_id} app={app} trip={trip} />
          ))}
        </section>
      )}
      {requests.length > 0 && (
        <section>
          <h2 class="group">{t('driver.requests')}</h2>
          {requests.map((r) => (
            <RequestCard key={r.tracking_id} app={app} request={r} />
          ))}
        </section>
      )}
      {done.length > 0 && (
        <section>
          <h2 class="group">{t('driver.tasks.done')}</h2>
          <ul class="card list">
            {done.map((task) => (
              <li key={task.task_id}>
                <a class="done-row" href={'#task/' + encodeURIComponent(task.task_id)}>
                  <bdi class="done-place">{nextPlace(task)?.place.address || task.order_id || t('driver.type.' + task.type)}</bdi>
                  <Chip app={app} task={task} />
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** How much of the day is done. */
function Today({ app, shown }: { app: App; shown: Shown }) {
  const done = shown.tasks.filter((x) => x.status === 'completed' && !x.held && x.outcome !== 'cancelled').length;
  const all = done + openTasks(shown.tasks).length;
  if (all === 0) return null;
  return (
    <div class="today">
      <span>{app.t('driver.today', { n: done, of: all })}</span>
      <progress value={done} max={all} aria-hidden="true" />
    </div>
  );
}

/** What was done last, while it can be taken back. */
function Last({ app, shown }: { app: App; shown: Shown }) {
  const { t } = app;
  const last = app.returnable(shown);
  if (!last) return null;
  return (
    <div class="last">
      <span dir="auto">{last.about ? t('driver.last.order', { order: last.about, step: last.words }) : last.words}</span>
      <StepButton app={app} class="button" onTap={() => app.takeBack(last)}>
        {t('driver.takeback')}
      </StepButton>
    </div>
  );
}

/** Several parcels for one address, which are not the next. */
export function StopView({ app, shown, stop }: { app: App; shown: Shown; stop: ShownStop }) {
  return (
    <div class="detail">
      <Back app={app} />
      <StopCard app={app} stop={stop} number={stopsOf(shown.tasks, shown.route).findIndex((s) => s.key === stop.key) + 1} />
    </div>
  );
}

function Back({ app }: { app: App }) {
  return (
    <a class="back" href="#">
      <span aria-hidden="true" class="arrow" /> {app.t('driver.back')}
    </a>
  );
}

/** Why a task has failed. */
function why(app: App, task: Task): string {
  const code = task.reason_code ?? '';
  return [code && reasons([code], app.config.reasons)[0]?.text, task.reason].filter(Boolean).join(' · ');
}

export function TaskView({ app, task }: { app: App; task: ShownTask }) {
  const { t } = app;
  const at = (s?: string) => (s ? app.times.shown(Date.parse(s), app.now()) : '');
  return (
    <div class="detail">
      <Back app={app} />
      <div class="card-top">
        <h1>{t('driver.type.' + task.type)}</h1>
        <Chip app={app} task={task} />
      </div>
      {task.order_id && (
        <p class="sub">
          <bdi>{t('driver.order', { id: task.order_id })}</bdi>
        </p>
      )}
      <Due app={app} tasks={[task]} />
      {task.customer_note && (
        <section class="card said customer">
          <h2 class="key">{t('driver.said.customer')}</h2>
          <p class="pre" dir="auto">
            {task.customer_note}
          </p>
        </section>
      )}
      {task.pickup && <PlaceCard app={app} label={t('driver.place.pickup')} place={task.pickup} done={at(task.picked_up_at)} kind="from" />}
      {task.drop && <PlaceCard app={app} label={t('driver.place.drop')} place={task.drop} done="" kind="to" />}
      {task.notes && (
        <section class="card">
          <h2 class="key">{t('driver.notes')}</h2>
          <p class="pre" dir="auto">
            {task.notes}
          </p>
        </section>
      )}
      {task.status === 'completed' && why(app, task) && (
        <p class="note" dir="auto">
          {why(app, task)}
        </p>
      )}
      <ProofCard app={app} task={task} />
      {(nextStep(task) || task.held) && (
        <Bar>
          <Steps app={app} tasks={[task]} class="halves">
            <button type="button" class="button" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => app.ask(task.status === 'assigned' ? 'decline' : 'fail', task.task_id)}>
              {t(task.status === 'assigned' ? 'driver.decline' : 'driver.fail')}
            </button>
          </Steps>
        </Bar>
      )}
    </div>
  );
}

/** What can be done with the task, below the page and in sight; where it is too high, at the end of the page. */
function Bar({ children }: { children: ComponentChildren }) {
  const { ref, loose } = useRoom<HTMLDivElement>();
  return (
    <div ref={ref} class={'bar' + (loose ? ' loose' : '')}>
      {children}
    </div>
  );
}

function PlaceCard({ app, label, place, done, kind }: { app: App; label: string; place: Place; done: string; kind: string }) {
  const { t } = app;
  const tel = telLink(place.customer?.mobile);
  return (
    <section class={'card place ' + kind}>
      <h2 class="key">
        {label}
        {done && <span class="done-at"> · {done}</span>}
      </h2>
      <bdi class="address">{placeText(place)}</bdi>
      {place.customer?.name && (
        <p class="sub">
          <bdi>{place.customer.name}</bdi>
        </p>
      )}
      <div class="actions">
        {tel && (
          <a class="button" href={tel} aria-label={place.customer?.name ? t('driver.call.name', { name: place.customer.name }) : undefined}>
            {t('driver.call')}
          </a>
        )}
        <Navigate app={app} place={place} />
      </div>
    </section>
  );
}

function TripCard({ app, trip }: { app: App; trip: ShownTrip }) {
  const { t } = app;
  const since = trip.started_at ?? trip.created_at;
  return (
    <article class="card in_progress">
      <span class="card-top">
        <bdi class="kind">{t('driver.trip.request', { id: trip.tracking_id })}</bdi>
        {trip.pending && app.backlog && <span class="chip unsent">{t('driver.pending')}</span>}
      </span>
      {since && <p class="sub">{t('driver.trip.since', { time: app.times.shown(Date.parse(since), app.now()) })}</p>}
      <div class="actions">
        {app.step?.of === trip.tracking_id ? <Done mark={app.step} /> : <span />}
        <StepButton app={app} class="primary bad" onTap={() => app.stopTrip(trip)}>
          {t('driver.trip.stop')}
        </StepButton>
      </div>
    </article>
  );
}

function RequestCard({ app, request: r }: { app: App; request: TripRequest }) {
  const { t } = app;
  return (
    <article class="card">
      <bdi class="kind">{t('driver.trip.request', { id: r.tracking_id })}</bdi>
      {r.message && (
        <p class="pre" dir="auto">
          {r.message}
        </p>
      )}
      {r.dest && (
        <>
          <span class="key">{t('driver.trip.dest')}</span>
          <bdi class="address">{placeText(r.dest)}</bdi>
        </>
      )}
      {r.desc_html && <Description html={r.desc_html} />}
      <div class="actions">
        <StepButton app={app} class="primary" onTap={() => app.startTrip(r)}>
          {t('driver.trip.start')}
        </StepButton>
        {r.dest && <Navigate app={app} place={r.dest} />}
      </div>
    </article>
  );
}

function Description({ html }: { html: string }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    ref.current!.replaceChildren(safeFragment(html));
  }, [html]);
  return <div class="desc" dir="auto" ref={ref} />;
}
