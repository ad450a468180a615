// The list of work, and one task.

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { App } from './app';
import { safeFragment } from './html';
import { mapLink, navigationLink, platform, telLink } from './links';
import { nextPlace, nextStep, openTasks, type Place, type Shown, type ShownTask, type ShownTrip, type Task, type TripRequest } from './model';

const here = () => platform(navigator.userAgent, navigator.maxTouchPoints);

export function TasksView({ app, shown }: { app: App; shown: Shown }) {
  const { t } = app;
  const open = openTasks(shown.tasks);
  const done = shown.tasks.filter((x) => x.status === 'completed');
  const own = new Set(shown.tasks.map((x) => x.task_id));
  const trips = shown.trips.filter((x) => !own.has(x.tracking_id)); // a task's trip is shown with its task
  const active = new Set(trips.map((x) => x.tracking_id));
  const requests = shown.requests.filter((r) => !active.has(r.tracking_id));
  const empty = open.length === 0 && trips.length === 0 && requests.length === 0;
  return (
    <>
      {empty && (
        <div class="empty">
          <span class="empty-sign" aria-hidden="true" />
          <h2>{t('driver.tasks.none')}</h2>
          <p>{t(shown.duty ? 'driver.tasks.none.on' : 'driver.tasks.none.off')}</p>
        </div>
      )}
      {open.map((task) => (
        <TaskCard key={task.task_id} app={app} task={task} />
      ))}
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

function Chip({ app, task }: { app: App; task: ShownTask }) {
  const key = task.status === 'completed' ? `completed.${task.outcome || 'succeeded'}` : task.status;
  return (
    <span class="chips">
      {task.pending && <span class="chip pending">{app.t('driver.pending')}</span>}
      <span class={'chip ' + key.replace('.', ' ')}>{app.t('driver.status.' + key)}</span>
    </span>
  );
}

function TaskCard({ app, task }: { app: App; task: ShownTask }) {
  const { t } = app;
  const next = nextPlace(task);
  const address = next?.place.address || (next?.place.lnglat ? t('driver.openmap') : '');
  return (
    <article class={'card task ' + task.status}>
      <a class="card-link" href={'#task/' + encodeURIComponent(task.task_id)}>
        <span class="card-top">
          <span class="kind">{t('driver.type.' + task.type)}</span>
          <Chip app={app} task={task} />
        </span>
        {next && <span class="key">{t('driver.place.' + next.key)}</span>}
        <bdi class="address">{address}</bdi>
        <span class="sub">
          {next?.place.customer?.name && <bdi>{next.place.customer.name}</bdi>}
          {task.order_id && <bdi>{t('driver.order', { id: task.order_id })}</bdi>}
        </span>
      </a>
      <div class="actions">
        <NextButton app={app} task={task} />
        {next && <Navigate app={app} place={next.place} />}
      </div>
    </article>
  );
}

function NextButton({ app, task }: { app: App; task: ShownTask }) {
  const { t } = app;
  switch (nextStep(task)) {
    case 'start':
      return (
        <button type="button" class="primary" onClick={() => void app.startTask(task)}>
          {t('driver.start')}
        </button>
      );
    case 'pickup':
      return (
        <button type="button" class="primary" onClick={() => void app.act({ type: 'pickup', task_id: task.task_id })}>
          {t('driver.pickup')}
        </button>
      );
    case 'complete':
      return (
        <button type="button" class="primary good" onClick={() => void app.act({ type: 'complete', task_id: task.task_id, outcome: 'succeeded' })}>
          {t('driver.complete.' + task.type)}
        </button>
      );
  }
  return null;
}

function Navigate({ app, place }: { app: App; place: Place }) {
  const link = navigationLink(place, here());
  if (!link) return null;
  return (
    <a class="button" href={link} target={link.startsWith('http') ? '_blank' : undefined} rel="noopener">
      {app.t('driver.navigate')}
    </a>
  );
}

export function TaskView({ app, task }: { app: App; task: ShownTask }) {
  const { t } = app;
  const [ask, setAsk] = useState<'fail' | 'decline' | null>(null);
  const at = (s?: string) => (s ? app.times.shown(Date.parse(s), app.now()) : '');
  return (
    <div class="detail">
      <a class="back" href="#">
        <span aria-hidden="true" class="arrow" /> {t('driver.back')}
      </a>
      <div class="card-top">
        <h1>{t('driver.type.' + task.type)}</h1>
        <Chip app={app} task={task} />
      </div>
      {task.order_id && (
        <p class="sub">
          <bdi>{t('driver.order', { id: task.order_id })}</bdi>
        </p>
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
      {task.status === 'completed' && task.reason && (
        <p class="note" dir="auto">
          {task.reason}
        </p>
      )}
      {nextStep(task) && (
        <div class="bar">
          <NextButton app={app} task={task} />
          {task.status === 'in_progress' && (
            <button type="button" class="button" onClick={() => setAsk('fail')}>
              {t('driver.fail')}
            </button>
          )}
          {task.status === 'assigned' && (
            <button type="button" class="button" onClick={() => setAsk('decline')}>
              {t('driver.decline')}
            </button>
          )}
        </div>
      )}
      {ask === 'fail' && <FailDialog app={app} task={task} onClose={() => setAsk(null)} />}
      {ask === 'decline' && <DeclineDialog app={app} task={task} onClose={() => setAsk(null)} />}
    </div>
  );
}

function PlaceCard({ app, label, place, done, kind }: { app: App; label: string; place: Place; done: string; kind: string }) {
  const { t } = app;
  const tel = telLink(place.customer?.mobile);
  const map = mapLink(place);
  return (
    <section class={'card place ' + kind}>
      <h2 class="key">
        {label}
        {done && <span class="done-at"> · {done}</span>}
      </h2>
      <bdi class="address">{place.address || (place.lnglat ? `${place.lnglat[1].toFixed(5)}, ${place.lnglat[0].toFixed(5)}` : '')}</bdi>
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
        {map && here() !== 'other' && (
          <a class="button" href={map} target="_blank" rel="noopener">
            {t('driver.openmap')}
          </a>
        )}
      </div>
    </section>
  );
}

/** A modal dialog of the browser's own: it keeps the focus, and Escape closes it. */
function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const d = ref.current!;
    if (!d.open) d.showModal();
  }, []);
  return (
    <dialog ref={ref} class="dialog" aria-label={title} onClose={onClose} onClick={(e) => e.target === ref.current && ref.current!.close()}>
      <div class="dialog-body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

function FailDialog({ app, task, onClose }: { app: App; task: Task; onClose: () => void }) {
  const { t } = app;
  const reasons = ['1', '2', '3', '4'].map((n) => t('driver.fail.reason.' + n));
  const [reason, setReason] = useState('');
  const [other, setOther] = useState('');
  const send = () => {
    const words = (reason === 'other' ? other : reason).trim();
    if (words === '') return;
    onClose();
    void app.act({ type: 'complete', task_id: task.task_id, outcome: 'failed', reason: [...words].slice(0, 200).join('') });
  };
  return (
    <Dialog title={t('driver.fail.title')} onClose={onClose}>
      <div class="choices" role="radiogroup" aria-label={t('driver.fail.title')}>
        {reasons.map((r) => (
          <label key={r} class="choice">
            <input type="radio" name="reason" checked={reason === r} onChange={() => setReason(r)} />
            {r}
          </label>
        ))}
        <label class="choice">
          <input type="radio" name="reason" checked={reason === 'other'} onChange={() => setReason('other')} />
          {t('driver.fail.other')}
        </label>
      </div>
      {reason === 'other' && (
        <textarea rows={3} maxLength={200} dir="auto" aria-label={t('driver.fail.other')} value={other} onInput={(e) => setOther(e.currentTarget.value)} />
      )}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose}>
          {t('driver.back')}
        </button>
        <button type="button" class="primary bad" disabled={(reason === 'other' ? other : reason).trim() === ''} onClick={send}>
          {t('driver.fail.send')}
        </button>
      </div>
    </Dialog>
  );
}

function DeclineDialog({ app, task, onClose }: { app: App; task: Task; onClose: () => void }) {
  const { t } = app;
  const [reason, setReason] = useState('');
  const send = () => {
    onClose();
    const words = reason.trim();
    void app.act({ type: 'decline', task_id: task.task_id, ...(words === '' ? {} : { reason: [...words].slice(0, 200).join('') }) });
    location.hash = '';
  };
  return (
    <Dialog title={t('driver.decline.title')} onClose={onClose}>
      <textarea rows={2} maxLength={200} dir="auto" placeholder={t('driver.decline.reason')} aria-label={t('driver.decline.reason')} value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose}>
          {t('driver.cancel')}
        </button>
        <button type="button" class="primary bad" onClick={send}>
          {t('driver.decline.send')}
        </button>
      </div>
    </Dialog>
  );
}

function TripCard({ app, trip }: { app: App; trip: ShownTrip }) {
  const { t } = app;
  const since = trip.started_at ?? trip.created_at;
  return (
    <article class="card in_progress">
      <span class="card-top">
        <bdi class="kind">{t('driver.trip.request', { id: trip.tracking_id })}</bdi>
        {trip.pending && <span class="chip pending">{t('driver.pending')}</span>}
      </span>
      {since && <p class="sub">{t('driver.trip.since', { time: app.times.shown(Date.parse(since), app.now()) })}</p>}
      <div class="actions">
        <button type="button" class="primary bad" onClick={() => void app.stopTrip(trip)}>
          {t('driver.trip.stop')}
        </button>
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
          <bdi class="address">{r.dest.address || (r.dest.lnglat ? `${r.dest.lnglat[1].toFixed(5)}, ${r.dest.lnglat[0].toFixed(5)}` : '')}</bdi>
        </>
      )}
      {r.desc_html && <Description html={r.desc_html} />}
      <div class="actions">
        <button type="button" class="primary" onClick={() => void app.startTrip(r)}>
          {t('driver.trip.start')}
        </button>
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
