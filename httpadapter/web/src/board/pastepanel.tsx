// A spreadsheet pasted: what its columns are, what is wrong with which row, and what became of each.

import { useMemo, useRef, useState } from 'preact/hooks';
import type { Board } from './board';
import { kinds, type Kind } from './columns';
import { Check, Choice, useFocus } from './fields';
import { clockOf } from './new';
import { readPaste, type Draft } from './paste';
import { again, sendAll, tally, type Fate, type Known } from './send';

const rowsShown = 100; // of those with nothing wrong; the others are all shown
const largest = 5_000_000; // bytes of a file

/** What was sent, and what became of it. */
interface Sent {
  drafts: Draft[]; // those without a fault
  fates: Fate[];
  known: Known;
  busy: boolean;
}

export function PastePanel({ board }: { board: Board; of: string }) {
  const { t } = board;
  const [text, setText] = useState('');
  const [columns, setColumns] = useState<Kind[] | undefined>();
  const [auto, setAuto] = useState(false);
  const [unreadable, setUnreadable] = useState(false);
  const [sent, setSent] = useState<Sent | null>(null);
  const area = useFocus<HTMLTextAreaElement>();
  const clock = useRef(clockOf(board)); // of the paste: its keys do not change while it is looked at
  const paste = useMemo(() => readPaste(text, { ...clock.current, columns, autoAssign: auto }), [text, columns, auto]);
  const good = paste.drafts.filter((d) => d.problems.length === 0);
  const bad = paste.drafts.length - good.length;

  const take = (next: string) => {
    clock.current = clockOf(board);
    setText(next);
    setColumns(undefined);
    setSent(null);
    setUnreadable(false);
  };
  const takeFile = async (file: File | undefined) => {
    if (!file) return;
    const next = file.size <= largest ? await file.text() : '\0';
    setUnreadable(next.includes('\0')); // no text, but the file of a spreadsheet itself
    if (!next.includes('\0')) take(next);
  };
  const send = async () => {
    const began = board.now();
    const before = new Set([...board.world.tasks.keys(), ...board.world.ended.keys()]);
    // Made by an attempt of this paste before is made, whatever the stream has told meanwhile.
    const known: Known = sent?.known ?? ((task) => before.has(task.task_id) || Date.parse(task.created_at ?? '') < began - 60_000);
    const drafts = sent?.drafts ?? good;
    const fates: Fate[] = sent ? [...sent.fates] : drafts.map(() => ({ kind: 'waits' }));
    const open = fates.flatMap((f, i) => (again(f) ? [i] : []));
    const show = (busy: boolean) => setSent({ drafts, fates: [...fates], known, busy });
    show(true);
    await sendAll(
      open.map((i) => drafts[i]!.task),
      (body) => board.act({ about: [], path: '/v1/task/batch', body, quiet: true }),
      known,
      (at, fate) => void (fates[open[at]!] = fate),
    );
    show(false);
    board.say(summary(board, fates, bad), bad > 0 || !whole(fates));
  };

  return (
    <div class="form">
      <div class="field">
        <label for="paste">{t('board.paste.label')}</label>
        <textarea id="paste" rows={paste.drafts.length > 0 ? 3 : 8} spellcheck={false} ref={area} value={text} aria-describedby="paste-hint" onInput={(e) => take(e.currentTarget.value)} />
        <p class="hint" id="paste-hint">
          {t('board.paste.hint')}
        </p>
      </div>
      <label class="file">
        <span>{t('board.paste.file')}</span>
        <input type="file" accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain" onChange={(e) => void takeFile(e.currentTarget.files?.[0])} />
      </label>
      {unreadable && (
        <p class="note warn" role="alert">
          {t('board.paste.unreadable')}
        </p>
      )}
      {paste.drafts.length > 0 && (
        <>
          <p class="paste-sum" role="status">
            {sent ? summary(board, sent.fates, bad) : t(bad > 0 ? 'board.paste.sum.bad' : 'board.paste.sum', { n: paste.drafts.length, good: good.length, bad })}
          </p>
          {!sent && <Check label={t('board.new.auto')} value={auto} onChange={setAuto} />}
          <p class="buttons">
            {!sent && (
              <button type="button" class="do" disabled={good.length === 0} onClick={() => void send()}>
                {t('board.paste.send', { n: good.length })}
              </button>
            )}
            {sent && !sent.busy && sent.fates.some(again) && (
              <button type="button" class="do" onClick={() => void send()}>
                {t('board.paste.again', { n: sent.fates.filter(again).length })}
              </button>
            )}
            {sent && !sent.busy && (
              <button type="button" class="other" onClick={() => (take(''), area.current?.focus())}>
                {t('board.paste.more')}
              </button>
            )}
          </p>
          <Preview board={board} paste={paste} sent={sent} onColumns={setColumns} />
        </>
      )}
      {text.trim() !== '' && paste.drafts.length === 0 && <p class="note warn">{t('board.paste.empty')}</p>}
    </div>
  );
}

