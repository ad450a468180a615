// Dragging a task or a stop onto a driver, be it from the lists of tasks or from another driver's stops.

import type { Board } from './board';

/** Where something would land: with whom, and before which of his stops; null: behind them all. */
export interface Landing {
  driver: string;
  at: number | null;
}

const edge = 40; // px at the ends of a column where it scrolls while something is dragged

/** What lies under the pointer. */
export function landing(x: number, y: number): Landing | null {
  const under = document.elementFromPoint(x, y);
  const driver = under?.closest<HTMLElement>('[data-drop]')?.dataset.drop;
  const column = under?.closest('.column.drivers');
  if (column) {
    const r = column.getBoundingClientRect();
    if (y < r.top + edge) column.scrollTop -= 16;
    else if (y > r.bottom - edge) column.scrollTop += 16;
  }
  if (driver === undefined) return null;
  const stop = under!.closest<HTMLElement>('.stop[data-at]');
  if (!stop) return { driver, at: null };
  const r = stop.getBoundingClientRect();
  return { driver, at: Number(stop.dataset.at) + (y < r.top + r.height / 2 ? 0 : 1) };
}

const meant = 6; // px that a pointer moves until it drags, and is no click

/** Follows a pointer that has taken hold of a task in a list. A finger scrolls there, and does not drag. */
export function pull(board: Board, task: string, e: PointerEvent): void {
  if (e.button !== 0 || e.pointerType === 'touch' || !board.mayChange) return;
  const from = [e.clientX, e.clientY] as const;
  let dragged = false;
  const move = (ev: PointerEvent) => {
    if (!dragged && Math.hypot(ev.clientX - from[0], ev.clientY - from[1]) < meant) return;
    dragged = true;
    board.hover(landing(ev.clientX, ev.clientY), { task, x: ev.clientX, y: ev.clientY });
  };
  const end = (ev: PointerEvent) => {
    removeEventListener('pointermove', move);
    removeEventListener('pointerup', end);
    removeEventListener('pointercancel', end);
    const at = board.landing;
    if (!dragged) return;
    board.letGo();
    const noClick = (c: Event) => c.stopPropagation(); // it would select the row
    addEventListener('click', noClick, { capture: true });
    setTimeout(() => removeEventListener('click', noClick, { capture: true }), 50);
    if (ev.type === 'pointerup' && at) board.drop(task, at);
  };
  addEventListener('pointermove', move);
  addEventListener('pointerup', end);
  addEventListener('pointercancel', end);
}
