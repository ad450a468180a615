// Keys for the whole board. None is taken from a field that is written in, nor with Ctrl or Alt.

import { nameOf } from './model';
import { unassigned, rows } from './needs';
import type { Board, Selection } from './board';
import { panelOf, panels } from './panels';
import { copy } from './copy';

/** The keys as they are shown, with what they do. */
export function keysOf(mayChange: boolean): [key: string, does: string][] {
  const own: [string, string, boolean?][] = [
    ['J', 'board.key.next'],
    ['K', 'board.key.previous'],
    ['Enter', 'board.key.open'],
    ['A', 'board.key.assign', true],
    ['1 … 5', 'board.key.give', true],
    ['X', 'board.key.mark', true],
    ['U', 'board.key.unassign', true],
    ['C', 'board.key.copy'],
    ['Del', 'board.key.delete', true],
    ['G', 'board.key.go'],
    ['Z', 'board.key.whole'],
    ['Esc', 'board.key.close'],
    ['?', 'board.key.help'],
  ];
  const opening = Object.entries(panels).flatMap(([name, p]): [string, string][] => (p.key && panelOf(name, mayChange) ? [[p.key.toUpperCase(), p.does ?? p.title]] : []));
  return [...opening, ...own.filter(([, , changes]) => mayChange || !changes).map(([key, does]): [string, string] => [key, does])];
}

/** What J and K go through, in the order of the screen: what needs attention, what nobody has, the drivers. */
export function reach(board: Pick<Board, 'needs' | 'world' | 'rules' | 'now'>): Selection[] {
  const list: Selection[] = [];
  const seen = new Set<string>();
  const add = (kind: Selection['kind'], id: string) => {
    if (seen.has(kind + id)) return;
    seen.add(kind + id);
    list.push({ kind, id });
  };
  for (const n of board.needs) {
    if (n.task) add('task', n.task.task_id);
    else if (n.driver) add('driver', n.driver.driver_id);
  }
  for (const t of unassigned(board.world, board.needs)) add('task', t.task_id);
  for (const r of rows(board.world, board.now(), board.rules)) add('driver', r.driver.driver_id);
  return list;
}

/** The index of the next one by J, or of the one before by K: from where the selection is, or was (`last`) if it is there no more. −1: there is none. */
export function step(list: readonly Selection[], from: Selection | null, by: 1 | -1, last: number): number {
  const at = from ? list.findIndex((s) => s.kind === from.kind && s.id === from.id) : -1;
  const to = at >= 0 ? at + by : !from ? (by > 0 ? 0 : list.length - 1) : by > 0 ? last : last - 1;
  return list.length === 0 ? -1 : Math.min(list.length - 1, Math.max(0, to));
}

/** The task that a key is about: the one that is open before the reader, else the one that is selected. */
export function subject(board: Pick<Board, 'panel' | 'selection'>): string | undefined {
  if (board.panel?.name === 'task') return board.panel.of;
  return board.selection?.kind === 'task' ? board.selection.id : undefined;
}

export function listen(board: Board, tab: (name: 'needs' | 'map' | 'drivers') => void): () => void {
  const { t } = board;
  let last = 0;
  const down = (e: KeyboardEvent) => {
    const target = e.target as HTMLElement;
    if (e.key === 'Escape' && board.panel && !document.querySelector('dialog[open]')) {
      e.preventDefault();
      return board.close();
    }
    if (e.ctrlKey || e.altKey || e.metaKey || e.isComposing || target.closest('input, textarea, select, dialog, [contenteditable]')) return;
    // The map moves by its own keys, of which none is a letter.
    if (target.closest('.leaflet-container') && !/^[a-z?/]$/i.test(e.key)) return;
    const s = board.selection;
    const task = board.task(subject(board));
    const done = () => e.preventDefault();
    const panel = Object.keys(panels).find((name) => panels[name]!.key === e.key.toLowerCase() && panelOf(name, board.mayChange));
    if (panel) {
      done();
      // Of a driver who is selected, all that he has is given away where nothing is marked.
      return board.open(panel, panel === 'several' && s?.kind === 'driver' && board.several.length === 0 ? 'of:' + s.id : '');
    }
    switch (e.key.length === 1 ? e.key.toLowerCase() : e.key) {
      case 'j':
      case 'k': {
        done();
        const list = reach(board);
        const next = list[(last = step(list, s, e.key.toLowerCase() === 'j' ? 1 : -1, last))];
        if (!next) return;
        tab(board.needs.some((n) => (n.task?.task_id ?? n.driver?.driver_id) === next.id) || next.kind === 'task' ? 'needs' : 'drivers');
        board.select(next.kind, next.id);
        return focusRow(next);
      }
      case 'Enter':
        // On a button it is a press of that.
        if (!s || (target.closest('button, a, summary') && !target.matches('.row-main'))) return;
        done();
        if (panelOf(s.kind, board.mayChange)) board.open(s.kind, s.id);
        else if (s.kind === 'task' && board.world.tasks.has(s.id) && panelOf('assign', board.mayChange)) board.open('assign', s.id);
        return;
      case 'a':
        if (!task || task.status === 'completed' || !panelOf('assign', board.mayChange)) return;
        done();
        return board.open('assign', task.task_id);
      case 'u':
        if (!task || !board.mayChange) return;
        done();
        if (task.status === 'assigned') return void board.unassign(task);
        if (task.status === 'in_progress') return board.ask('unassign', task.task_id);
        return board.say(t('board.key.unassign.not', { task: nameOf(task) }), true);
      case 'x':
        if (!task || task.status === 'completed' || !board.mayChange) return;
        done();
        return board.mark(task.task_id);
      case 'c':
        if (!task) return;
        done();
        return void copy(board, task);
      case 'Delete': {
        const of = subject(board);
        if (of === undefined || !board.mayChange) return;
        done();
        return board.ask('delete', of);
      }
      case 'g':
      case 'z':
        done();
        tab('map');
        return board.view(e.key.toLowerCase() === 'g' ? 'selection' : 'whole');
      case '?':
        done();
        board.help = true;
        return board.changed();
    }
  };
  addEventListener('keydown', down);
  return () => removeEventListener('keydown', down);
}

/** Puts the focus on a row, once it has been drawn. */
function focusRow(s: Selection): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const row = document.querySelector<HTMLElement>(`[data-row="${CSS.escape(s.kind + ' ' + s.id)}"]`);
      row?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: 'nearest' });
    }),
  );
}
