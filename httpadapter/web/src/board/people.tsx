// All drivers, on duty or not; inviting one; and one of them.

import { useEffect, useRef, useState } from 'preact/hooks';
import { query, type Api } from './api';
import type { Board } from './board';
import { Fact, Field, FormButtons } from './fields';
import { asciiDigits, telLink } from '../shared/digits';
import { driverName, ms, type Driver } from './model';
import { NoRow, readOf, readOn, useRow, type Read } from './read';
import { Share } from './share';
import { TripList } from './task';

const pageSize = 1000;
const pages = 10;

/** All drivers: those that are read, as the board knows them by now. Null while that goes on, and 'unread' while it fails. */
export function useDrivers(board: Board): Driver[] | null | 'unread' {
  const [got, setGot] = useState<Read<Driver[]> | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void readOn(() => readDrivers(board.api, stop.signal), setGot, stop.signal);
    return () => stop.abort();
  }, [board]);
  if (got?.kind !== 'read') return got && 'unread';
  const ids = new Set(got.value.map((d) => d.driver_id));
  return [...got.value.map((d) => board.driver(d.driver_id) ?? d), ...[...board.world.drivers.values()].filter((d) => !ids.has(d.driver_id))];
}

/** Reads all drivers, or as many pages of them as a list is good for. */
export async function readDrivers(api: Api, signal: AbortSignal): Promise<Read<Driver[]>> {
  const all: Driver[] = [];
  for (let page = 1; page <= pages && !signal.aborted; page++) {
    const a = await api.call('GET', query('/v1/users/drivers', { limit: pageSize, page }));
    if (a.kind !== 'ok') return { kind: 'unread' };
    all.push(...(a.data.drivers as Driver[]));
    if (!a.data.has_more) break;
  }
  return { kind: 'read', value: all };
}

/** Whether a driver is meant by what was typed: each word begins a word of the name, or is a part of the number or id. */
export function matches(d: Driver, text: string): boolean {
  const fold = (s: string) => s.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '');
  const names = fold(driverName(d, d.driver_id)).split(/\s+/);
  return fold(text)
    .split(/\s+/)
    .filter(Boolean)
    .every((w) => names.some((n) => n.startsWith(w)) || fold(d.driver_id).includes(w) || (/^\d{3,}$/.test(asciiDigits(w)) && asciiDigits(d.mobile ?? '').replace(/\D/g, '').includes(asciiDigits(w))));
}

