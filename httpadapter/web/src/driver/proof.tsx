// The sheet in which a driver gives what shows that a task is done: photo, signature, name, PIN, note.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { App, Mark } from './app';
import { Dialog } from '../shared/dialog';
import { lacking, refusalOf, takesFile } from './evidence';
import type { FileKind, ProofKind, Shown, ShownTask } from './model';
import { DeclineDialog, FailDialog } from './fail';
import { photo } from './picture';
import { Pad } from './signature';
import type { Picture, Written } from './store';

/** What the app asks the driver, if it does. */
export function Asked({ app, shown }: { app: App; shown: Shown }) {
  const { asked } = app;
  const task = asked && shown.tasks.find((x) => x.task_id === asked.task);
  // What is asked may be answered by then, as when the dispatcher has ended the task.
  const underWay = task?.status === 'in_progress';
  const open = { decline: task?.status === 'assigned', fail: underWay, proof: underWay || (task && takesFile(task, 0)) };
  const gone = asked !== null && !open[asked.what];
  useEffect(() => {
    if (gone) app.asked = null;
  }, [gone]);
  if (!task || gone) return null;
  const props = { key: asked.task + asked.what, app, task, onClose: () => app.answered() };
  if (asked.what === 'fail') return <FailDialog {...props} />;
  if (asked.what === 'decline') return <DeclineDialog {...props} />;
  return <ProofSheet {...props} mark={asked.mark} />;
}

/** Characters as the server counts them. */
export const upTo = (n: number, text: string) => [...text.trim()].slice(0, n).join('');

/** The kinds of proof in a sentence. */
function listed(app: App, kinds: readonly ProofKind[]): string {
  const words = kinds.map((k) => app.t('driver.proof.kind.' + k));
  return new Intl.ListFormat(app.config.lang, { type: 'conjunction' }).format(words);
}

/** The pictures of a task that are kept on the phone and not given yet. */
export interface Draft {
  pictures: Picture[];
  busy: boolean;
  problem: string; // a key of the texts
  take(kind: FileKind, file: Blob): Promise<void>;
  drop(id: number): Promise<void>;
}

export function useDraft(app: App, task: string): Draft {
  const driver = app.session!.driver.driver_id;
  const [pictures, setPictures] = useState<Picture[]>([]);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const load = async () => setPictures(await app.store.pictures(driver, task));
  useEffect(() => void load(), [task]);
  return {
    pictures,
    busy,
    problem,
    async take(kind, file) {
      setBusy(true);
      setProblem('');
      let failed = 'driver.proof.unreadable';
      try {
        const small = kind === 'photo' ? await photo(file) : file;
        const data = new Uint8Array(await small.arrayBuffer());
        failed = 'driver.full';
        await app.store.keepPicture({ driver, task_id: task, kind, type: small.type, data });
        await load();
      } catch {
        setProblem(failed);
      }
      setBusy(false);
    },
    async drop(id) {
      await app.store.dropPicture(id);
      await load();
    },
  };
}

