import { useEffect, useRef, useState } from 'preact/hooks';
import type { LiveMap } from '../shared/map';
import type { App } from './app';
import { nextPlace, openTasks } from './model';

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
          tiles: app.config.tiles,
          t,
          dark: matchMedia('(prefers-color-scheme: dark)').matches,
          reducedMotion: matchMedia('(prefers-reduced-motion: reduce)').matches,
          label: t('driver.tab.map'),
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
  const pins = openTasks(app.shown().tasks).flatMap((task) => {
    const next = nextPlace(task);
    return next?.place.lnglat ? [{ kind: next.key === 'pickup' ? 'from' : 'to', label: next.place.address || t('driver.place.' + next.key), at: next.place.lnglat }] : [];
  });
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
