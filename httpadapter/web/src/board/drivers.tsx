// The right column: the drivers, and of the one who is selected the stops in order.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Board, Route } from './board';
import { landing, type Landing } from './drag';
import { driverName, isLate, ms, nameOf, type Driver, type DriverState, type Task } from './model';
import { days, rows } from './needs';
import { HandOver, marks } from './needscolumn';
import { moved, sameOrder } from './order';
import { panelOf } from './panels';
import { hue } from './hue';
import { NoRow } from './read';

export function DriversColumn({ board }: { board: Board }) {
  const { t } = board;
  const list = rows(board.world, board.now(), board.rules);
  const today = board.wholeDay ? days(board.world, board.today) : null; // only where all of the day is known
  return (
    <section class="column drivers" aria-labelledby="drivers-title">
      <h2 id="drivers-title">
        {t('board.tab.drivers')} {list.length > 0 && <span class="count quiet">{list.length}</span>}
      </h2>
      {list.length === 0 && <p class="calm">{t('board.drivers.none')}</p>}
      <ul class="list">
        {list.map(({ driver, state }) => (
          <DriverRow key={driver.driver_id} board={board} driver={driver} state={state} day={today?.get(driver.driver_id)} />
        ))}
      </ul>
    </section>
  );
}

/** The form of a state, as on the map. */
export const Glyph = ({ state }: { state: DriverState }) => <span class={'glyph ' + state} aria-hidden="true" />;

/** Whether a row is on the screen, or nearly. */
function useShown(row: { current: HTMLElement | null }): boolean {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => setShown(seen.at(-1)!.isIntersecting), { rootMargin: '200px' });
    watch.observe(row.current!);
    return () => watch.disconnect();
  }, []);
  return shown;
}

function DriverRow({ board, driver, state, day }: { board: Board; driver: Driver; state: DriverState; day: { done: number; all: number } | undefined }) {
  const { t } = board;
  const id = driver.driver_id;
  const open = (board.selection?.kind === 'driver' && board.selection.id === id) || board.peek === id;
  const over = board.landing?.driver === id;
  const box = useRef<HTMLLIElement>(null);
  const shown = useShown(box);
  // Of who is not on the screen nobody asks the way.
  const route = driver.open_tasks > 0 && (shown || open) ? board.route(id) : null;
  const next = route?.stops[0];
  const task = next && board.world.tasks.get(next.task_id);
  const eta = ms(next?.eta?.time);
  const seen = ms(driver.last_seen_at);
  return (
    <li ref={box} class={'card driver ' + state + marks(board, id) + (over ? ' over' : '')} data-drop={id}>
      <button type="button" class="row-main" data-row={'driver ' + id} aria-expanded={open} onClick={() => (open ? board.unselect() : board.select('driver', id))}>
        <span class="row-title">
          <Glyph state={state} />
          <bdi>{driverName(driver, id)}</bdi>
          <span class={'swatch c' + hue(id)} aria-hidden="true" />
        </span>
        <span class="row-sub">
          <span class="state">{t('board.state.' + state)}</span>
          {day && <> · {t('board.day', { n: day.done, of: day.all })}</>}
          {!day && driver.open_tasks > 0 && <> · {t('board.load', { n: driver.open_tasks })}</>}
          {Number.isFinite(seen) && state !== 'off' && <> · {board.heard(seen)}</>}
          {!Number.isFinite(seen) && state !== 'off' && <> · {t('board.seen.never')}</>}
        </span>
        {task && (
          <span class="row-sub">
            <bdi class="next-stop">{stopText(task, next.leg)}</bdi>
            {Number.isFinite(eta) && <span class={'due' + (isLate(task, board.now()) ? ' is-late' : '')}> {t('board.eta', { time: board.times.shown(eta, board.now()) })}</span>}
          </span>
        )}
        <Warnings board={board} driver={driver} />
      </button>
      {open && <Stops board={board} driver={driver} route={route} />}
      {open && board.mayChange && driver.open_tasks > 0 && (
        <div class="card-do">
          <HandOver board={board} driver={id} />
        </div>
      )}
    </li>
  );
}

const stopText = (task: Task, leg: 'pickup' | 'drop'): string => task[leg]?.address || task[leg]?.customer?.name || nameOf(task);

function Warnings({ board, driver }: { board: Board; driver: Driver }) {
  const { t } = board;
  const list: string[] = [];
  if (driver.battery !== undefined && driver.battery <= 0.2) list.push(t('board.warn.battery', { n: Math.round(driver.battery * 100) }));
  const skew = Math.abs(driver.clock_skew ?? 0);
  if (skew > 0) list.push(t(driver.clock_skew! > 0 ? 'board.warn.clock.ahead' : 'board.warn.clock.behind', { n: skew < 120 ? skew + ' s' : Math.round(skew / 60) + ' min' }));
  if (driver.unread) list.push(t('board.warn.unread', { n: driver.unread }));
  if (list.length === 0) return null;
  return (
    <span class="warnings">
      {list.map((w) => (
        <span key={w} class="chip warn">
          {w}
        </span>
      ))}
    </span>
  );
}

const slack = 12; // px: one that is nearly in another's place takes it

interface Drag {
  from: number;
  to: number;
  by: number; // px
  height: number;
  away: boolean; // it is over another driver
}

