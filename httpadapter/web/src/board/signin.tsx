// Before the board: who is there?

import { useState } from 'preact/hooks';
import type { Board } from './board';

export function SignIn({ board }: { board: Board }) {
  const { t, config } = board;
  const [key, setKey] = useState('');
  const [again, setAgain] = useState(false);
  const send = (e: Event) => {
    e.preventDefault();
    setAgain(key.trim() === '');
    if (key.trim() !== '') void board.signIn({ key: key.trim() });
  };
  const why = again ? 'board.signin.key.empty' : board.why;
  return (
    <main class="signin">
      <div class="signin-box">
        <p class="brand">
          {config.logo ? <img class="logo" src={config.logo} alt={config.name} /> : <span class="mark" aria-hidden="true" />}
          {!config.logo && (
            <span class="name" dir="auto">
              {config.name}
            </span>
          )}
        </p>
        <h1>{t('board.title')}</h1>
        {board.state === 'checking' ? (
          <p class="connecting" role="status">
            <span class="spinner" aria-hidden="true" /> {t('board.connecting')}
          </p>
        ) : board.state === 'offline' ? (
          <>
            <p class="note" role="alert">
              {t('board.signin.offline')}
            </p>
            <button type="button" class="do" onClick={() => void board.check()}>
              {t('board.again')}
            </button>
          </>
        ) : (
          <>
            {why && (
              <p class="note warn" role="alert" id="why">
                {t(why)}
              </p>
            )}
            {config.keys ? (
              <form onSubmit={send} noValidate>
                <label for="key">{t('board.signin.key')}</label>
                <input id="key" type="password" name="key" autocomplete="current-password" spellcheck={false} autocapitalize="off" autoFocus value={key} aria-invalid={why ? 'true' : undefined} aria-describedby={why ? 'why' : undefined} onInput={(e) => setKey(e.currentTarget.value)} />
                <button class="do">{t('board.signin.button')}</button>
                <p class="hint">{t('board.signin.hint')}</p>
              </form>
            ) : (
              <p class="hint">{t('board.signin.own')}</p>
            )}
          </>
        )}
      </div>
    </main>
  );
}
