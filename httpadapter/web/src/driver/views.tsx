// The app's frame: joining, the head with the duty switch, the tabs.

import { useLayoutEffect, useReducer, useState } from 'preact/hooks';
import type { App } from './app';
import type { Install } from './install';
import { JoinView } from './join';
import { MapView } from './mapview';
import { mendable, refusalOf } from './evidence';
import { onTrip, openTasks, type Refused, type Shown } from './model';
import { OrderView } from './order';
import { PhoneView } from './phone';
import { Asked } from './proof';
import { useRoom } from './room';
import { stopsOf } from './route';
import { StopView, TaskView, TasksView } from './tasks';

/** What is on the screen: a tab, or a task, a stop or the order of all over it. */
type Route = { tab: 'tasks' | 'map' | 'phone'; task?: string; stop?: string; order?: boolean };

function readRoute(hash: string): Route {
  const m = /^#(task|stop)\/(.+)$/.exec(hash);
  if (m) return { tab: 'tasks', [m[1]!]: decodeURIComponent(m[2]!) };
  if (hash === '#order') return { tab: 'tasks', order: true };
  return { tab: hash === '#map' ? 'map' : hash === '#phone' ? 'phone' : 'tasks' };
}

export function Root({ app, install }: { app: App; install: Install }) {
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  const [route, setRoute] = useState(() => readRoute(location.hash));
  // Not after the frame is shown: what changes until then would not be drawn.
  useLayoutEffect(
    () =>
      app.subscribe(() => {
        app.still.before();
        redraw();
      }),
    [app],
  );
  useLayoutEffect(() => app.still.after());
  useLayoutEffect(() => install.subscribe(() => redraw()), [install]);
  useLayoutEffect(() => {
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
  const open = openTasks(shown.tasks).filter((x) => !x.held);
  const mend = (r: Refused) => (mendable(r) && 'task_id' in r.action && shown.tasks.find((x) => x.status === 'in_progress' && x.task_id === (r.action as { task_id: string }).task_id)?.task_id) || null;
  const stop = route.stop === undefined ? undefined : stopsOf(shown.tasks, shown.route).find((x) => x.key === route.stop);
  const order = route.order && app.reorders;
  const task = route.task === undefined ? undefined : shown.tasks.find((x) => x.task_id === route.task);

  return (
    <div class="app">
      <Head app={app} shown={shown} />
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
        {app.refused.map((r) => (
          <div key={'refused-' + r.id} class="banner problem refused">
            <span dir="auto">{refusal(app, r)}</span>
            {mend(r) && (
              <button type="button" class="small" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => app.ask('proof', mend(r)!)}>
                {t('driver.refused.mend')}
              </button>
            )}
            <button type="button" class="close" aria-label={t('driver.notice.dismiss')} onClick={() => void app.dismissRefused(r.id)}>
              ×
            </button>
          </div>
        ))}
        <News app={app} />
      </div>
      <main class="main">
        {!task && !order && <h1 class="sr">{t('driver.tab.' + route.tab)}</h1>}
        {task ? (
          <TaskView app={app} task={task} />
        ) : order ? (
          <OrderView app={app} shown={shown} />
        ) : stop ? (
          <StopView app={app} shown={shown} stop={stop} />
        ) : route.tab === 'map' ? (
          <MapView app={app} />
        ) : route.tab === 'phone' ? (
          <PhoneView app={app} install={install} />
        ) : (
          <TasksView app={app} shown={shown} />
        )}
      </main>
      <Asked app={app} shown={shown} />
      {!task && !order && (
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

/** What is new, in one line however much it is. */
function News({ app }: { app: App }) {
  const { t, banners } = app;
  const [newest] = banners;
  if (!newest) return null;
  const text = banners.length === 1 ? newest.text : t('driver.notice.many', { n: banners.length, text: newest.text });
  const task = banners.every((b) => b.task === newest.task) ? newest.task : undefined;
  return (
    <div key={newest.id} class="banner news">
      {task ? <a href={'#task/' + encodeURIComponent(task)} onClick={() => app.dismiss()}>{text}</a> : <span dir="auto">{text}</span>}
      <button type="button" class="close" aria-label={t('driver.notice.dismiss')} onClick={() => app.dismiss()}>
        ×
      </button>
    </div>
  );
}

/** Which step of which order was refused, and why. */
function refusal(app: App, r: Refused): string {
  const { t } = app;
  const a = r.action;
  const step = t('driver.step.' + (a.type === 'complete' && a.outcome === 'failed' ? 'failed' : a.type === 'proof' ? a.kind : a.type));
  const time = app.times.shown(Date.parse(a.at), app.now());
  const why = refusalOf(r);
  const message = why ? t('driver.refused.' + why) : r.message;
  return t(a.about ? 'driver.refused.order' : 'driver.refused', { order: a.about ?? '', step, time, message });
}

/** A span of time in the reader's words, by the largest unit of which there are two. */
function span(lang: string, seconds: number): string {
  const units = [['day', 86_400], ['hour', 3_600], ['minute', 60]] as const;
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? (['second', 1] as const);
  return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(seconds / size);
}

/** What is said of duty and position. Only what is so: a position that nobody knows is not sent, and none is without a network. */
function dutyWords(app: App, shown: Shown): string {
  const { duty, rest } = shown;
  const trip = onTrip(shown);
  if (!duty && !trip) return rest ? app.t('driver.duty.rest.text', { time: app.times.shown(Date.parse(rest), app.now()) }) : app.t('driver.duty.off.text');
  const gps = app.positions.status;
  const sent = gps === 'wait' ? '.wait' : gps === 'ok' || gps === 'off' ? (app.online ? '' : '.kept') : '.unsent';
  return app.t((duty ? 'driver.duty.on.text' : 'driver.duty.trip.text') + sent);
}

function Head({ app, shown }: { app: App; shown: Shown }) {
  const { t } = app;
  const { duty, rest } = shown;
  const gps = app.positions.status;
  const me = app.positions.me;
  const { clock_skew: skew = 0, unread = 0 } = app.session!.driver;
  const mute = duty && app.sound === 'touch';
  const { ref, loose } = useRoom<HTMLElement>();
  useLayoutEffect(() => document.documentElement.style.setProperty('--head', ref.current!.offsetHeight + 'px'));
  return (
    <header ref={ref} class={'head' + (duty ? ' on' : '') + (loose ? ' loose' : '')}>
      <div class="duty">
        <span class="duty-words">
          <strong>{t(duty ? 'driver.duty.on' : rest ? 'driver.duty.rest' : 'driver.duty.off')}</strong>
          <span class="duty-text">{dutyWords(app, shown)}</span>
        </span>
        {duty && (
          <button type="button" class="rest" aria-label={t('driver.duty.rest.take')} aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => void app.setDuty(false, true)} onKeyDown={(e) => e.repeat && e.preventDefault()} />
        )}
        <button
          type="button"
          role="switch"
          class="switch"
          aria-checked={duty}
          aria-disabled={app.guard.closed ? 'true' : undefined}
          aria-label={t(duty ? 'driver.duty.leave' : rest ? 'driver.duty.rest.end' : 'driver.duty.go')}
          onClick={() => void app.setDuty(!duty)}
          onKeyDown={(e) => e.repeat && e.preventDefault()}
        >
          <span class="knob" />
        </button>
      </div>
      {(gps !== 'off' || !app.online || app.backlog || mute || skew !== 0 || unread > 0) && (
        <ul class="facts">
          {gps === 'ok' && me && <li class="fact good">{t('driver.gps.ok', { n: Math.max(1, Math.round(me.accuracy)) })}</li>}
          {gps === 'wait' && <li class="fact">{t('driver.gps.wait')}</li>}
          {(gps === 'denied' || gps === 'unavailable' || gps === 'insecure') && <li class="fact bad">{t('driver.gps.' + gps)}</li>}
          {!app.online && <li class="fact warn">{t('driver.offline')}</li>}
          {mute && <li class="fact warn sound">{t('driver.sound.touch')}</li>}
          {skew !== 0 && <li class="fact bad clock">{t(skew > 0 ? 'driver.clock.ahead' : 'driver.clock.behind', { time: span(app.config.lang, Math.abs(skew)) })}</li>}
          {unread > 0 && <li class="fact bad unread">{t('driver.unread', { n: unread })}</li>}
          {app.backlog && <li class="fact warn">{t(app.unsent === 1 ? 'driver.queue.one' : 'driver.queue.other', { n: app.unsent })}</li>}
        </ul>
      )}
    </header>
  );
}