export function PeoplePanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const drivers = useDrivers(board);
  const [text, setText] = useState('');
  const [inviting, setInviting] = useState(of === 'new' && board.mayChange);
  const read = drivers !== null && drivers !== 'unread';
  const list = (read ? drivers : []).filter((d) => matches(d, text)).sort((a, b) => driverName(a, a.driver_id).localeCompare(driverName(b, b.driver_id), board.config.lang));
  return (
    <>
      {board.mayChange && !inviting && (
        <p class="buttons">
          <button type="button" class="do" onClick={() => setInviting(true)}>
            {t('board.people.invite')}
          </button>
        </p>
      )}
      {inviting && <Invite board={board} onClose={() => setInviting(false)} />}
      <Field label={t('board.people.filter')} type="search" value={text} onInput={setText} />
      {!read && <NoRow board={board} row={drivers ?? undefined} gone="board.people.none" />}
      {read && list.length === 0 && <p class="calm">{t(text ? 'board.people.nobody' : 'board.people.none')}</p>}
      <ul class="people">
        {list.map((d) => (
          <li key={d.driver_id}>
            <a href={'#driver/' + encodeURIComponent(d.driver_id)}>
              <bdi class="row-title">{driverName(d, d.driver_id)}</bdi>
              <span class="row-sub">{t(d.availability ? 'board.duty.on' : 'board.duty.off')}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

interface Invitation {
  url: string;
  invite_code: number;
  user_id: string;
}

/** Invites somebody new: the driver is there from then on, off duty. */
function Invite({ board, onClose }: { board: Board; onClose: () => void }) {
  const { t } = board;
  const [name, setName] = useState('');
  const [mobile, setMobile] = useState('');
  const [email, setEmail] = useState('');
  const [error, setError] = useState('');
  const [sending, setSending] = useState(false);
  const [made, setMade] = useState<Invitation | null>(null);
  const send = async (e: Event) => {
    e.preventDefault();
    setError(name.trim() ? '' : t('board.error.name'));
    if (!name.trim() || sending) return;
    setSending(true);
    const a = await board.act({
      about: [],
      path: '/v1/invite_user',
      body: { name: name.trim(), ...(mobile.trim() ? { mobile: mobile.trim() } : {}), ...(email.trim() ? { email: email.trim() } : {}) },
    });
    setSending(false);
    if (a.kind === 'ok') setMade(a.data as Invitation);
  };
  if (made) return <Invited board={board} name={name.trim()} invitation={made} onClose={onClose} />;
  return (
    <form class="inset" onSubmit={(e) => void send(e)} noValidate>
      <h3>{t('board.people.invite')}</h3>
      <Field label={t('board.form.name')} name="driver-name" value={name} onInput={setName} max={200} error={error} focus />
      <div class="pair">
        <Field label={t('board.form.mobile')} name="driver-mobile" type="tel" value={mobile} onInput={setMobile} max={32} />
        <Field label={t('board.form.email')} name="driver-email" type="email" value={email} onInput={setEmail} max={254} />
      </div>
      <FormButtons board={board} words={t('board.people.invite.button')} busy={sending} onBack={onClose} />
    </form>
  );
}

/** How somebody joins who was invited: by the link, or by the code. */
function Invited({ board, name, invitation, onClose }: { board: Board; name: string; invitation: Invitation; onClose: () => void }) {
  const { t } = board;
  return (
    <section class="inset" aria-labelledby="invited">
      <h3 id="invited" tabIndex={-1} ref={(h) => h?.focus()}>
        {t('board.invited', { name: name || invitation.user_id })}
      </h3>
      <p>{t('board.invited.link')}</p>
      <Share board={board} url={invitation.url} label={t('board.invited.link.label')} />
      <p>{t('board.invited.code')}</p>
      <p class="code" aria-label={String(invitation.invite_code).split('').join(' ')}>
        {String(invitation.invite_code).replace(/(\d{3})(?=\d)/, '$1\u202f')}
      </p>
      <p class="hint">{t('board.invited.once')}</p>
      <p class="buttons">
        <button type="button" class="other" onClick={onClose}>
          {t('board.invited.done')}
        </button>
      </p>
    </section>
  );
}

export function DriverPanel({ board, of }: { board: Board; of: string }) {
  const [d, set] = useRow(of, board.driver(of), async () => readOf(await board.api.call('GET', query('/v1/users/driver', { driver_id: of })), (data) => data.driver as Driver));
  if (!d || d === 'unread') return <NoRow board={board} row={d} gone="board.gone.driver" />;
  return <DriverView key={d.driver_id} board={board} driver={d} onRead={set} />;
}

function DriverView({ board, driver, onRead }: { board: Board; driver: Driver; onRead: (d: Driver) => void }) {
  const { t } = board;
  const id = driver.driver_id;
  const name = driverName(driver, id);
  const [open, setOpen] = useState<'' | 'edit' | 'revoke' | 'invited'>('');
  const [invitation, setInvitation] = useState<Invitation | null>(null);
  const [trips, setTrips] = useState<Parameters<typeof TripList>[0]['trips']>([]);
  useEffect(() => {
    void board.api.call('GET', query('/v1/trips', { operator_id: id, limit: 20 })).then((a) => a.kind === 'ok' && setTrips(a.data.trips));
  }, [id, driver.open_tasks]);
  const busy = board.isBusy(id);
  const save = async (body: Record<string, unknown>, done: string) => {
    const a = await board.act({ about: [id], path: '/v1/users/driver', body: { driver_id: id, ...body }, done });
    if (a.kind === 'ok') onRead(a.data.driver as Driver);
    return a.kind === 'ok';
  };
  const invite = async () => {
    const a = await board.act({ about: [id], path: '/v1/invite_user', body: { user_id: id } });
    if (a.kind !== 'ok') return;
    setInvitation(a.data as Invitation);
    setOpen('invited');
  };
  const revoke = async () => {
    const a = await board.act({ about: [id], path: '/v1/users/driver/revoke', body: { driver_id: id }, done: t('board.done.revoked', { name }) });
    if (a.kind === 'ok') setOpen('');
  };
  const seen = ms(driver.last_seen_at);
  return (
    <>
      <p class="panel-lead">
        <bdi class="task-name">{name}</bdi> <span class={'chip ' + (driver.availability ? 'on' : 'off')}>{t(driver.availability ? 'board.duty.on' : 'board.duty.off')}</span>
      </p>
      <dl class="facts-list">
        <Fact name={t('board.form.mobile')}>
          {driver.mobile && (
            <a href={telLink(driver.mobile) ?? undefined} dir="ltr">
              {driver.mobile}
            </a>
          )}
        </Fact>
        <Fact name={t('board.form.email')}>{driver.email && <bdi>{driver.email}</bdi>}</Fact>
        <Fact name={t('board.fact.id')}>
          <bdi>{id}</bdi>
        </Fact>
        <Fact name={t('board.fact.open')}>{String(driver.open_tasks)}</Fact>
        <Fact name={t('board.fact.limit')}>{driver.max_open_tasks !== undefined && (driver.max_open_tasks < 0 ? t('board.limit.none') : String(driver.max_open_tasks))}</Fact>
        <Fact name={t('board.fact.seen')}>{Number.isFinite(seen) ? board.times.shown(seen, board.now()) : t('board.seen.never')}</Fact>
        <Fact name={t('board.fact.properties')}>
          {Object.entries(driver.properties ?? {})
            .map(([k, v]) => k + ': ' + v)
            .join(', ')}
        </Fact>
      </dl>
      {board.mayChange && (
        <div class="buttons">
          <button type="button" class="do" disabled={busy} onClick={() => void save({ availability: !driver.availability }, t(driver.availability ? 'board.done.off' : 'board.done.on', { name }))}>
            {t(driver.availability ? 'board.driver.off' : 'board.driver.on')}
          </button>
          <button type="button" class="other" disabled={busy} onClick={() => void invite()}>
            {t('board.driver.invite')}
          </button>
          <button type="button" class="other" aria-expanded={open === 'edit'} onClick={() => setOpen(open === 'edit' ? '' : 'edit')}>
            {t('board.task.edit')}
          </button>
          <button type="button" class="other" aria-expanded={open === 'revoke'} onClick={() => setOpen(open === 'revoke' ? '' : 'revoke')}>
            {t('board.driver.revoke')}
          </button>
        </div>
      )}
      {open === 'invited' && invitation && <Invited board={board} name={name} invitation={invitation} onClose={() => setOpen('')} />}
      {open === 'revoke' && (
        <div class="inset" role="group" aria-label={t('board.driver.revoke')}>
          <p>{t('board.driver.revoke.text', { name })}</p>
          <p class="buttons">
            <button type="button" class="other" onClick={() => setOpen('')}>
              {t('board.back')}
            </button>
            <button type="button" class="do bad" disabled={busy} onClick={() => void revoke()}>
              {t('board.driver.revoke')}
            </button>
          </p>
        </div>
      )}
      {open === 'edit' && <EditDriver board={board} driver={driver} save={save} onClose={() => setOpen('')} />}
      <TripList board={board} trips={trips} />
    </>
  );
}

interface EditDriverProps {
  board: Board;
  driver: Driver;
  save: (body: Record<string, unknown>, done: string) => Promise<boolean>;
  onClose: () => void;
}

function EditDriver({ board, driver, save, onClose }: EditDriverProps) {
  const { t } = board;
  const [name, setName] = useState(driver.name ?? '');
  const [mobile, setMobile] = useState(driver.mobile ?? '');
  const [email, setEmail] = useState(driver.email ?? '');
  const was = useRef(driver); // when the form was opened
  const send = async (e: Event) => {
    e.preventDefault();
    const now = { name: name.trim(), mobile: mobile.trim(), email: email.trim() };
    const changed = (['name', 'mobile', 'email'] as const).filter((k) => now[k] !== (was.current[k] ?? ''));
    if (changed.length === 0) return onClose();
    const update = Object.fromEntries(changed.map((k) => [k, now[k]]));
    if (await save({ version: was.current.version, ...update }, t('board.done.saved', { name: now.name || driver.driver_id }))) return onClose();
    was.current = board.driver(driver.driver_id) ?? was.current; // who was told of the others' change may save again
  };
  return (
    <form class="inset" onSubmit={(e) => void send(e)} noValidate>
      <Field label={t('board.form.name')} value={name} onInput={setName} max={200} focus />
      <div class="pair">
        <Field label={t('board.form.mobile')} type="tel" value={mobile} onInput={setMobile} max={32} />
        <Field label={t('board.form.email')} type="email" value={email} onInput={setEmail} max={254} />
      </div>
      <FormButtons board={board} words={t('board.edit.save')} busy={board.isBusy(driver.driver_id)} onBack={onClose} />
    </form>
  );
}
