// The stops in order, and how the driver changes it: by dragging, or by a button for each step.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { App } from './app';
import { Chip, Due, kindOf, placeText } from './next';
import type { Shown } from './model';
import { moved, nextStop, routeFrom, sameOrder, stopsOf, type ShownStop } from './route';

export const stopLink = (stop: ShownStop) => (stop.tasks.length > 1 ? '#stop/' + encodeURIComponent(stop.key) : '#task/' + encodeURIComponent(stop.tasks[0]!.task_id));

/** The stops that come after the next one. */
export function StopList({ app, stops }: { app: App; stops: readonly ShownStop[] }) {
  const next = nextStop(stops);
  return (
    <ol class="card list later">
      {stops.map((stop, i) => stop !== next && <StopRow key={stop.key} app={app} stop={stop} number={i + 1} />)}
    </ol>
  );
}

/** Enough to know a stop by; the rest opens on a tap. */
function StopRow({ app, stop, number }: { app: App; stop: ShownStop; number: number }) {
  const [task] = stop.tasks;
  return (
    <li class={'task ' + task!.status}>
      <a class="card-link later-row" href={stopLink(stop)}>
        <span class="number">{number}</span>
        <span class="later-text">
          <bdi class="address">{placeText(stop.place)}</bdi>
          <Facts app={app} stop={stop} />
        </span>
        {(task!.status !== 'assigned' || task!.pending) && <Chip app={app} task={task!} />}
      </a>
    </li>
  );
}

function Facts({ app, stop }: { app: App; stop: ShownStop }) {
  const single = stop.tasks.length === 1 ? stop.tasks[0]! : null;
  return (
    <span class="sub">
      <span>{kindOf(app, stop)}</span>
      <Due app={app} tasks={stop.tasks} />
      {single?.order_id && <bdi>{app.t('driver.order', { id: single.order_id })}</bdi>}
    </span>
  );
}

/** A row that is being dragged: which one, by how much, and where it would come. */
interface Drag {
  from: number;
  to: number;
  by: number; // px
  height: number;
}

const edge = 90; // px at the window's edges within which dragging scrolls

export function OrderView({ app, shown }: { app: App; shown: Shown }) {
  const { t } = app;
  const began = useRef(shown.route); // what the order is made from
  const [stops, setStops] = useState(() => stopsOf(shown.tasks, shown.route));
  const [said, setSaid] = useState('');
  const [drag, setDrag] = useState<Drag | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const focus = useRef<{ row: number; way: 'up' | 'down' } | null>(null); // whose row has moved, and with it the button
  useLayoutEffect(() => {
    const f = focus.current;
    focus.current = null;
    if (f) list.current!.children[f.row]?.querySelector<HTMLElement>('.' + f.way)?.focus();
  });
  const changed = !sameOrder(routeFrom(stops), began.current);
  // Somebody else has changed it: what is on the screen is no more, and is shown as it is.
  useEffect(() => {
    if (sameOrder(shown.route, began.current)) return;
    began.current = shown.route;
    setStops(stopsOf(shown.tasks, shown.route));
    setDrag(null);
    setSaid(t('driver.reorder.anew'));
  });

  const move = (from: number, to: number, by?: 'up' | 'down') => {
    const next = moved(stops, from, to);
    const at = next.indexOf(stops[from]!);
    if (by) focus.current = { row: at, way: by };
    setStops(next);
    setSaid(t(at === to ? 'driver.reorder.moved' : 'driver.reorder.first', { address: placeText(stops[from]!.place), n: at + 1, of: stops.length }));
  };
  const grab = (from: number, e: PointerEvent) => {
    if (e.button !== 0) return;
    e.preventDefault();
    const rows = [...list.current!.children].map((row) => row.getBoundingClientRect());
    const middle = rows.map((r) => r.top + r.height / 2 + scrollY);
    const start = e.clientY + scrollY;
    let y = e.clientY;
    let frame = 0;
    let now: Drag = { from, to: from, by: 0, height: rows[from]!.height };
    const look = () => {
      const by = y + scrollY - start;
      const at = middle[from]! + by;
      let to = from;
      while (to < rows.length - 1 && at > middle[to + 1]!) to++;
      while (to > 0 && at < middle[to - 1]!) to--;
      now = { ...now, to, by };
      setDrag(now);
    };
    const scroll = () => {
      const speed = y < edge ? y - edge : y > innerHeight - edge ? y - innerHeight + edge : 0;
      if (speed !== 0) scrollBy(0, speed / 8);
      look();
      frame = requestAnimationFrame(scroll);
    };
    const at = (ev: PointerEvent) => {
      y = ev.clientY;
    };
    const end = (ev: PointerEvent) => {
      cancelAnimationFrame(frame);
      for (const [name, f] of handlers) removeEventListener(name, f);
      setDrag(null);
      if (ev.type === 'pointerup' && now.to !== from) move(from, now.to);
    };
    const handlers = [['pointermove', at], ['pointerup', end], ['pointercancel', end]] as const;
    for (const [name, f] of handlers) addEventListener(name, f);
    frame = requestAnimationFrame(scroll);
  };
  const shift = (i: number): string | undefined => {
    if (!drag) return undefined;
    if (i === drag.from) return `translateY(${drag.by}px)`;
    if (i > drag.from && i <= drag.to) return `translateY(${-drag.height}px)`;
    return i < drag.from && i >= drag.to ? `translateY(${drag.height}px)` : undefined;
  };
  const save = () => {
    if (app.guard.closed) return;
    if (changed) void app.reorder(began.current, routeFrom(stops));
    location.hash = '';
  };
  return (
    <div class="order">
      <h1>{t('driver.reorder.title')}</h1>
      <p class="sub">{t('driver.reorder.how')}</p>
      <ol class={'card list' + (drag ? ' dragging' : '')} ref={list}>
        {stops.map((stop, i) => (
          <li key={stop.key} class={'order-row' + (drag?.from === i ? ' dragged' : '')} style={{ transform: shift(i) }}>
            <span class="grip" aria-hidden="true" onPointerDown={(e) => grab(i, e)}>
              <span class="number">{i + 1}</span>
            </span>
            <span class="later-text">
              <bdi class="address">{placeText(stop.place)}</bdi>
              <Facts app={app} stop={stop} />
            </span>
            {(['up', 'down'] as const).map((way) => {
              const to = way === 'up' ? i - 1 : i + 1;
              return (
                <button
                  key={way}
                  type="button"
                  class={'move ' + way}
                  aria-label={t('driver.reorder.' + way, { address: placeText(stop.place) })}
                  aria-disabled={to < 0 || to >= stops.length ? 'true' : undefined}
                  onClick={() => move(i, to, way)}
                />
              );
            })}
          </li>
        ))}
      </ol>
      <p class="sr" role="status">
        {said}
      </p>
      <div class="bar">
        <div class="halves">
          <a class="button" href="#">
            {t('driver.reorder.leave')}
          </a>
          <button type="button" class="primary" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={save}>
            {t('driver.reorder.save')}
          </button>
        </div>
      </div>
    </div>
  );
}
