// What the events of a task tell.

export interface TaskEvent {
  id: string;
  type: string;
  time: string;
  recorded_at: string;
  actor: string;
  seq: number;
  data: Record<string, string>;
}

/** What an event tells beyond its type: the texts' keys, and what is put into them. */
export function detail(e: Pick<TaskEvent, 'type' | 'data'>): { key: string; of: string } | null {
  const d = e.data;
  switch (e.type) {
    case 'task.assigned':
      return d['driver_id'] ? { key: d['auto'] === 'true' ? 'board.detail.to.auto' : 'board.detail.to', of: d['driver_id'] } : null;
    case 'task.unassigned':
    case 'task.declined':
      return d['driver_id'] ? { key: 'board.detail.from', of: d['driver_id'] } : null;
    case 'task.reopened':
      return d['driver_id'] ? { key: 'board.detail.to', of: d['driver_id'] } : null;
    case 'task.completed':
      return d['outcome'] ? { key: 'board.outcome.' + d['outcome'], of: '' } : null;
    case 'task.updated':
      return d['fields'] ? { key: 'board.detail.fields', of: d['fields'] } : null;
    case 'task.arriving':
    case 'task.arrived':
      return d['leg'] ? { key: 'board.leg.' + d['leg'], of: '' } : null;
    case 'task.undone':
      return d['step'] ? { key: 'board.step.' + d['step'], of: '' } : null;
    case 'task.stuck':
      return d['step'] ? { key: 'board.stuck.step.' + d['step'], of: '' } : null;
    case 'task.late':
      return d['promised'] ? { key: 'board.detail.promised', of: d['promised'] } : null;
  }
  return null;
}