/** The stops in order. Dragging one within the list moves it; onto another driver, gives him the whole task, there where it is dropped. */
function Stops({ board, driver, route }: { board: Board; driver: Driver; route: Route | null }) {
  const { t } = board;
  const id = driver.driver_id;
  const [drag, setDrag] = useState<Drag | null>(null);
  const list = useRef<HTMLOListElement>(null);
  if (driver.open_tasks === 0) return <p class="calm">{t('board.stops.none')}</p>;
  if (!route) return <NoRow board={board} row={board.couldNotRead('route ' + id) ? 'unread' : undefined} gone="board.gone" />;
  const stops = board.shownStops(id);
  const still = !board.mayChange || board.isBusy(id);
  const reorder = (from: number, to: number) => {
    const next = moved(stops, from, to);
    if (still || sameOrder(next, stops)) return;
    void board.act({
      about: [id],
      path: '/v1/users/driver/route',
      body: { driver_id: id, stops: next.map(({ task_id, leg }) => ({ task_id, leg })), version: route.version },
      order: route.stops,
      done: t('board.done.reordered', { name: driverName(driver, id) }),
    });
  };
  const grab = (from: number, e: PointerEvent) => {
    if (e.button !== 0 || still) return;
    e.preventDefault();
    const rects = [...list.current!.children].map((row) => row.getBoundingClientRect());
    const box = list.current!.closest('.column')!;
    const start = e.clientY + box.scrollTop;
    const middle = rects.map((r) => r.top + r.height / 2 + box.scrollTop);
    const top = () => list.current!.getBoundingClientRect().top + box.scrollTop;
    const first = top();
    let now: Drag = { from, to: from, by: 0, height: rects[from]!.height, away: false };
    let there: Landing | null = null; // over another driver
    const look = (ev: PointerEvent) => {
      const y = ev.clientY + box.scrollTop;
      const by = y - start - (top() - first); // the stops of another driver may have opened above
      there = landing(ev.clientX, ev.clientY);
      if (there?.driver === id) there = null;
      let to = from;
      const at = middle[from]! + by;
      while (to < rects.length - 1 && at > middle[to + 1]! - slack) to++;
      while (to > 0 && at < middle[to - 1]! + slack) to--;
      now = { ...now, to, by, away: there !== null };
      setDrag(now);
      board.hover(there);
    };
    const end = (ev: PointerEvent) => {
      for (const [name, f] of handlers) removeEventListener(name, f as EventListener);
      setDrag(null);
      board.letGo();
      if (ev.type !== 'pointerup') return;
      const { task_id, leg } = stops[from]!;
      if (there) board.drop(task_id, there, leg);
      else reorder(from, now.to);
    };
    const handlers = [['pointermove', look], ['pointerup', end], ['pointercancel', end]] as const;
    for (const [name, f] of handlers) addEventListener(name, f as EventListener);
  };
  const shift = (i: number): string | undefined => {
    if (!drag) return undefined;
    if (i === drag.from) return `translateY(${drag.by}px)`;
    if (drag.away) return undefined;
    if (i > drag.from && i <= drag.to) return `translateY(${-drag.height}px)`;
    return i < drag.from && i >= drag.to ? `translateY(${drag.height}px)` : undefined;
  };
  const at = board.landing?.driver === id ? board.landing.at : null; // where something would come that is dragged here
  return (
    <ol class={'stops' + (drag ? ' dragging' : '')} ref={list}>
      {stops.map((s, i) => {
        const task = board.world.tasks.get(s.task_id)!;
        const name = stopText(task, s.leg);
        const eta = ms(s.eta?.time);
        return (
          <li key={s.leg + s.task_id} data-at={i} class={'stop' + (drag?.from === i ? ' dragged' : '') + (at === i ? ' before' : at === stops.length && i === at - 1 ? ' after' : '') + marks(board, s.task_id)} style={{ transform: shift(i) }}>
            <span class={'stop-number c' + hue(id) + (still ? '' : ' grip')} title={still ? undefined : t('board.stops.drag')} onPointerDown={(e) => grab(i, e)}>
              {i + 1}
            </span>
            <span class="stop-text">
              <bdi>{name}</bdi>
              <span class="row-sub">
                {t('board.leg.' + s.leg)} · <bdi>{nameOf(task)}</bdi>
                {Number.isFinite(eta) && <span class={'due' + (isLate(task, board.now()) ? ' is-late' : '')}> {t('board.eta', { time: board.times.shown(eta, board.now()) })}</span>}
              </span>
              {panelOf('assign', board.mayChange) && (
                <button type="button" class="other small" onClick={() => board.open('assign', task.task_id)}>
                  {t('board.stops.give')}
                  <span class="sr"> {name}</span>
                </button>
              )}
            </span>
            {board.mayChange && (
              <span class="stop-do">
                {(['up', 'down'] as const).map((way) => {
                  const to = way === 'up' ? i - 1 : i + 1;
                  const can = to >= 0 && to < stops.length && !sameOrder(moved(stops, i, to), stops);
                  return <button key={way} type="button" class={'move ' + way} aria-label={t('board.stops.' + way, { name })} aria-disabled={!can || still ? 'true' : undefined} onClick={() => can && reorder(i, to)} />;
                })}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
