import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fill } from '../src/shared/config';
import { showNews } from '../src/shared/news';

const t = (key: string, values = {}) => fill({ 'driver.notice.many': '{n} news: {text}' }[key] ?? key, values);

test('a phone that is told five things shows one line', async () => {
  let shown: { title: string; data: any }[] = [];
  const registration = {
    getNotifications: async () => shown as unknown as Notification[],
    showNotification: async (title: string, o?: NotificationOptions) => {
      assert.equal(o?.tag, 'tracking');
      shown = [{ title, data: o?.data }]; // the tag makes it one
    },
  };
  const say = async (id: string, text: string) => {
    await showNews(registration, { id, text, body: '', url: '/' + id }, t);
    return shown[0]!.title;
  };
  assert.equal(await say('1', 'New task'), 'New task');
  assert.equal(await say('1', 'New task'), 'New task', 'the same once more');
  for (const id of ['2', '3', '4']) await say(id, 'Changed');
  assert.equal(await say('5', 'A note'), '5 news: A note');
  assert.equal(shown[0]!.data.url, '/5');
  shown = []; // closed
  assert.equal(await say('6', 'New task'), 'New task');
});
