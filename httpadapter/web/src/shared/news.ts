// What a locked phone shows of what is new: one line, however much it is. The app's page and its worker show the same.

import type { Translate } from './config';

export interface News {
  id: string; // of the notice, which may come twice
  text: string;
  body: string;
  url: string; // that a tap opens
  icon?: string;
}

/** What is kept with the line that is shown. */
export interface Shown {
  url: string;
  ids: string[];
}

const tag = 'tracking';

/** Shows news in the place of those that are shown, with how many there are. */
export async function showNews(registration: Pick<ServiceWorkerRegistration, 'getNotifications' | 'showNotification'>, n: News, t: Translate): Promise<void> {
  const before = (await registration.getNotifications({ tag })).flatMap((x) => [(x.data as Shown | null)?.ids ?? []].flat());
  const ids = [...before.filter((id) => id !== n.id), n.id];
  const data: Shown = { url: n.url, ids };
  const title = ids.length > 1 ? t('driver.notice.many', { n: ids.length, text: n.text }) : n.text;
  // renotify: it is heard again. TypeScript does not know it.
  const options = { tag, renotify: true, body: n.body, data, ...(n.icon ? { icon: n.icon } : {}) };
  await registration.showNotification(title, options);
}
