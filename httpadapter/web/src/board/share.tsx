// A link to give away: to be copied, or scanned.

import { useState } from 'preact/hooks';
import { QR } from '../shared/qr';
import type { Board } from './board';

export function Share({ board, url, label }: { board: Board; url: string; label: string }) {
  const { t } = board;
  const [copied, setCopied] = useState(false);
  const [shown, setShown] = useState(false);
  return (
    <div class="share">
      <label class="share-url">
        <span class="sr">{label}</span>
        <input type="text" readOnly dir="ltr" value={url} onFocus={(e) => e.currentTarget.select()} />
      </label>
      <p class="buttons">
        {'clipboard' in navigator && (
          <button type="button" class="other" onClick={() => void navigator.clipboard.writeText(url).then(() => setCopied(true), () => {})}>
            {t(copied ? 'board.share.copied' : 'board.share.copy')}
          </button>
        )}
        <button type="button" class="other" aria-expanded={shown} onClick={() => setShown(!shown)}>
          {t('board.share.qr')}
        </button>
      </p>
      <span class="sr" role="status">
        {copied && t('board.share.copied')}
      </span>
      {shown && <QR text={url} label={t('board.share.qr.label', { what: label })} />}
    </div>
  );
}