function ProofSheet({ app, task, mark, onClose }: { app: App; task: ShownTask; mark?: Mark; onClose: () => void }) {
  const { t } = app;
  const draft = useDraft(app, task.task_id);
  const [written, setWritten] = useState<Required<Written>>({ received_by: '', note: '' });
  const [pin, setPin] = useState('');
  const [told, setTold] = useState<ProofKind[]>([]);
  useEffect(() => {
    void app.store.written(task.task_id).then((w) =>
      setWritten((now) => ({ received_by: now.received_by || (w.received_by ?? ''), note: now.note || (w.note ?? '') })),
    );
  }, []);
  const asks = (kind: ProofKind) => task.proof?.includes(kind) ?? false;
  const files = draft.pictures.map((p) => p.kind);
  const over = task.status === 'completed'; // only pictures can still be given
  const lacks = over ? [] : lacking(task, { ...written, files, pin });
  const refused = app.refused.filter((r) => r.action.type === 'complete' && r.action.task_id === task.task_id).at(-1);
  const why = refused && refusalOf(refused);
  const has = (kind: FileKind) => task.proofs?.filter((p) => p.kind === kind).length ?? 0;

  // Kept at once, for the app may be gone at any moment.
  const write = (w: Written) => {
    setWritten({ ...written, ...w });
    void app.store.write(task.task_id, { ...written, ...w }).catch(() => {});
  };
  const send = async () => {
    if (app.guard.closed || draft.busy) return;
    if (over) {
      await app.givePictures(task.task_id);
      return;
    }
    setTold(lacks);
    if (lacks.length > 0) {
      document.querySelector<HTMLElement>(`.sheet [data-kind=${lacks[0]}] :is(input, canvas, button)`)?.focus();
      return;
    }
    const received_by = upTo(200, written.received_by) || undefined;
    const note = upTo(1000, written.note) || undefined;
    await app.commit({ type: 'complete', task_id: task.task_id, outcome: 'succeeded', received_by, note, pin: asks('pin') ? pin : undefined }, mark);
  };

  return (
    <Dialog title={over ? t('driver.proof.later') : titleOf(app, task)} sheet onClose={onClose}>
      {task.order_id && (
        <p class="sub">
          <bdi>{t('driver.order', { id: task.order_id })}</bdi>
        </p>
      )}
      {why && (
        <p class="note warn" role="alert">
          {t('driver.refused.' + why)}
        </p>
      )}
      <Photos app={app} task={task} draft={draft} asked={asks('photo')} />
      <Signature app={app} task={task} draft={draft} asked={asks('signature')} given={has('signature') > 0} />
      {!over && (
        <>
          <label class="field" data-kind="name">
            <span class="label">
              {t('driver.proof.name' + (task.type === 1 ? '.1' : ''))}
              <Needed app={app} needed={asks('name')} />
            </span>
            <input
              type="text"
              maxLength={200}
              autocomplete="off"
              autocapitalize="words"
              dir="auto"
              value={written.received_by}
              aria-invalid={told.includes('name') && lacks.includes('name')}
              onInput={(e) => write({ received_by: e.currentTarget.value })}
            />
          </label>
          {asks('pin') && (
            <label class="field" data-kind="pin">
              <span class="label">
                {t('driver.proof.pin')}
                <Needed app={app} needed />
              </span>
              <input
                type="text"
                class="digits"
                inputMode="numeric"
                pattern="[0-9]*"
                maxLength={4}
                autocomplete="off"
                value={pin}
                aria-invalid={told.includes('pin') && lacks.includes('pin')}
                onInput={(e) => setPin((e.currentTarget.value = e.currentTarget.value.replace(/\D/g, '')))}
              />
              <span class="sub">{t(app.online ? 'driver.proof.pin.hint' : 'driver.proof.pin.offline')}</span>
            </label>
          )}
          <label class="field">
            <span class="label">
              {t('driver.proof.note')}
              <Needed app={app} needed={false} />
            </span>
            <textarea rows={2} maxLength={1000} dir="auto" value={written.note} onInput={(e) => write({ note: e.currentTarget.value })} />
            <span class="sub">{t('driver.proof.note.hint')}</span>
          </label>
        </>
      )}
      <div class="dialog-actions">
        <p class="problem" role="alert">
          {draft.problem !== '' ? t(draft.problem) : told.length > 0 && lacks.length > 0 ? t('driver.proof.lacks', { list: listed(app, lacks) }) : ''}
        </p>
        <button type="button" class="button" onClick={onClose}>
          {t('driver.back')}
        </button>
        <button type="button" class="primary good" aria-disabled={app.guard.closed || draft.busy || (over && files.length === 0) ? 'true' : undefined} onClick={() => void send()}>
          {t(over ? 'driver.proof.send' : 'driver.complete.' + task.type)}
        </button>
      </div>
    </Dialog>
  );
}

const titleOf = (app: App, task: ShownTask) => app.t('driver.proof.title' + (task.type === 1 ? '.1' : ''));

function Needed({ app, needed }: { app: App; needed: boolean }) {
  return <span class={'needed' + (needed ? ' yes' : '')}>{app.t(needed ? 'driver.proof.needed' : 'driver.proof.free')}</span>;
}

