// One task: what it is, what can be done with it, its link, and what has happened to it.

import { useEffect, useState } from 'preact/hooks';
import { query, type Api } from './api';
import type { Board } from './board';
import { Choice, Fact, Field, First, FormButtons, useAsked } from './fields';
import { History } from './history';
import { driverName, isLate, ms, nameOf, type Task } from './model';
import { telLink } from '../shared/digits';
import type { Place } from '../shared/place';
import { due, waits } from './parts';
import { NoRow, readOf, useRow, type Read } from './read';
import { Removal } from './removal';
import { writePoint } from './point';
import { Share } from './share';

/** A task by its id, whether or not the board has heard of it. */
export function useTask(board: Board, id: string): Task | null | undefined | 'unread' {
  return useRow(id, board.task(id), () => readTask(board.api, id))[0];
}

/** Reads a task that the board has not heard of, with its contacts, which only the list tells. */
export async function readTask(api: Api, id: string): Promise<Read<Task>> {
  const one = readOf(await api.call('GET', query('/v1/task', { task_id: id })), (data) => data.task as Task);
  if (one.kind !== 'read') return one;
  const from = ms(one.value.created_at);
  const list = await api.call('GET', query('/v1/task/list', { created_from: one.value.created_at, created_to: new Date(from + 1).toISOString(), limit: 1000 }));
  return readOf(list, (data) => (data.task_list as Task[]).find((x) => x.task_id === id) ?? one.value);
}

export function TaskPanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const task = useTask(board, of);
  if (!task || task === 'unread') return <NoRow board={board} row={task} gone="board.gone" />;
  const now = board.now();
  const state = task.status === 'completed' ? t('board.outcome.' + task.outcome) : t('board.status.' + task.status);
  const reason = [task.reason_code && (board.config.reasons[task.reason_code] ?? task.reason_code), task.reason].filter(Boolean).join(' · ');
  return (
    <>
      <p class="panel-lead">
        <bdi class="task-name">{nameOf(task)}</bdi> <span class={'chip ' + (task.outcome || task.status)}>{state}</span>
        {isLate(task, now) && <span class="chip late">{t('board.late')}</span>}
      </p>
      <dl class="facts-list">
        <Fact name={t('board.fact.driver')}>
          {task.driver_id ? <a href={'#driver/' + encodeURIComponent(task.driver_id)}>{driverName(board.driver(task.driver_id), task.driver_id)}</a> : waits(board, task)}
        </Fact>
        <Fact name={t('board.fact.due')}>{due(board, task)}</Fact>
        {task.pickup && <PlaceFact board={board} name={t('board.fact.pickup')} place={task.pickup} />}
        {task.drop && <PlaceFact board={board} name={t('board.fact.drop')} place={task.drop} />}
        <Fact name={t('board.fact.notes')}>{task.notes && <Text text={task.notes} />}</Fact>
        <Fact name={t('board.fact.customer_note')}>{task.customer_note && <Text text={task.customer_note} />}</Fact>
        <Fact name={t('board.fact.driver_note')}>{task.driver_note && <Text text={task.driver_note} />}</Fact>
        <Fact name={t('board.fact.reason')}>{reason && <Text text={reason} />}</Fact>
        <Fact name={t('board.fact.received_by')}>{task.received_by && <bdi>{task.received_by}</bdi>}</Fact>
        <Fact name={t('board.fact.pin')}>{task.pin && <span class="digits">{task.pin}</span>}</Fact>
        <Fact name={t('board.fact.proofs')}>
          {task.proofs?.length ? (
            <>
              {task.proofs.map((p, i) => (
                <a key={p.id} href={board.api.url(query('/v1/task/proof', { task_id: task.task_id, id: p.id }))} download>
                  {t('board.proof.' + p.kind)} {i + 1}
                </a>
              ))}
            </>
          ) : null}
        </Fact>
        <Fact name={t('board.fact.requires')}>{properties(task.requires)}</Fact>
        <Fact name={t('board.fact.properties')}>{properties(task.properties)}</Fact>
        <Fact name={t('board.fact.erased')}>{task.erased_at && board.times.shown(ms(task.erased_at), now)}</Fact>
        <Fact name={t('board.fact.retry_of')}>{task.retry_of && <a href={'#task/' + encodeURIComponent(task.retry_of)}>{t('board.fact.retry_of.link')}</a>}</Fact>
        <Fact name={t('board.fact.retried_by')}>{task.retried_by && <a href={'#task/' + encodeURIComponent(task.retried_by)}>{t('board.fact.retried_by.link')}</a>}</Fact>
      </dl>
      {board.mayChange && <Actions key={task.status + task.outcome} board={board} task={task} />}
      <Link board={board} task={task} />
      <Trips board={board} task={task} />
      <History board={board} task={task.task_id} version={task.version} />
      {board.mayChange && task.status !== 'completed' && <Cancel board={board} task={task} />}
      {board.mayChange && <Removal board={board} task={task} />}
    </>
  );
}

const Text = ({ text }: { text: string }) => (
  <span class="text" dir="auto">
    {text}
  </span>
);

