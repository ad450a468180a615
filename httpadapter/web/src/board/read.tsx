// Reading what the stream does not tell of, until it is known.

import { useEffect, useRef, useState } from 'preact/hooks';
import { backoff, Pause } from '../shared/sse';
import type { Answer } from './api';
import type { Board } from './board';

/** What a try to read something came to: unread says nothing of whether it is there. */
export type Read<T> = { kind: 'read'; value: T } | { kind: 'none' } | { kind: 'unread' };

/** What an answer says of something that was asked for. */
export function readOf<T>(a: Answer, value: (data: any) => T): Read<T> {
  if (a.kind === 'ok') return { kind: 'read', value: value(a.data) };
  return a.kind === 'failed' && a.status === 404 ? { kind: 'none' } : { kind: 'unread' };
}

const longest = 15_000; // ms from one try to the next

/** Reads something, tells of each try, and tries again until one says what there is. */
export async function readOn<T>(read: () => Promise<Read<T>>, tell: (r: Read<T>) => void, signal: AbortSignal, pause: Pick<Pause, 'wait'> = new Pause()): Promise<void> {
  for (let tries = 0; ; tries++) {
    const r = await read();
    if (signal.aborted) return;
    tell(r);
    if (r.kind !== 'unread') return;
    await pause.wait(backoff(tries, longest), signal);
    if (signal.aborted) return;
  }
}

/**
 * A row: as the board knows it, else as it is read, else as it was known last. Null: there is none; undefined: it is being read for the first time; 'unread': that has failed
 * so far. It comes with a function that takes what was read elsewhere.
 */
export function useRow<T>(id: string, known: T | undefined, read: () => Promise<Read<T>>): [row: T | null | undefined | 'unread', set: (row: T) => void] {
  const [got, setGot] = useState<Read<T> | null>(null);
  const last = useRef<{ id: string; row: T } | null>(null);
  if (known !== undefined) last.current = { id, row: known };
  const unknown = known === undefined;
  useEffect(() => {
    if (!unknown) return;
    const stop = new AbortController();
    setGot(null);
    void readOn(read, setGot, stop.signal);
    return () => stop.abort();
  }, [id, unknown]);
  const set = (value: T) => setGot({ kind: 'read', value });
  if (known !== undefined) return [known, set];
  if (got?.kind === 'read') return [got.value, set];
  if (got?.kind === 'none') return [null, set];
  return [last.current?.id === id ? last.current.row : got ? 'unread' : undefined, set];
}

/** What stands in place of a row that cannot be shown. */
export function NoRow({ board, row, gone }: { board: Board; row: null | undefined | 'unread'; gone: string }) {
  if (row === 'unread')
    return (
      <p class="note warn" role="status">
        {board.t('board.read.again')}
      </p>
    );
  return <p class="calm">{board.t(row === null ? gone : 'board.loading')}</p>;
}
