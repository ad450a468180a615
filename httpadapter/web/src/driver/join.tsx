import { useState } from 'preact/hooks';
import type { App, JoinError } from './app';
import { platform } from './links';

export function JoinView({ app }: { app: App }) {
  const { t } = app;
  const [byCode, setByCode] = useState(app.invite === null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<JoinError | null>(null);
  const standalone = matchMedia('(display-mode: standalone)').matches;
  const ios = platform(navigator.userAgent, navigator.maxTouchPoints) === 'ios';

  const join = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy) return;
    // Read from the form: an autofilled code may come without an input event.
    const digits = String(new FormData(e.target as HTMLFormElement).get('code') ?? '').replace(/\s/g, '');
    if (byCode && !/^\d{6}$/.test(digits)) {
      setError('code.form');
      return;
    }
    setBusy(true);
    setError(null);
    const err = await app.join(byCode ? digits : null);
    setBusy(false);
    setError(err);
  };

  const signedIn = app.session && app.invite !== null;

  const problem = error === 'offline' || error === 'failed' || error === 'invalid' || error === 'code.invalid' || error === 'code.form' ? t('driver.join.' + error) : error === 'limited' ? t('driver.join.limited', { minutes: app.limitedFor }) : '';

  return (
    <main class="join">
      <div class="join-card">
        {app.config.logo ? (
          <img class="join-logo" src={app.config.logo} alt={app.config.name} />
        ) : (
          <>
            <span class="app-mark" aria-hidden="true" />
            <p class="join-brand" dir="auto">
              {app.config.name}
            </p>
          </>
        )}
        <h1>{t('driver.join.title')}</h1>
        {!isSecureContext && <p class="note warn">{t('driver.insecure')}</p>}
        {app.revoked && (
          <p class="note warn" role="alert">
            {app.unsent > 0 ? t('driver.revoked', { n: app.unsent }) : t('driver.revoked.clean')}
          </p>
        )}
        {signedIn && app.session && (
          <p class="note">{t('driver.join.again', { name: app.session.driver.name || app.session.driver.driver_id })}</p>
        )}
        <form onSubmit={(e) => void join(e)} noValidate>
          <p class="lead">{t(byCode ? 'driver.join.code' : 'driver.join.link')}</p>
          {byCode && (
            <label class="code">
              <span class="sr">{t('driver.join.code.label')}</span>
              <input
                name="code"
                inputMode="numeric"
                autocomplete="one-time-code"
                pattern="[0-9]*"
                maxLength={7}
                placeholder="000000"
                dir="ltr"
                aria-invalid={error !== null}
                aria-describedby="join-problem"
              />
            </label>
          )}
          <p id="join-problem" class="problem" role="alert">
            {problem}
          </p>
          <button type="submit" class={signedIn && error === 'invalid' ? 'button' : 'primary'} disabled={busy}>
            {t(busy ? 'driver.join.busy' : 'driver.join.button')}
          </button>
        </form>
        {app.invite !== null && (
          <button type="button" class="quiet" onClick={() => { setByCode(!byCode); setError(null); }}>
            {t(byCode ? 'driver.back' : 'driver.join.use_code')}
          </button>
        )}
        {app.session && app.invite !== null && (
          <button type="button" class={error === 'invalid' ? 'primary' : 'button'} onClick={() => app.stay()}>
            {t('driver.join.stay')}
          </button>
        )}
        {ios && !standalone && <p class="note">{t('driver.join.ios')}</p>}
      </div>
    </main>
  );
}
