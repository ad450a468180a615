// Why a task is not done: the reasons that the server knows, in the words of the page, and a word of the driver's own.

import { useState } from 'preact/hooks';
import type { App, Mark } from './app';
import { Dialog } from '../shared/dialog';
import type { ShownTask } from './model';
import { Photos, upTo, useDraft } from './proof';

/** The usual reasons, which are known before the server has told. */
export const usual = ['not_home', 'refused', 'wrong_address', 'damaged', 'closed', 'too_late', 'other'];

const atTheDoor = ['not_home', 'refused', 'damaged']; // no reasons before the start

/**
 * The reasons to choose from, with their words. A usual one without words was left out by whoever
 * runs the page; one of the application's own without words is shown as it is. The last is "other".
 */
export function reasons(codes: readonly string[], words: Record<string, string>): { code: string; text: string }[] {
  const last = (code: string) => (code === 'other' ? 1 : 0);
  return codes
    .filter((code) => words[code] || !usual.includes(code))
    .map((code) => ({ code, text: words[code] || code.replaceAll('_', ' ') }))
    .sort((a, b) => last(a.code) - last(b.code));
}

function Choices({ list, label, value, onChange }: { list: { code: string; text: string }[]; label: string; value: string; onChange: (code: string) => void }) {
  return (
    <div class="choices" role="radiogroup" aria-label={label}>
      {list.map(({ code, text }) => (
        <label key={code} class="choice">
          <input type="radio" name="reason" value={code} checked={value === code} onChange={() => onChange(code)} />
          <span dir="auto">{text}</span>
        </label>
      ))}
    </div>
  );
}

export function FailDialog({ app, task, onClose }: { app: App; task: ShownTask; onClose: () => void }) {
  const { t } = app;
  const draft = useDraft(app, task.task_id);
  const [code, setCode] = useState('');
  const [text, setText] = useState('');
  const list = reasons(app.reasons, app.config.reasons);
  const words = upTo(200, text);
  const ready = code !== '' || (list.length === 0 && words !== '');
  const send = () => {
    if (!ready || app.guard.closed || draft.busy) return; // the tap that opened the question is no answer to it
    const side = app.side === 'left' ? 'right' : 'left'; // where it was asked for
    const mark: Mark = { of: task.task_id, side, words: t('driver.step.failed') };
    void app.commit({ type: 'complete', task_id: task.task_id, outcome: 'failed', reason_code: code || undefined, reason: words || undefined }, mark);
  };
  return (
    <Dialog title={t('driver.fail.title')} sheet onClose={onClose}>
      <Choices list={list} label={t('driver.fail.title')} value={code} onChange={setCode} />
      <label class="field">
        <span class="label">{t('driver.fail.words')}</span>
        <textarea rows={2} maxLength={200} dir="auto" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <Photos app={app} task={task} draft={draft} asked={false} />
      <div class="dialog-actions">
        <p class="problem" role="alert">
          {draft.problem !== '' ? t(draft.problem) : ''}
        </p>
        <button type="button" class="button" onClick={onClose}>
          {t('driver.back')}
        </button>
        <button type="button" class="primary bad" disabled={!ready} aria-disabled={app.guard.closed || draft.busy ? 'true' : undefined} onClick={send}>
          {t('driver.fail.send')}
        </button>
      </div>
    </Dialog>
  );
}

export function DeclineDialog({ app, task, onClose }: { app: App; task: ShownTask; onClose: () => void }) {
  const { t } = app;
  const [code, setCode] = useState('');
  const [text, setText] = useState('');
  const list = reasons(app.reasons.filter((c) => !atTheDoor.includes(c)), app.config.reasons);
  const send = () => {
    if (app.guard.closed) return; // the tap that opened the question is no answer to it
    void app.commit({ type: 'decline', task_id: task.task_id, reason_code: code || undefined, reason: upTo(200, text) || undefined });
    location.hash = '';
  };
  return (
    <Dialog title={t('driver.decline.title')} sheet onClose={onClose}>
      <Choices list={list} label={t('driver.decline.reason')} value={code} onChange={setCode} />
      <label class="field">
        <span class="label">{t('driver.fail.words')}</span>
        <textarea rows={2} maxLength={200} dir="auto" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose}>
          {t('driver.cancel')}
        </button>
        <button type="button" class="primary bad" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={send}>
          {t('driver.decline.send')}
        </button>
      </div>
    </Dialog>
  );
}
