// The service worker of the driver app: the shell and its files come from the cache when there is no network, the API never does;
// a pushed notice is shown. Its files are known when it is built.

import { translator } from '../shared/config';
import { showNews, type Shown } from '../shared/news';

declare const self: ServiceWorkerGlobalScope;
declare const ASSETS: string[];
declare const VERSION: string;
declare const ICON: string;

const scope = new URL(self.registration.scope); // …/driver/
const cacheName = `tracking-driver-${scope.pathname}-${VERSION}`;
const patience = 4_000; // ms that a slow network gets before the kept shell is shown

self.addEventListener('install', (e) => {
  e.waitUntil(
    (async () => {
      const cache = await caches.open(cacheName);
      await cache.addAll(ASSETS.map((a) => new URL('assets/' + a, scope).href));
      await cache.add(new Request(scope.href, { cache: 'reload' }));
      await self.skipWaiting();
    })(),
  );
});

self.addEventListener('activate', (e) => {
  e.waitUntil(
    (async () => {
      const prefix = `tracking-driver-${scope.pathname}-`;
      for (const name of await caches.keys()) {
        if (name.startsWith(prefix) && name !== cacheName) await caches.delete(name);
      }
      await self.clients.claim();
    })(),
  );
});

self.addEventListener('fetch', (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== 'GET' || url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  if (e.request.mode === 'navigate') e.respondWith(shell(e.request));
  else if (url.pathname.startsWith(scope.pathname + 'assets/')) e.respondWith(file(e.request));
});

async function shell(request: Request): Promise<Response> {
  const cache = await caches.open(cacheName);
  const fresh = fetch(request).then(async (r) => {
    if (r.ok && !r.redirected) await cache.put(scope.href, r.clone());
    return r;
  });
  const kept = await cache.match(scope.href);
  if (!kept) return fresh;
  const slow = new Promise<Response>((resolve) => setTimeout(() => resolve(kept), patience));
  return Promise.race([fresh.then((r) => (r.status >= 500 ? kept : r)).catch(() => kept), slow]);
}

async function file(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  return kept ?? fetch(request);
}

interface Pushed {
  kind?: string; // of the notice
  task_id?: string;
  tag?: string;
  title?: string;
}

interface Shell {
  name: string;
  words: Record<string, string>;
}

/** The name and the words of the shell that was kept: a pushed notice names its kind only, and there may be no network. */
async function kept(): Promise<Shell | null> {
  try {
    const cached = await caches.match(scope.href);
    const block = /<script type="application\/json" id="config">(.*?)<\/script>/s.exec((await cached?.text()) ?? '');
    return block ? (JSON.parse(block[1]!) as Shell) : null;
  } catch {
    return null;
  }
}

async function show(p: Pushed): Promise<void> {
  const s = await kept();
  const news = s?.words['driver.notice.' + p.kind];
  const task = ['assigned', 'updated', 'noted', 'reopened'].includes(p.kind ?? '') && p.task_id ? '#task/' + encodeURIComponent(p.task_id) : '';
  const line = {
    id: p.tag ?? '',
    text: p.title || news || s?.name || '…',
    body: p.title || news ? (s?.name ?? '') : '',
    url: scope.href + task,
    icon: new URL('assets/' + ICON, scope).href,
  };
  await showNews(self.registration, line, translator(s?.words ?? {}));
}

self.addEventListener('push', (e) => {
  let p: Pushed = {};
  try {
    p = (e.data?.json() as Pushed | undefined) ?? {};
  } catch {
    // A push without a body still means: look.
  }
  e.waitUntil(show(p));
});

self.addEventListener('notificationclick', (e) => {
  e.notification.close();
  e.waitUntil(
    (async () => {
      const open = await self.clients.matchAll({ type: 'window' });
      const app = open.find((c) => c.url.startsWith(scope.href));
      const target = (e.notification.data as Shown | null)?.url ?? scope.href;
      if (!app) {
        await self.clients.openWindow(target);
        return;
      }
      await app.focus();
      if (target !== scope.href) app.postMessage({ open: new URL(target).hash });
    })(),
  );
});
