import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changesOf, draftOf, emptyDraft, taskOf, type TaskDraft } from '../src/board/taskform';
import { detail } from '../src/board/events';
import type { Task } from '../src/board/model';
import type { Clock } from '../src/board/when';

const c: Clock = { now: Date.parse('2026-11-28T09:00:00Z'), zone: 'Europe/Berlin', monthFirst: false };
const draft = (d: Partial<TaskDraft>): TaskDraft => ({ ...emptyDraft, ...d });
const place = (address: string, point = '', name = '', mobile = '') => ({ address, point, name, mobile });

test('a task of what was written', () => {
  assert.deepEqual(taskOf(draft({ drop: place(' 12 Beach Road ', '', 'Anna', '+49 1'), order: '#1', when: '14-16 Uhr', notes: 'Ring' }), c, true), {
    task: {
      type: 2, drop: { address: '12 Beach Road', customer: { name: 'Anna', mobile: '+49 1' } }, order_id: '#1', notes: 'Ring', auto_assign: true,
      window: { from: '2026-11-28T13:00:00.000Z', to: '2026-11-28T15:00:00.000Z' },
    },
    errors: {},
  });
  assert.deepEqual(taskOf(draft({ pickup: place('Mill Lane'), drop: place('Road', '52.5, 13.4') }), c, false).task, { type: 3, pickup: { address: 'Mill Lane' }, drop: { lnglat: [13.4, 52.5], address: 'Road' } });
  assert.deepEqual(taskOf(draft({ pickup: place('52.5, 13.4') }), c, false).task, { type: 1, pickup: { lnglat: [13.4, 52.5] } }, 'an address that is a place in numbers');
});

test('what is wrong with it', () => {
  assert.deepEqual(taskOf(emptyDraft, c, false).errors, { address: 'board.error.place' });
  assert.deepEqual(taskOf(draft({ drop: place('', 'there'), when: 'soon' }), c, false).errors, { 'drop.point': 'board.error.point', when: 'board.error.when' });
  assert.deepEqual(taskOf(draft({ drop: place('x'), when: '2026-11-28 14:00 – 2026-11-27 13:00' }), c, false).errors, { when: 'board.error.before' });
});

const task: Task = {
  task_id: 't', type: 3, status: 'assigned', created_at: '', version: 3, order_id: '#1', notes: 'Ring',
  pickup: { address: 'Mill Lane 3', lnglat: [13.3, 52.4] }, drop: { address: 'Road 1', lnglat: [13.4, 52.5], customer: { name: 'Anna', mobile: '1' } },
  window: { from: '2026-11-28T13:00:00.000Z', to: '2026-11-28T15:00:00.000Z' },
};

test('only what has changed is sent', () => {
  const was = draftOf(task, 'by', c.zone);
  assert.equal(was.when, '2026-11-28 14:00 – 16:00');
  assert.deepEqual(changesOf(was, was, c), { update: {}, errors: {} });
  assert.deepEqual(changesOf(was, { ...was, notes: '', order: '#2' }, c).update, { notes: '', order_id: '#2' });
  assert.deepEqual(changesOf(was, { ...was, when: '' }, c).update, { window: {} });
  assert.deepEqual(changesOf(was, { ...was, drop: { ...was.drop, name: '' } }, c).update, { drop: { address: 'Road 1', lnglat: [13.4, 52.5], customer: { name: '', mobile: '1' } } });
  assert.deepEqual(changesOf(was, { ...was, drop: { ...was.drop, address: 'Road 9' } }, c).update, { drop: { address: 'Road 9', customer: { name: 'Anna', mobile: '1' } } }, 'the old point is not that of another address');
  assert.deepEqual(changesOf(was, { ...was, drop: { ...was.drop, address: 'Road 9', point: '52.6, 13.5' } }, c).update, { drop: { address: 'Road 9', lnglat: [13.5, 52.6], customer: { name: 'Anna', mobile: '1' } } });
  assert.deepEqual(changesOf(was, { ...was, drop: place('', '') }, c).errors, { address: 'board.error.place' });
});

test('what an event tells', () => {
  const of = (type: string, data: Record<string, string> = {}) => detail({ type, data });
  assert.deepEqual(of('task.assigned', { driver_id: 'd', auto: 'true' }), { key: 'board.detail.to.auto', of: 'd' });
  assert.deepEqual(of('task.assigned', { driver_id: 'd' }), { key: 'board.detail.to', of: 'd' });
  assert.deepEqual(of('task.completed', { outcome: 'failed' }), { key: 'board.outcome.failed', of: '' });
  assert.equal(of('task.completed'), null);
  assert.equal(of('task.created'), null);
});
