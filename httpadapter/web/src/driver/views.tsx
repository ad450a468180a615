// The app's frame: joining, the head with the duty switch, the tabs.

import { useEffect, useReducer, useState } from 'preact/hooks';
import type { App } from './app';
import type { Install } from './install';
import { JoinView } from './join';
import { onTrip, openTasks } from './model';
import { MapView } from './mapview';
import { PhoneView } from './phone';
import { TaskView, TasksView } from './tasks';

type Route = { tab: 'tasks' | 'map' | 'phone'; task?: string };

function readRoute(hash: string): Route {
  const m = /^#task\/(.+)$/.exec(hash);
  if (m) return { tab: 'tasks', task: decodeURIComponent(m[1]!) };
  return { tab: hash === '#map' ? 'map' : hash === '#phone' ? 'phone' : 'tasks' };
}

export function Root({ app, install }: { app: App; install: Install }) {
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => app.subscribe(() => redraw()), [app]);
  useEffect(() => install.subscribe(() => redraw()), [install]);
  useEffect(() => {
    const go = () => {
      const next = readRoute(location.hash);
      setRoute(next);
      if (next.task !== undefined) app.seen(next.task);
      scrollTo(0, 0);
    };
    addEventListener('hashchange', go);
    return () => removeEventListener('hashchange', go);
  }, []);

  if (!app.session || app.invite !== null) return <JoinView app={app} />;
  const { t } = app;
  const shown = app.shown();
  const open = openTasks(shown.tasks);
  const task = route.task === undefined ? undefined : shown.tasks.find((x) => x.task_id === route.task);

  return (
    <div class="app">
      <Head app={app} trip={onTrip(shown)} duty={shown.duty} />
      <div class="banners" role="status" aria-live="polite">
        {install.updated && (
          <div class="banner news">
            <span>{t('driver.update')}</span>
            <button type="button" class="small" onClick={() => location.reload()}>
              {t('driver.update.button')}
            </button>
          </div>
        )}
        {!isSecureContext && (
          <div class="banner problem">
            <span>{t('driver.insecure')}</span>
          </div>
        )}
        {app.banners.map((b) => (
          <div key={b.id} class={'banner ' + b.kind}>
            {b.task ? <a href={'#task/' + encodeURIComponent(b.task)} onClick={() => b.kind === 'news' && app.dismiss(b.id)}>{b.text}</a> : <span dir="auto">{b.text}</span>}
            <button type="button" class="close" aria-label={t('driver.notice.dismiss')} onClick={() => app.dismiss(b.id)}>
              ×
            </button>
          </div>
        ))}
      </div>
      <main class="main">
        {!task && <h1 class="sr">{t('driver.tab.' + route.tab)}</h1>}
        {task ? (
          <TaskView app={app} task={task} />
        ) : route.tab === 'map' ? (
          <MapView app={app} />
        ) : route.tab === 'phone' ? (
          <PhoneView app={app} install={install} />
        ) : (
          <TasksView app={app} shown={shown} />
        )}
      </main>
      {!task && (
        <nav class="tabs">
          {(['tasks', 'map', 'phone'] as const).map((tab) => (
            <a key={tab} href={'#' + (tab === 'tasks' ? '' : tab)} class={'tab tab-' + tab} aria-current={route.tab === tab ? 'page' : undefined}>
              <span class={'tab-icon icon-' + tab} aria-hidden="true" />
              {t('driver.tab.' + tab)}
              {tab === 'tasks' && open.length > 0 && <span class="count">{open.length}</span>}
            </a>
          ))}
        </nav>
      )}
    </div>
  );
}

function Head({ app, duty, trip }: { app: App; duty: boolean; trip: boolean }) {
  const { t } = app;
  const gps = app.positions.status;
  const me = app.positions.me;
  const words = duty ? t('driver.duty.on.text') : trip ? t('driver.duty.trip.text') : t('driver.duty.off.text');
  return (
    <header class={'head' + (duty ? ' on' : '')}>
      <div class="duty">
        <span class="duty-words">
          <strong>{t(duty ? 'driver.duty.on' : 'driver.duty.off')}</strong>
          <span class="duty-text">{words}</span>
        </span>
        <button
          type="button"
          role="switch"
          class="switch"
          aria-checked={duty}
          aria-label={t(duty ? 'driver.duty.leave' : 'driver.duty.go')}
          onClick={() => void app.setDuty(!duty)}
        >
          <span class="knob" />
        </button>
      </div>
      {(gps !== 'off' || !app.online || app.backlog) && (
        <ul class="facts">
          {gps === 'ok' && me && <li class="fact good">{t('driver.gps.ok', { n: Math.max(1, Math.round(me.accuracy)) })}</li>}
          {gps === 'wait' && <li class="fact">{t('driver.gps.wait')}</li>}
          {(gps === 'denied' || gps === 'unavailable' || gps === 'insecure') && <li class="fact bad">{t('driver.gps.' + gps)}</li>}
          {!app.online && <li class="fact warn">{t('driver.offline')}</li>}
          {app.backlog && <li class="fact warn">{t(app.unsent === 1 ? 'driver.queue.one' : 'driver.queue.other', { n: app.unsent })}</li>}
        </ul>
      )}
    </header>
  );
}
