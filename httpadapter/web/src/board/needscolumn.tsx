// The left column: what needs somebody's attention, by urgency and with what to do about it, and below it what nobody has.

import type { Board } from './board';
import { hue } from './hue';
import { driverName, type Stuck, type Task } from './model';
import { best, unassigned, type Need } from './needs';
import { panelOf } from './panels';
import { reasonWords, TaskRow } from './parts';
import { telLink } from '../shared/digits';

const shownAtOnce = 60; // of what nobody has; the others are told of

export function NeedsColumn({ board }: { board: Board }) {
  const { t } = board;
  const rest = unassigned(board.world, board.needs);
  if (board.world.tasks.size === 0 && board.needs.length === 0) return <Beginning board={board} />;
  return (
    <section class="column needs" aria-labelledby="needs-title">
      <h2 id="needs-title">
        {t('board.tab.needs')} {board.needs.length > 0 && <span class="count">{board.needs.length}</span>}
      </h2>
      {board.needs.length === 0 && <p class="calm">{t('board.needs.none')}</p>}
      <ul class="list">
        {board.needs.map((n) => (
          <NeedCard key={n.key} board={board} need={n} />
        ))}
      </ul>
      <h2>
        {t('board.unassigned')} {rest.length > 0 && <span class="count quiet">{rest.length}</span>}
      </h2>
      {rest.length === 0 && <p class="calm">{t('board.unassigned.none')}</p>}
      <ul class="list">
        {rest.slice(0, shownAtOnce).map((task) => (
          <li key={task.task_id} class={'card' + marks(board, task.task_id)}>
            <TaskRow board={board} task={task} />
            {selected(board, task) && board.mayChange && (
              <div class="card-do">
                <Give board={board} task={task} />
              </div>
            )}
          </li>
        ))}
      </ul>
      {rest.length > shownAtOnce && <p class="calm">{t('board.more', { n: rest.length - shownAtOnce })}</p>}
    </section>
  );
}

const selected = (board: Board, task: Task) => board.selection?.kind === 'task' && board.selection.id === task.task_id;

/** What a row shows of itself: that it is being changed, that somebody else has changed it. */
export const marks = (board: Board, id: string): string => (board.isBusy(id) ? ' pending' : '') + (board.isFresh(id) ? ' fresh' : '');

function NeedCard({ board, need }: { board: Board; need: Need }) {
  const { t } = board;
  const { task, driver } = need;
  const id = task?.task_id ?? driver!.driver_id;
  return (
    <li class={'card need ' + need.why + marks(board, id)}>
      {task ? (
        <TaskRow board={board} task={task} why={whyOf(board, need)} late={need.why === 'late'} />
      ) : (
        <button type="button" class="row-main" data-row={'driver ' + id} aria-pressed={board.selection?.kind === 'driver' && board.selection.id === id} onClick={() => board.select('driver', id)}>
          <span class="why">{whyOf(board, need)}</span>
          <span class="row-title">
            <bdi>{driverName(driver, id)}</bdi>
          </span>
          <span class="row-sub">{t(need.open === 1 ? 'board.open.one' : 'board.open.other', { n: need.open })}</span>
        </button>
      )}
      <Next board={board} need={need} />
    </li>
  );
}

/** What is the matter, in few words. */
function whyOf(board: Board, n: Need): string {
  const { t } = board;
  const since = Number.isFinite(n.since) ? board.ago(n.since) : '';
  if (n.why === 'late' && n.since > board.now()) return t('board.why.will_be_late');
  if (n.why === 'waiting' || n.why === 'late') return [t('board.why.' + n.why, { since }), reasonWords(board, n.reason)].filter(Boolean).join(' · ');
  if (n.why === 'failed') {
    const code = n.task?.reason_code;
    const reason = (code && board.config.reasons[code]) || n.task?.reason || '';
    return t('board.why.failed', { since }) + (reason ? ' · ' + reason : '');
  }
  if (n.stuck) {
    const words = board.config.words['board.stuck.' + n.stuck.why];
    return t('board.why.stuck', { step: t('board.stuck.step.' + n.stuck.step), since }) + (words ? ' · ' + words : '');
  }
  return n.why === 'silent' && !since ? t('board.why.silent.never') : t('board.why.' + n.why, { since });
}

