// The way to a place, shown by the app of the driver's choice, which the phone remembers.

import { useState } from 'preact/hooks';
import type { App } from './app';
import { Dialog } from '../shared/dialog';
import { mapApps, navigationLink, platform } from './links';
import type { Place } from '../shared/place';

const here = () => platform(navigator.userAgent, navigator.maxTouchPoints);

const outside = (link: string) => (link.startsWith('http') ? '_blank' : undefined);

export function Navigate({ app, place }: { app: App; place: Place }) {
  const { t } = app;
  const [asks, setAsks] = useState(false);
  const link = navigationLink(place, app.maps ?? 'osm');
  if (!link) return null;
  if (app.maps) {
    return (
      <a class="button" href={link} target={outside(link)} rel="noopener">
        {t('driver.navigate')}
      </a>
    );
  }
  return (
    <>
      <button type="button" class="button" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => app.guard.take() && setAsks(true)}>
        {t('driver.navigate')}
      </button>
      {asks && (
        <Dialog title={t('driver.maps')} onClose={() => setAsks(false)}>
          <div class="choices">
            {mapApps(here()).map((name) => {
              const to = navigationLink(place, name)!;
              return (
                <a key={name} class="choice" href={to} target={outside(to)} rel="noopener" onClick={() => app.setMaps(name)}>
                  {t('driver.maps.' + name)}
                </a>
              );
            })}
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Where the choice is changed. */
export function MapChoice({ app }: { app: App }) {
  const { t } = app;
  return (
    <section class="card">
      <h2 id="maps">{t('driver.maps')}</h2>
      <div class="choices" role="radiogroup" aria-labelledby="maps">
        {mapApps(here()).map((name) => (
          <label key={name} class="choice">
            <input type="radio" name="maps" checked={app.maps === name} onChange={() => app.setMaps(name)} />
            {t('driver.maps.' + name)}
          </label>
        ))}
      </div>
    </section>
  );
}