/** The photos that were taken, and another one. */
export function Photos({ app, task, draft, asked }: { app: App; task: ShownTask; draft: Draft; asked: boolean }) {
  const { t } = app;
  const taken = draft.pictures.filter((p) => p.kind === 'photo');
  const given = task.proofs?.filter((p) => p.kind === 'photo').length ?? 0;
  return (
    <div class="field" role="group" aria-label={t('driver.proof.photo')} data-kind="photo">
      <span class="label">
        {t('driver.proof.photo')}
        <Needed app={app} needed={asked} />
      </span>
      {given > 0 && <span class="sub given">{t(given === 1 ? 'driver.proof.given.one' : 'driver.proof.given.other', { n: given })}</span>}
      {taken.length > 0 && (
        <ul class="thumbs">
          {taken.map((p, i) => (
            <li key={p.id}>
              <Thumb picture={p} label={t('driver.proof.photo.n', { n: i + 1 })} />
              <button type="button" class="close" aria-label={t('driver.proof.photo.drop', { n: i + 1 })} onClick={() => void draft.drop(p.id)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {takesFile(task, draft.pictures.length) && (
        <label class={'button take' + (draft.busy ? ' busy' : '')}>
          <input
            type="file"
            accept="image/*"
            capture="environment"
            disabled={draft.busy}
            onChange={(e) => {
              const file = e.currentTarget.files?.[0];
              e.currentTarget.value = ''; // the same one can be chosen again
              if (file) void draft.take('photo', file);
            }}
          />
          {t(draft.busy ? 'driver.proof.busy' : taken.length + given > 0 ? 'driver.proof.photo.more' : 'driver.proof.photo.take')}
        </label>
      )}
    </div>
  );
}

/** A kept picture, small. Not by an address: the page's policy shows nothing but our own files. */
function Thumb({ picture, label }: { picture: Picture; label: string }) {
  const ref = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    let gone = false;
    createImageBitmap(new Blob([picture.data], { type: picture.type }))
      .then((bitmap) => {
        const canvas = ref.current;
        if (!gone && canvas) {
          const height = 192;
          Object.assign(canvas, { height, width: Math.round((bitmap.width * height) / bitmap.height) });
          canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, height);
        }
        bitmap.close();
      })
      .catch(() => {});
    return () => void (gone = true);
  }, [picture.id]);
  return <canvas ref={ref} class={'thumb ' + picture.kind} role="img" aria-label={label} />;
}

function Signature({ app, task, draft, asked, given }: { app: App; task: ShownTask; draft: Draft; asked: boolean; given: boolean }) {
  const { t } = app;
  const kept = draft.pictures.find((p) => p.kind === 'signature');
  const [wanted, setWanted] = useState(false); // the pad stays as long as it is signed on
  const loaded = useRef(false);
  useEffect(() => {
    if (asked && !given && !loaded.current && !kept) setWanted(true);
    loaded.current = true;
  }, [asked, given]);
  const drop = () => void (kept && draft.drop(kept.id));
  if (!takesFile(task, draft.pictures.length) && !kept && !wanted) return null;
  return (
    <div class="field" role="group" aria-label={t('driver.proof.signature')} data-kind="signature">
      <span class="label">
        {t('driver.proof.signature')}
        <Needed app={app} needed={asked} />
      </span>
      {given && <span class="sub given">{t('driver.proof.given.signature')}</span>}
      {wanted ? (
        <Pad app={app} onSigned={(s) => (s ? void draft.take('signature', s) : drop())} />
      ) : kept ? (
        <ul class="thumbs">
          <li>
            <Thumb picture={kept} label={t('driver.proof.signature')} />
            <button type="button" class="close" aria-label={t('driver.proof.signature.drop')} onClick={drop}>
              ×
            </button>
          </li>
        </ul>
      ) : (
        <button type="button" class="button take" onClick={() => setWanted(true)}>
          {t('driver.proof.sign')}
        </button>
      )}
    </div>
  );
}

/** On a task's page: what it asks for and what was given, and where more can be given. */
export function ProofCard({ app, task }: { app: App; task: ShownTask }) {
  const { t } = app;
  const given = task.proofs?.length ?? 0;
  const asks = task.status === 'completed' ? [] : (task.proof ?? []);
  const open = takesFile(task, 0) && !task.held;
  if (asks.length === 0 && given === 0 && !open) return null;
  return (
    <section class="card proof-card">
      <h2 class="key">{titleOf(app, task)}</h2>
      {asks.length > 0 && <p>{t('driver.proof.asks', { list: listed(app, asks) })}</p>}
      {given > 0 && <p class="sub">{t(given === 1 ? 'driver.proof.files.one' : 'driver.proof.files.other', { n: given })}</p>}
      {open && (
        <div class="actions">
          <button type="button" class="button" aria-disabled={app.guard.closed ? 'true' : undefined} onClick={() => app.ask('proof', task.task_id)}>
            {t(task.status === 'completed' ? 'driver.proof.later' : 'driver.proof.add')}
          </button>
        </div>
      )}
    </section>
  );
}
