import { useEffect, useRef, useState } from 'preact/hooks';
import type { LiveMap } from '../shared/map';
import type { App } from './app';
import { placeText } from './next';
import { nextStop, stopsOf } from './route';

export function MapView({ app }: { app: App }) {
  const { t } = app;
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<LiveMap | null>(null);
  const [away, setAway] = useState(false);
  const [, loaded] = useState(false);

  useEffect(() => {
    let gone = false;
    void import('../shared/map').then(
      ({ LiveMap }) => {
        if (gone || !box.current) return;
        map.current = new LiveMap({
          element: box.current,
          map: app.config.map,
          tiles: app.config.tiles,
          lang: app.config.lang,
          t,
          dark: matchMedia('(prefers-color-scheme: dark)').matches,
          reducedMotion: matchMedia('(prefers-reduced-motion: reduce)').matches,
          label: t('driver.tab.map'),
          whole: true,
          onUserMove: () => setAway(true),
        });
        loaded(true);
      },
      () => {}, // offline before it was ever loaded
    );
    return () => {
      gone = true;
      map.current?.remove();
      map.current = null;
    };
  }, []);

  const me = app.positions.me;
  const shown = app.shown();
  const stops = stopsOf(shown.tasks, shown.route);
  const next = nextStop(stops);
  const pins = stops.flatMap((stop, i) => {
    const at = stop.place.lnglat;
    const pin = at && { kind: (stop.leg === 'pickup' ? 'from' : 'to') + (stop === next ? ' now' : ''), label: `${i + 1}: ${placeText(stop.place)}`, at, number: i + 1 };
    return pin ? [pin] : [];
  });
  pins.sort((a, b) => Number(b.kind.endsWith('now')) - Number(a.kind.endsWith('now'))); // the map shows the way to its first
  useEffect(() => {
    map.current?.setPins(pins);
    map.current?.setFix(me ? { at: me.lnglat, heading: me.heading, time: me.ms } : null, [], t('driver.map.me'), true);
  });

  return (
    <div class="map-view">
      <div class="map" ref={box} />
      {away && (
        <button type="button" class="recenter" onClick={() => { setAway(false); map.current?.recenter(); }}>
          {t('track.map.recenter')}
        </button>
      )}
    </div>
  );
}
