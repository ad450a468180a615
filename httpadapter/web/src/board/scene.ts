// What the map shows of the board: pure, so that it can be held to examples.

import type { LngLat } from '../shared/geo';
import type { Route, Selection } from './board';
import { isLate, place, stateOf, target, type DriverState, type Rules, type World } from './model';
import { hue } from './hue';

export interface ShownDriver {
  id: string;
  at: LngLat;
  state: DriverState;
  hue: number;
  open: number;
  name: string;
  dim: boolean;
  selected: boolean;
}

export interface ShownTask {
  id: string;
  at: LngLat;
  hue: number | null; // null: nobody has it
  late: boolean;
  under: boolean; // somebody is at it
  dim: boolean;
  selected: boolean;
}

/** A stop of the selected driver, a place of the selected task, or one that is looked for. */
export interface ShownStop {
  at: LngLat;
  text: string; // its number, or the letter of the place
  kind: 'pickup' | 'drop';
}

export interface Scene {
  drivers: ShownDriver[];
  tasks: ShownTask[];
  stops: ShownStop[];
  line: LngLat[];
  hue: number | null;
  centre: LngLat | null; // what is looked at: the ring is around it
}

export function scene(world: Pick<World, 'tasks' | 'ended' | 'drivers' | 'standsSince'>, selection: Selection | null, route: Route | null, now: number, rules: Rules, looked: LngLat | null = null): Scene {
  const chosen = selection?.kind === 'task' ? (world.tasks.get(selection.id) ?? world.ended.get(selection.id)) : undefined;
  const chosenDriver = selection?.kind === 'driver' ? selection.id : chosen?.driver_id || undefined;
  const s: Scene = { drivers: [], tasks: [], stops: [], line: [], hue: chosenDriver ? hue(chosenDriver) : null, centre: null };
  for (const d of world.drivers.values()) {
    const state = stateOf(d, world, now, rules);
    if (!d.lnglat || state === 'off') continue;
    s.drivers.push({ id: d.driver_id, at: d.lnglat, state, hue: hue(d.driver_id), open: d.open_tasks, name: d.name || d.driver_id, dim: selection !== null && d.driver_id !== chosenDriver, selected: selection?.kind === 'driver' && d.driver_id === selection.id });
  }
  const numbered = selection?.kind === 'driver';
  for (const t of world.tasks.values()) {
    const at = target(t)?.lnglat ?? place(t)?.lnglat;
    if (!at || t === chosen || (numbered && t.driver_id === chosenDriver)) continue;
    s.tasks.push({ id: t.task_id, at, hue: t.driver_id ? hue(t.driver_id) : null, late: isLate(t, now), under: t.status === 'in_progress', dim: selection !== null, selected: false });
  }
  if (numbered) {
    const d = world.drivers.get(selection.id);
    if (d?.lnglat) s.line.push(d.lnglat);
    for (const [i, stop] of (route?.stops ?? []).entries()) {
      const at = world.tasks.get(stop.task_id)?.[stop.leg]?.lnglat;
      if (!at) continue;
      s.stops.push({ at, text: String(i + 1), kind: stop.leg });
      s.line.push(at);
    }
  } else if (chosen) {
    for (const leg of ['pickup', 'drop'] as const) {
      const at = chosen[leg]?.lnglat;
      if (!at) continue;
      s.stops.push({ at, text: leg === 'pickup' ? '▲' : '▼', kind: leg });
      s.line.push(at);
    }
  }
  if (looked) s.stops.push({ at: looked, text: '●', kind: 'drop' });
  const chosenAt = chosen && (target(chosen)?.lnglat ?? place(chosen)?.lnglat);
  s.centre = looked ?? chosenAt ?? (numbered ? (world.drivers.get(selection.id)?.lnglat ?? null) : null);
  return s;
}
