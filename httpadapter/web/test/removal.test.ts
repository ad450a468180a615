import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task } from '../src/board/model';
import { contacts, deletable, undeletable } from '../src/board/removal';

const task = (more: Partial<Task>): Task => ({ task_id: 't', type: 2, status: 'created', created_at: '', version: 1, ...more });

test('a task may be deleted that has ended, or that nobody has and that waits for nobody', () => {
  assert.equal(deletable(task({})), true);
  assert.equal(deletable(task({ waiting: { since: '' } })), false);
  assert.equal(undeletable(task({ waiting: { since: '' } })), 'board.delete.not.waiting');
  for (const status of ['assigned', 'in_progress'] as const) {
    assert.equal(deletable(task({ status })), false);
    assert.equal(undeletable(task({ status })), 'board.delete.not.' + status);
  }
  assert.equal(deletable(task({ status: 'completed', outcome: 'failed' })), true);
});

test('a customer is a number, by its digits', () => {
  const both = (pickup: string, drop: string) => contacts(task({ pickup: { customer: { name: 'A', mobile: pickup } }, drop: { customer: { name: 'B', mobile: drop } } })).map((c) => c.name);
  assert.deepEqual(both('0151 123', '0151-123'), ['A']);
  assert.deepEqual(both('0151 123', '0151 124'), ['A', 'B']);
  assert.deepEqual(both('٠١٥١ ١٢٣', '0151-123'), ['A']);
  assert.deepEqual(both('', '12'), []);
});
