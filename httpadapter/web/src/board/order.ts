// The order of a driver's stops, and what dragging or a key makes of it.

export interface Stop {
  task_id: string;
  leg: 'pickup' | 'drop';
}

/** Moves a stop to another place, as far as pickups stay before their drops. */
export function moved<S extends Stop>(stops: readonly S[], from: number, to: number): S[] {
  const stop = stops[from]!;
  const by = to < from ? -1 : 1;
  let at = from;
  while (at !== to) {
    const other = stops[at + by];
    if (!other || (other.task_id === stop.task_id && (by < 0 ? other.leg === 'pickup' : stop.leg === 'pickup'))) break;
    at += by;
  }
  const rest = stops.filter((s) => s !== stop);
  return [...rest.slice(0, at), stop, ...rest.slice(at)];
}

export const sameOrder = (a: readonly Stop[], b: readonly Stop[]): boolean => a.length === b.length && a.every((s, i) => s.task_id === b[i]!.task_id && s.leg === b[i]!.leg);

/** The tasks whose stops are in one of two orders and not in the other. */
export function differing(a: readonly Stop[], b: readonly Stop[]): string[] {
  const lacks = (list: readonly Stop[], s: Stop) => !list.some((x) => x.task_id === s.task_id && x.leg === s.leg);
  return [...new Set([...a.filter((s) => lacks(b, s)), ...b.filter((s) => lacks(a, s))].map((s) => s.task_id))];
}

/** The stops of a driver once he has a task, which comes last where it is not among them yet. */
export function withTask(stops: readonly Stop[], task: { task_id: string; type: 1 | 2 | 3 }): Stop[] {
  if (stops.some((s) => s.task_id === task.task_id)) return [...stops];
  const legs: Stop['leg'][] = task.type === 1 ? ['pickup'] : task.type === 2 ? ['drop'] : ['pickup', 'drop'];
  return [...stops, ...legs.map((leg) => ({ task_id: task.task_id, leg }))];
}

/** Puts the stops of a task where it was dropped among the others: its drop by itself or with the pickup before it, or its pickup alone, whose drop stays last. */
export function placed<S extends Stop>(stops: readonly S[], task: string, leg: Stop['leg'], at: number): S[] {
  const own = stops.filter((s) => s.task_id === task);
  const rest = stops.filter((s) => s.task_id !== task);
  at = stops.slice(0, at).filter((s) => s.task_id !== task).length; // where he has it already, its own were counted
  const [here, last] = leg === 'pickup' && own.length === 2 ? [own.slice(0, 1), own.slice(1)] : [own, []];
  return [...rest.slice(0, at), ...here, ...rest.slice(at), ...last];
}
