// The frame: signing in, the head, the three columns, and what lies over them.

import { useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { Dialog } from '../shared/dialog';
import type { Board } from './board';
import { DriversColumn } from './drivers';
import { keysOf, listen } from './keys';
import { MapColumn } from './mapcolumn';
import { NeedsColumn } from './needscolumn';
import { panelOf, panels } from './panels';
import { Dragged, Marked } from './several';
import { SignIn } from './signin';

/** Draws anew whenever the board has changed. */
export function useBoard(board: Board): void {
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  useLayoutEffect(() => board.subscribe(() => redraw()), [board]); // before anything can change what was drawn
}

export function Root({ board }: { board: Board }) {
  useBoard(board);
  if (board.state !== 'in') return <SignIn board={board} />;
  return <Desk board={board} />;
}

const tabs = ['needs', 'map', 'drivers'] as const;
export type Tab = (typeof tabs)[number];

function Desk({ board }: { board: Board }) {
  const { t } = board;
  const [tab, setTab] = useState<Tab>('needs');
  useLayoutEffect(() => listen(board, setTab), [board]);
  const live = board.liveness;
  const counts: Record<Tab, number> = { needs: board.needs.length, map: 0, drivers: 0 };
  return (
    <div class={'desk tab-' + tab} data-live={live.kind}>
      <Head board={board} />
      {live.kind === 'stale' && (
        <p class="stale" role="alert">
          <strong>{live.since > 0 ? t('board.stale', { time: board.times.clock(live.since) }) : t('board.stale.never')}</strong> <span>{t('board.stale.text')}</span>
        </p>
      )}
      <main class="columns">
        <h1 class="sr">{t('board.title')}</h1>
        {live.kind === 'connecting' ? (
          <p class="connecting" role="status">
            <span class="spinner" aria-hidden="true" /> {t('board.connecting')}
          </p>
        ) : (
          <>
            <NeedsColumn board={board} />
            <MapColumn board={board} shown={tab === 'map'} />
            <DriversColumn board={board} />
          </>
        )}
        <PanelFrame board={board} />
      </main>
      <nav class="tabs" aria-label={t('board.tabs')}>
        {tabs.map((name) => (
          <button key={name} type="button" aria-pressed={tab === name} onClick={() => setTab(name)}>
            {t('board.tab.' + name)}
            {counts[name] > 0 && <span class="count">{counts[name]}</span>}
          </button>
        ))}
      </nav>
      <Marked board={board} />
      <Dragged board={board} />
      <Toasts board={board} />
      {board.help && <Keys board={board} />}
    </div>
  );
}

function Head({ board }: { board: Board }) {
  const { t, config } = board;
  const tasks = [...board.world.tasks.values()];
  const facts = [
    ['created', tasks.filter((x) => x.status === 'created').length],
    ['open', tasks.filter((x) => x.status !== 'created').length],
    ['duty', [...board.world.drivers.values()].filter((d) => d.availability).length],
  ] as const;
  return (
    <header class="head">
      <span class="brand">
        {config.logo ? <img class="logo" src={config.logo} alt={config.name} /> : <span class="mark" aria-hidden="true" />}
        {!config.logo && (
          <span class="name" dir="auto">
            {config.name}
          </span>
        )}
      </span>
      <ul class="facts">
        {facts.map(([name, n]) => (
          <li key={name}>
            <strong>{n}</strong> {t('board.count.' + name)}
          </li>
        ))}
      </ul>
      <span class="tools">
        {Object.entries(panels).map(
          ([name, p]) =>
            p.button &&
            panelOf(name, board.mayChange) && (
              <button key={name} type="button" class="tool" aria-keyshortcuts={p.key} onClick={() => board.open(name)}>
                {t(p.button)}
                {p.key && <kbd aria-hidden="true">{p.key.toUpperCase()}</kbd>}
              </button>
            ),
        )}
        {!board.mayChange && <span class="chip viewer">{t('board.view_only')}</span>}
        <button type="button" class={'tool icon bell' + (board.muted ? ' off' : '')} aria-pressed={board.muted} title={t('board.mute')} aria-label={t('board.mute')} onClick={() => board.mute()} />
        <button type="button" class="tool icon keys" title={t('board.keys')} aria-label={t('board.keys')} onClick={() => ((board.help = true), board.changed())}>
          ?
        </button>
        <button type="button" class="tool" onClick={() => void board.signOut()}>
          {t('board.signout')}
        </button>
      </span>
    </header>
  );
}

/** What is open over the board. The focus goes there, and back to where it was. */
function PanelFrame({ board }: { board: Board }) {
  const at = board.panel;
  const panel = at && panelOf(at.name, board.mayChange);
  const heading = useRef<HTMLHeadingElement>(null);
  const before = useRef<Element | null>(null);
  const key = panel ? at!.name + '/' + at!.of : '';
  useLayoutEffect(() => {
    if (key === '') return;
    before.current ??= document.activeElement;
    heading.current!.focus();
    return () => {
      if (board.panel) return; // another one has opened
      const back = before.current;
      before.current = null;
      if (back instanceof HTMLElement && back.isConnected) back.focus();
    };
  }, [key]);
  if (!panel || !at) return null;
  const { View } = panel;
  return (
    <aside class={'panel panel-' + at.name} aria-label={board.t(panel.title)}>
      <div class="panel-head">
        <h2 ref={heading} tabIndex={-1}>
          {board.t(panel.title)}
        </h2>
        <button type="button" class="close" aria-label={board.t('board.close')} title={board.t('board.close')} onClick={() => board.close()}>
          ×
        </button>
      </div>
      <div class="panel-body">
        <View key={key} board={board} of={at.of} />
      </div>
    </aside>
  );
}

function Toasts({ board }: { board: Board }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {board.toasts.map((x) => (
        <p key={x.id} class={'toast' + (x.problem ? ' problem' : '')}>
          <span dir="auto">{x.text}</span>
          <button type="button" aria-label={board.t('board.dismiss')} onClick={() => board.unsay(x.id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}

function Keys({ board }: { board: Board }) {
  return (
    <Dialog title={board.t('board.keys')} onClose={() => ((board.help = false), board.changed())}>
      <dl class="keylist">
        {keysOf(board.mayChange).map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{board.config.words['board.keyname.' + key] ?? key}</kbd>
            </dt>
            <dd>{board.t(does)}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button class="do">{board.t('board.close')}</button>
      </form>
    </Dialog>
  );
}