const properties = (p: Record<string, string> | undefined): string =>
  Object.entries(p ?? {})
    .map(([k, v]) => k + ': ' + v)
    .join(', ');

function PlaceFact({ board, name, place }: { board: Board; name: string; place: Place }) {
  const { customer, lnglat } = place;
  return (
    <Fact name={name}>
      <Text text={place.address || (lnglat ? writePoint(lnglat) : '')} />
      {!lnglat && <span class="hint"> {board.t('board.place.no_point')}</span>}
      {customer?.name && (
        <>
          <br />
          <bdi>{customer.name}</bdi>
        </>
      )}
      {customer?.mobile && (
        <>
          {customer.name ? ' · ' : <br />}
          <a href={telLink(customer.mobile) ?? undefined} dir="ltr">
            {customer.mobile}
          </a>
        </>
      )}
    </Fact>
  );
}

function Actions({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const id = encodeURIComponent(task.task_id);
  const busy = board.isBusy(task.task_id);
  const [open, setOpen] = useState<'' | 'end' | 'unassign'>('');
  const close = () => setOpen('');
  useAsked(board, 'unassign', task, () => task.status === 'in_progress' && setOpen('unassign'));
  if (task.status === 'completed') {
    if (task.erased_at) return null; // it cannot go on
    const again = task.outcome !== 'succeeded' && !task.retried_by;
    return (
      <div class="buttons">
        {again && (
          <button type="button" class="do" disabled={busy} onClick={() => void board.retry(task)}>
            {t('board.task.retry')}
          </button>
        )}
        {!task.retried_by && (
          <button type="button" class="other" disabled={busy} onClick={() => void act(board, task, 'reopen')}>
            {t('board.task.reopen')}
          </button>
        )}
      </div>
    );
  }
  return (
    <>
      <div class="buttons">
        <a class={task.driver_id ? 'other' : 'do'} href={'#assign/' + id}>
          {t(task.driver_id ? 'board.task.reassign' : 'board.task.assign')}
        </a>
        {task.status === 'assigned' && (
          <button type="button" class="other" disabled={busy} onClick={() => void board.unassign(task)}>
            {t('board.task.unassign')}
          </button>
        )}
        {task.status === 'in_progress' && (
          <button type="button" class="other" aria-expanded={open === 'unassign'} onClick={() => setOpen(open === 'unassign' ? '' : 'unassign')}>
            {t('board.task.unassign')}
          </button>
        )}
        <a class="other" href={'#edit/' + id}>
          {t('board.task.edit')}
        </a>
        <button type="button" class="other" aria-expanded={open === 'end'} onClick={() => setOpen(open === 'end' ? '' : 'end')}>
          {t('board.task.complete')}
        </button>
      </div>
      {open === 'end' && <Complete board={board} task={task} onClose={close} />}
      {open === 'unassign' && <TakeBack board={board} task={task} onClose={close} />}
    </>
  );
}

/** Takes back what somebody is at. */
function TakeBack({ board, task, onClose }: { board: Board; task: Task; onClose: () => void }) {
  const { t } = board;
  const send = (e: Event) => {
    e.preventDefault();
    void board.unassign(task).then((a) => a.kind === 'ok' && onClose());
  };
  return (
    <form class="inset" onSubmit={send}>
      <p>{t('board.unassign.under', { name: driverName(board.driver(task.driver_id), task.driver_id ?? '') })}</p>
      <p class="buttons">
        <First words={t('board.unassign.keep')} onClick={onClose} />
        <button class="do bad" disabled={board.isBusy(task.task_id)}>
          {t('board.task.unassign')}
        </button>
      </p>
    </form>
  );
}

/** Does something with a task by the verb of its route, as it was seen. */
function act(board: Board, task: Task, verb: 'reopen' | 'cancel' | 'complete', more: Record<string, unknown> = {}) {
  return board.act({
    about: [task.task_id, ...(task.driver_id ? [task.driver_id] : [])],
    path: '/v1/task/' + verb,
    body: { task_id: task.task_id, version: task.version, ...more },
    seen: task,
    done: board.t('board.done.' + verb, { task: nameOf(task) }),
  });
}

/** The words of a reason, and none. */
function reasons(board: Board): [string, string][] {
  return [['', board.t('board.reason.none')], ...Object.entries(board.config.reasons)];
}

function Complete({ board, task, onClose }: { board: Board; task: Task; onClose: () => void }) {
  const { t } = board;
  const [outcome, setOutcome] = useState('succeeded');
  const [code, setCode] = useState('');
  const [reason, setReason] = useState('');
  const [by, setBy] = useState('');
  const send = (e: Event) => {
    e.preventDefault();
    const failed = outcome === 'failed';
    void act(board, task, 'complete', {
      outcome,
      ...(failed && code ? { reason_code: code } : {}),
      ...(failed && reason ? { reason } : {}),
      ...(!failed && by ? { received_by: by } : {}),
    }).then((a) => a.kind === 'ok' && onClose());
  };
  return (
    <form class="inset" onSubmit={send}>
      <h3>{t('board.complete.title')}</h3>
      <Choice label={t('board.complete.outcome')} value={outcome} onChange={setOutcome} options={(['succeeded', 'failed'] as const).map((o) => [o, t('board.outcome.' + o)])} />
      {outcome === 'failed' ? (
        <>
          <Choice label={t('board.reason')} value={code} onChange={setCode} options={reasons(board)} />
          <Field label={t('board.reason.text')} value={reason} onInput={setReason} max={200} />
        </>
      ) : (
        <Field label={t('board.fact.received_by')} value={by} onInput={setBy} max={200} />
      )}
      <FormButtons board={board} words={t('board.complete.button')} busy={board.isBusy(task.task_id)} onBack={onClose} />
    </form>
  );
}

/** Cancelling, last of all and apart: whoever looks for a way to close the panel must not find this. */
function Cancel({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const [asking, setAsking] = useState(false);
  const [code, setCode] = useState('');
  const send = (e: Event) => {
    e.preventDefault();
    void act(board, task, 'cancel', code ? { reason_code: code } : {}).then((a) => a.kind === 'ok' && setAsking(false));
  };
  return (
    <section class="part cancel" aria-labelledby="cancel">
      <h3 id="cancel">{t('board.cancel.title')}</h3>
      {asking ? (
        <form onSubmit={send}>
          <p>{t(task.driver_id ? 'board.cancel.text.driver' : 'board.cancel.text')}</p>
          <Choice label={t('board.reason')} value={code} onChange={setCode} options={reasons(board)} />
          <p class="buttons">
            <First words={t('board.cancel.keep')} onClick={() => setAsking(false)} />
            <button class="do bad" disabled={board.isBusy(task.task_id)}>
              {t('board.cancel.button')}
            </button>
          </p>
        </form>
      ) : (
        <button type="button" class="other bad" onClick={() => setAsking(true)}>
          {t('board.cancel.button')}
        </button>
      )}
    </section>
  );
}

function Link({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const [url, setUrl] = useState('');
  const [asked, setAsked] = useState(false);
  const id = task.task_id;
  const read = async () => {
    const a = await board.api.call('GET', '/v1/task/trackingurl/' + encodeURIComponent(id));
    if (a.kind === 'ok') setUrl(a.data.webUrl as string);
    else board.say(await board.excuse(a), true);
  };
  const revoke = async () => {
    const a = await board.act({ about: [id], path: '/v1/task/trackingurl/revoke', body: { task_id: id }, done: t('board.link.revoked') });
    if (a.kind === 'ok') setUrl('');
    setAsked(false);
  };
  return (
    <section class="part" aria-labelledby="link">
      <h3 id="link">{t('board.link')}</h3>
      {url ? (
        <Share board={board} url={url} label={t('board.link')} />
      ) : (
        <button type="button" class="other" onClick={() => void read()}>
          {t('board.link.show')}
        </button>
      )}
      {url && board.mayChange && (
        <p class="buttons">
          {asked ? (
            <>
              <span class="hint">{t('board.link.revoke.text')}</span>
              <First words={t('board.back')} onClick={() => setAsked(false)} />
              <button type="button" class="do bad" onClick={() => void revoke()}>
                {t('board.link.revoke')}
              </button>
            </>
          ) : (
            <button type="button" class="other" onClick={() => setAsked(true)}>
              {t('board.link.revoke')}
            </button>
          )}
        </p>
      )}
    </section>
  );
}

interface Trip {
  _id: string;
  agent_id: string;
  status: string; // 1 active, 2 stopped, 3 discarded
  started_at?: string;
  ended_at?: string;
}

/** The trips of a task, each to be looked at again. */
function Trips({ board, task }: { board: Board; task: Task }) {
  const [trips, setTrips] = useState<Trip[]>([]);
  useEffect(() => {
    let over = false;
    if (task.started_at || task.status === 'completed') {
      void board.api.call('GET', query('/v1/trips', { tracking_id: task.task_id, limit: 20 })).then((a) => {
        if (!over && a.kind === 'ok') setTrips(a.data.trips as Trip[]);
      });
    }
    return () => void (over = true);
  }, [task.task_id, task.status, task.started_at]);
  return <TripList board={board} trips={trips} />;
}

export function TripList({ board, trips }: { board: Board; trips: readonly Trip[] }) {
  const { t } = board;
  const shown = trips.filter((x) => x.status !== '3');
  if (shown.length === 0) return null;
  const time = (text: string | undefined) => (text ? board.times.shown(ms(text), board.now()) : t('board.trip.now'));
  return (
    <section class="part" aria-labelledby="trips">
      <h3 id="trips">{t('board.trips')}</h3>
      <ul class="trips">
        {shown.map((x) => (
          <li key={x._id}>
            <a href={'#replay/' + encodeURIComponent(x._id)}>
              {t('board.trip.replay', { from: time(x.started_at), to: time(x.ended_at), name: driverName(board.driver(x.agent_id), x.agent_id) })}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