/** The best that can be done next, as a button. */
function Next({ board, need }: { board: Board; need: Need }) {
  const { t } = board;
  const { task } = need;
  if (need.why === 'failed' && task) {
    if (!board.mayChange) return null;
    return (
      <div class="card-do">
        <button type="button" class="do" disabled={board.isBusy(task.task_id)} onClick={() => void board.retry(task)}>
          {t('board.do.retry')}
        </button>
        <button type="button" class="other" onClick={() => board.dismiss(need)}>
          {t('board.do.leave')}
        </button>
      </div>
    );
  }
  if (need.stuck && task) return <Settle board={board} task={task} stuck={need.stuck} />;
  const driver = need.driver ?? board.driver(task?.driver_id);
  const first = !task || task.status === 'in_progress';
  const call = driver && <Call board={board} mobile={driver.mobile} name={driverName(driver, driver.driver_id)} first={first} />;
  if (task && !first) {
    if (!board.mayChange) return call ? <div class="card-do">{call}</div> : null;
    return (
      <div class="card-do">
        <Give board={board} task={task} />
        {call}
      </div>
    );
  }
  return (
    <div class="card-do">
      {call}
      <button
        type="button"
        class="other"
        onClick={() => {
          if (task) board.select('task', task.task_id);
          else board.select('driver', driver!.driver_id);
          board.view('selection');
        }}
      >
        {t('board.do.show')}
      </button>
      {!task && board.mayChange && need.open > 0 && <HandOver board={board} driver={driver!.driver_id} />}
    </div>
  );
}

/** Gives all that a driver has to another one. */
export function HandOver({ board, driver }: { board: Board; driver: string }) {
  return (
    <a class="other" href={'#several/' + encodeURIComponent('of:' + driver)}>
      {board.t('board.do.handover')}
    </a>
  );
}

/** What to do about a step that a phone could not deliver: to do it for the driver, or to ask him. */
function Settle({ board, task, stuck }: { board: Board; task: Task; stuck: Stuck }) {
  const { t } = board;
  const driver = board.anyDriver(stuck.driver_id);
  const name = driverName(driver, stuck.driver_id);
  const ends = task.status !== 'completed' && (stuck.step === 'complete' || stuck.step === 'fail');
  return (
    <>
      <p class="row-sub">
        <span class={'swatch c' + hue(stuck.driver_id)} aria-hidden="true" /> {t('board.stuck.phone', { name })}
      </p>
      <div class="card-do">
        {ends && board.mayChange && (
          <a class="do" href={'#task/' + encodeURIComponent(task.task_id)}>
            {t('board.do.complete')}
          </a>
        )}
        <Call board={board} mobile={driver?.mobile} name={name} first={!ends} />
        {board.mayChange && (
          <button type="button" class="other" disabled={board.isBusy(task.task_id)} onClick={() => void board.settle(task)}>
            {t('board.do.settle')}
          </button>
        )}
      </div>
    </>
  );
}

function Call({ board, mobile, name, first }: { board: Board; mobile: string | undefined; name: string; first: boolean }) {
  const link = telLink(mobile);
  if (!link) return null;
  return (
    <a class={first ? 'do' : 'other'} href={link}>
      {board.t('board.do.call', { name })}
    </a>
  );
}

/** Gives a task to whom that fits best, who is named with how far he is and what he has already; or to whom the reader chooses. */
function Give({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const list = board.candidates(task.task_id);
  const one = list && best(task, list.candidates);
  const far = one?.distance === undefined ? '' : board.metres(one.distance) + ', ';
  return (
    <>
      {!list && <span class="do waiting" aria-hidden="true" />}
      {one && (
        <button type="button" class="do" disabled={board.isBusy(task.task_id)} onClick={() => void board.assign(task, one.driver_id)}>
          {t('board.do.give', { name: one.name || one.driver_id })} <small>{far + t('board.load', { n: one.open_tasks })}</small>
        </button>
      )}
      {panelOf('assign', board.mayChange) && (
        <button type="button" class="other" onClick={() => board.open('assign', task.task_id)}>
          {t(one ? 'board.do.choose' : 'board.task.assign')}
        </button>
      )}
    </>
  );
}

/** Where nothing is yet: how it begins. */
function Beginning({ board }: { board: Board }) {
  const { t } = board;
  const drivers = board.world.drivers.size;
  return (
    <section class="column needs beginning" aria-labelledby="needs-title">
      <h2 id="needs-title">{t(drivers > 0 ? 'board.empty.calm' : 'board.empty.title')}</h2>
      <ol class="steps">
        {(['driver', 'task', 'give'] as const).map((step, i) => (
          <li key={step} class={i === 0 && drivers > 0 ? 'done' : ''}>
            <strong>{t('board.empty.' + step)}</strong>
            <span>{t('board.empty.' + step + '.text')}</span>
          </li>
        ))}
      </ol>
      {board.mayChange && (
        <p class="buttons">
          {drivers === 0 && (
            <button type="button" class="do" onClick={() => board.open('people', 'new')}>
              {t('board.people.invite')}
            </button>
          )}
          <button type="button" class={drivers > 0 ? 'do' : 'other'} onClick={() => board.open('new')}>
            {t('board.new.button')}
          </button>
        </p>
      )}
    </section>
  );
}

