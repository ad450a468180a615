// Tracking while the phone is locked: what this app cannot do, and what helps.

import { useEffect, useState } from 'preact/hooks';
import { QR } from '../shared/qr';
import type { App, PhoneApp } from './app';
import type { Install } from './install';
import { platform, safeSetupLink } from './links';
import { MapChoice } from './navigate';
import { disablePush, enablePush, pushState, type PushState } from './push';

export function PhoneView({ app, install }: { app: App; install: Install }) {
  const { t } = app;
  const ios = platform(navigator.userAgent, navigator.maxTouchPoints) === 'ios';
  const [push, setPush] = useState<PushState | null>(null);
  const [confirm, setConfirm] = useState(false);
  useEffect(() => void app.loadPhone(), []);
  useEffect(() => void pushState(app, ios).then(setPush, () => setPush('none')), []);
  const s = app.session!;

  return (
    <>
      <section class="card honest">
        <h2>{t('driver.lock.title')}</h2>
        <p>{t('driver.lock.text')}</p>
        <p class="sub">{t(app.awake.possible ? 'driver.lock.wake' : isSecureContext ? 'driver.lock.nowake' : 'driver.lock.insecure')}</p>
      </section>

      <section>
        <h2 class="group">{t('driver.phone.title')}</h2>
        {app.phone === null ? <p class="note">{t('driver.phone.offline')}</p> : app.phone.map((p) => <PhoneAppCard key={p.name} app={app} phone={p} />)}
        {app.phone !== null && app.phone.length > 0 && <p class="note warn">{t('driver.phone.secret')}</p>}
      </section>

      {push !== null && (
        <section class="card">
          <h2>{t('driver.push.title')}</h2>
          {push === 'off' ? (
            <div class="actions">
              <button type="button" class="primary" onClick={() => void enablePush(app).then(() => pushState(app, ios)).then(setPush, () => setPush('none'))}>
                {t('driver.push.enable')}
              </button>
            </div>
          ) : (
            <p>{t('driver.push.' + push)}</p>
          )}
        </section>
      )}

      <MapChoice app={app} />

      {install.prompt && (
        <section class="card">
          <h2>{t('driver.install.title')}</h2>
          <p>{t('driver.install.text')}</p>
          <div class="actions">
            <button type="button" class="primary" onClick={() => void install.install()}>
              {t('driver.install.button')}
            </button>
          </div>
        </section>
      )}

      <section class="card">
        <h2>
          <bdi>{t('driver.account', { name: s.driver.name || s.driver.driver_id })}</bdi>
        </h2>
        {confirm && <p class="sub">{t('driver.signout.text')}</p>}
        <div class="actions">
          {confirm ? (
            <>
              <button type="button" class="button" onClick={() => setConfirm(false)}>
                {t('driver.back')}
              </button>
              <button type="button" class="primary bad" onClick={() => void disablePush(app).catch(() => {}).then(() => app.signOut())}>
                {t('driver.signout')}
              </button>
            </>
          ) : (
            <button type="button" class="button" onClick={() => setConfirm(true)}>
              {t('driver.signout')}
            </button>
          )}
        </div>
      </section>
    </>
  );
}

function PhoneAppCard({ app, phone }: { app: App; phone: PhoneApp }) {
  const { t } = app;
  const [copied, setCopied] = useState(false);
  const link = phone.link && safeSetupLink(phone.link) ? phone.link : null;
  return (
    <details class="card phone-app">
      <summary>{phone.name}</summary>
      {link && (
        <>
          <div class="actions">
            <a class="primary" href={link} rel="noopener">
              {t('driver.phone.open')}
            </a>
          </div>
          <figure>
            <QR text={link} label={t('driver.phone.qr')} />
            <figcaption>{t('driver.phone.qr')}</figcaption>
          </figure>
        </>
      )}
      {phone.template && (
        <>
          <p class="key">{t('driver.phone.template')}</p>
          <p class="template" dir="ltr">
            {phone.template}
          </p>
          {'clipboard' in navigator && (
            <div class="actions">
              <button type="button" class="button" onClick={() => void navigator.clipboard.writeText(phone.template!).then(() => setCopied(true), () => {})}>
                {t(copied ? 'driver.phone.copied' : 'driver.phone.copy')}
              </button>
            </div>
          )}
        </>
      )}
    </details>
  );
}
