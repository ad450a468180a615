// The middle column: the map, which is loaded apart from the lists, and what its forms mean.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Board } from './board';
import { BoardMap } from './boardmap';
import { Glyph } from './drivers';
import { scene } from './scene';

export function MapColumn({ board, shown }: { board: Board; shown: boolean }) {
  const { t } = board;
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<BoardMap | null>(null);
  const selected = useRef('');
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    let gone = false;
    let stop = () => {};
    const make = async () => {
      const lib = await import('../shared/map').catch(() => null);
      if (gone) return;
      if (!lib) return setFailed(true);
      const m = new BoardMap({
        lib,
        element: box.current!,
        map: board.config.map,
        tiles: board.config.tiles,
        lang: board.config.lang,
        t,
        dark: dark.matches,
        reducedMotion: matchMedia('(prefers-reduced-motion: reduce)').matches,
        onSelect: (kind, id, at) => (board.picking ? board.picking(at) : board.select(kind, id)),
        onGround: (at) => (board.picking ? board.picking(at) : board.unselect()),
      });
      map.current = m;
      const draw = () => {
        const s = board.selection;
        m.show(() => scene(board.world, board.selection, board.selection?.kind === 'driver' ? board.route(board.selection.id) : null, board.now(), board.rules, board.looked));
        const key = (s ? s.kind + s.id : '') + (board.looked ?? '');
        if (key === selected.current) return;
        selected.current = key;
        if (key) setTimeout(() => !gone && m.selection(false), 300); // once it has been drawn
      };
      const unfollow = board.follow(draw);
      board.onView((what) => (what === 'whole' ? m.whole() : m.selection(true)));
      draw();
      stop = () => {
        unfollow();
        board.onView(null);
        m.remove();
        map.current = null;
      };
    };
    void make();
    const anew = () => {
      stop();
      void make();
    };
    dark.addEventListener('change', anew);
    return () => {
      gone = true;
      dark.removeEventListener('change', anew);
      stop();
    };
  }, [board]);
  return (
    <section class={'column map-column' + (board.picking ? ' picking' : '')} aria-label={t('board.tab.map')} data-shown={shown}>
      <div class="map-box" ref={box} />
      {failed && (
        <p class="map-failed">
          {t('board.map.failed')}
          <button type="button" class="other" onClick={() => location.reload()}>
            {t('board.map.reload')}
          </button>
        </p>
      )}
      <ul class="legend" aria-label={t('board.legend')}>
        {(['free', 'busy', 'standing', 'silent'] as const).map((state) => (
          <li key={state}>
            <Glyph state={state} /> {t('board.state.' + state)}
          </li>
        ))}
        <li>
          <span class="glyph nobody" aria-hidden="true" /> {t('board.unassigned')}
        </li>
      </ul>
    </section>
  );
}
