// The customer's link, on the clipboard.

import type { Board } from './board';
import { nameOf, type Task } from './model';

export async function copy(board: Board, task: Task): Promise<void> {
  const a = await board.api.call('GET', '/v1/task/trackingurl/' + encodeURIComponent(task.task_id));
  if (a.kind !== 'ok') return board.say(await board.excuse(a), true);
  const url = a.data.webUrl as string;
  try {
    await navigator.clipboard.writeText(url);
    board.say(board.t('board.done.copied', { task: nameOf(task) }));
  } catch {
    board.say(url); // over plain http, or not allowed: to be copied by hand
  }
}