/** Whether all that was sent is made. */
const whole = (fates: readonly Fate[]): boolean => fates.every((f) => f.kind === 'made' || f.kind === 'there');

/** What became of all: each kind with its number, those too that could not be sent, and never "done" while there is something else. */
function summary(board: Board, fates: readonly Fate[], left: number): string {
  const n = { ...tally(fates), left };
  return (['sent', 'made', 'there', 'refused', 'unknown', 'waits', 'left'] as const)
    .filter((kind) => n[kind] > 0)
    .map((kind) => board.t('board.paste.n.' + kind, { n: n[kind] }))
    .join(' · ');
}

interface PreviewProps {
  board: Board;
  paste: ReturnType<typeof readPaste>;
  sent: Sent | null;
  onColumns: (columns: Kind[]) => void;
}

function Preview({ board, paste, sent, onColumns }: PreviewProps) {
  const { t } = board;
  const { table, drafts } = paste;
  const fateOf = (d: Draft): Fate | null => {
    const i = sent ? sent.drafts.indexOf(d) : -1;
    return i < 0 ? null : sent!.fates[i]!;
  };
  const trouble = (d: Draft) => {
    const f = fateOf(d);
    return d.problems.length > 0 || (f !== null && f.kind !== 'made' && f.kind !== 'there' && f.kind !== 'sent');
  };
  let shown = 0;
  const list = drafts.filter((d) => trouble(d) || shown++ < rowsShown);
  const rename = (at: number, kind: Kind) => onColumns(table.columns.map((c, i) => (i === at ? kind : c === kind ? '' : c)));
  return (
    <>
      <div class="table-box" role="region" aria-label={t('board.paste.preview')} tabIndex={0}>
        <table class="preview">
          <thead>
            <tr>
              <th scope="col">{t('board.paste.row')}</th>
              <th scope="col">{t('board.paste.state')}</th>
              {table.columns.map((kind, i) => (
                <th key={i} scope="col">
                  {sent ? (
                    t('board.column.' + (kind || 'none'))
                  ) : (
                    <Choice
                      bare
                      label={t('board.paste.column', { n: i + 1 })}
                      value={kind}
                      onChange={(v) => rename(i, v as Kind)}
                      options={kinds.map((k) => [k, t('board.column.' + (k || 'none'))] as const)}
                    />
                  )}
                  {table.header?.cells[i] && (
                    <span class="as-written" dir="auto">
                      {table.header.cells[i]}
                    </span>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {list.map((d) => {
              const fate = fateOf(d);
              return (
                <tr key={d.line} class={d.problems.length > 0 || fate?.kind === 'refused' ? 'bad' : (fate?.kind ?? '')}>
                  <th scope="row">{d.line}</th>
                  <td class="fate">{d.problems.length > 0 ? d.problems.map((p) => t('board.fault.' + p.fault)).join(' ') : fate ? fateText(board, fate) : t('board.paste.ready')}</td>
                  {table.columns.map((kind, i) => (
                    <td key={i} class={d.problems.some((p) => p.kind !== '' && p.kind === kind) ? 'wrong' : kind === '' ? 'unused' : undefined} dir="auto">
                      {d.cells[i]}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {list.length < drafts.length && <p class="hint">{t('board.paste.hidden', { n: drafts.length - list.length })}</p>}
    </>
  );
}

function fateText(board: Board, fate: Fate) {
  const { t } = board;
  if (fate.kind === 'refused') return fate.conflict ? t('board.fate.conflict') : t('board.fate.refused', { message: fate.message });
  const words = t('board.fate.' + fate.kind);
  return fate.kind === 'made' || fate.kind === 'there' ? <a href={'#task/' + encodeURIComponent(fate.id)}>{words}</a> : words;
}
