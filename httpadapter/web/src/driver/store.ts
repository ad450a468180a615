// What the app keeps on the phone: the session, what it last heard, and what it has not sent yet.

import { openDB, type DBSchema, type IDBPCursorWithValue, type IDBPDatabase } from 'idb';
import { refusalOf, stepOf } from './evidence';
import { calm } from './guard';
import type { MapApp } from './links';
import type { Action, Driver, FileKind, Fix, Refused, UndoStep, World } from './model';

export interface Session {
  token: string;
  ingest_url: string;
  driver: Driver;
  invite?: string; // the link's, by which this phone joined: its driver may come by it again
}

/** What the application is told of a step that was refused: that it was, or that its driver has seen it. */
export interface Word {
  verb: 'stuck' | 'settle';
  task_id: string;
  body: { step: string; at?: string; why?: string };
}

/**
 * An entry of the outbox. Entries are sent in order of seq, and only in the name of the driver who
 * made them. An action is held until `hold` (ms by the phone's clock): it can be taken back so long.
 */
export type Entry = { seq?: number; driver: string } & ({ kind: 'fix'; fix: Fix } | { kind: 'action'; action: Action; hold?: number } | { kind: 'word'; word: Word });

/** What a driver has written of a task's end, and not sent yet. */
export interface Written {
  received_by?: string;
  note?: string;
}

/** A picture that is kept until it was sent. It waits in the outbox, or else for its driver's word. */
export interface Picture {
  id: number;
  driver: string;
  task_id: string;
  kind: FileKind;
  type: string; // its media type
  data: Uint8Array<ArrayBuffer>;
  queued: boolean;
}

/** What the driver's last tap did. */
export interface LastSteps {
  driver: string;
  at: number;
  steps: { task_id: string; step: UndoStep }[];
  words: string;
  about?: string; // of a single one: what its driver knows its task by
}

export interface Kept {
  session: Session;
  world: World;
  feed: { driver: string; after: string };
  join: { secret: string; nonce: string };
  revoked: { driver: string };
  owner: { driver: string; created_at?: string }; // who has used this phone last: an id may be somebody else's by now
  trips: Record<string, string>; // tracking id → id of the trip that the server made of it
  push: { driver: string; endpoint: string };
  refused: Refused[];
  written: Record<string, Written>; // by task id
  offset: number; // the server's clock less the phone's, ms
  last: LastSteps;
  maps: MapApp;
}

interface Schema extends DBSchema {
  kept: { key: string; value: unknown };
  outbox: { key: number; value: Entry; indexes: { kind: string } };
  files: { key: number; value: Omit<Picture, 'id'> & { id?: number }; indexes: { task: string } };
}

type Held = IDBPCursorWithValue<Schema, ['outbox'], 'outbox', unknown, 'readwrite'>;

/** For how many ms an entry is still held. One that would be held for longer than any is the word of a clock that was put back. */
export function holding(hold: number | undefined): number {
  const wait = (hold ?? 0) - Date.now();
  return wait > 0 && wait <= calm ? wait : 0;
}

/** Has the application told of a refused step, where that is one of a task. */
async function tell(outbox: { add(e: Entry): Promise<unknown> }, verb: Word['verb'], r: Refused): Promise<void> {
  if (!('task_id' in r.action)) return;
  const { task_id, at } = r.action;
  const step = stepOf(r.action);
  const why = refusalOf(r)?.replace('.', '_');
  await outbox.add({ driver: r.driver, kind: 'word', word: { verb, task_id, body: verb === 'stuck' ? { step, at, ...(why ? { why } : {}) } : { step } } });
}

export class Store {
  private constructor(private readonly db: IDBPDatabase<Schema>) {}

  static async open(name = 'tracking-driver'): Promise<Store> {
    const db = await openDB<Schema>(name, 2, {
      upgrade(db, from) {
        if (from < 1) {
          db.createObjectStore('kept');
          db.createObjectStore('outbox', { keyPath: 'seq', autoIncrement: true }).createIndex('kind', 'kind');
        }
        db.createObjectStore('files', { keyPath: 'id', autoIncrement: true }).createIndex('task', 'task_id');
      },
      blocking(_current, _blocked, event) {
        (event.target as IDBDatabase).close(); // another tab brings a newer version
      },
    });
    return new Store(db);
  }

  async get<K extends keyof Kept>(key: K): Promise<Kept[K] | undefined> {
    return (await this.db.get('kept', key)) as Kept[K] | undefined;
  }

  async set<K extends keyof Kept>(key: K, value: Kept[K]): Promise<void> {
    await this.db.put('kept', value, key);
  }

  async remove(key: keyof Kept): Promise<void> {
    await this.db.delete('kept', key);
  }

  async add(entry: Entry): Promise<void> {
    await this.db.add('outbox', entry);
  }

  /** The oldest entries of a driver, at most n, without what was done with some tasks. */
  async head(driver: string, n: number, without: ReadonlySet<string> = new Set()): Promise<Required<Entry>[]> {
    const out: Required<Entry>[] = [];
    let cursor = await this.db.transaction('outbox').store.openCursor();
    while (cursor && out.length < n) {
      const e = cursor.value;
      const left = e.kind === 'action' && 'task_id' in e.action && without.has(e.action.task_id);
      if (e.driver === driver && !left) out.push(e as Required<Entry>);
      cursor = await cursor.continue();
    }
    return out;
  }

  /** Takes entries out of the outbox, and a file that went with them. */
  async drop(seqs: readonly number[], file?: number): Promise<void> {
    const tx = this.db.transaction(['outbox', 'files'], 'readwrite');
    const outbox = tx.objectStore('outbox');
    await Promise.all([...seqs.map((s) => outbox.delete(s)), file !== undefined && tx.objectStore('files').delete(file), tx.done]);
  }

  /** Takes an entry out of the outbox, with its file, keeps that the server refused it, and has the application told: all or nothing. */
  async refuse(refused: Refused): Promise<void> {
    const tx = this.db.transaction(['kept', 'outbox', 'files'], 'readwrite');
    const kept = tx.objectStore('kept');
    const list = ((await kept.get('refused')) as Refused[] | undefined) ?? [];
    await Promise.all([
      kept.put([...list, refused], 'refused'),
      tx.objectStore('outbox').delete(refused.id),
      tell(tx.objectStore('outbox'), 'stuck', refused),
      refused.action.type === 'proof' && tx.objectStore('files').delete(refused.action.file),
      tx.done,
    ]);
  }

  /** Keeps a picture until its driver says that it is to be sent. Of signatures there is one. */
  async keepPicture(p: Omit<Picture, 'id' | 'queued'>): Promise<void> {
    const tx = this.db.transaction('files', 'readwrite');
    if (p.kind === 'signature') {
      for (let at = await tx.store.index('task').openCursor(p.task_id); at; at = await at.continue()) {
        if (at.value.driver === p.driver && at.value.kind === 'signature' && !at.value.queued) await at.delete();
      }
    }
    await Promise.all([tx.store.add({ ...p, queued: false }), tx.done]);
  }

  /** The pictures of a task that wait for its driver's word. */
  async pictures(driver: string, task: string): Promise<Picture[]> {
    const all = (await this.db.getAllFromIndex('files', 'task', task)) as Picture[];
    return all.filter((p) => p.driver === driver && !p.queued);
  }

  async dropPicture(id: number): Promise<void> {
    await this.db.delete('files', id);
  }

  async picture(id: number): Promise<Picture | undefined> {
    return (await this.db.get('files', id)) as Picture | undefined;
  }

  /** Puts the pictures of a task that wait for their driver's word into the outbox, and then what needs them: all or nothing. */
  async queue(driver: string, proof: { task_id: string; at: string; about?: string }, then?: Entry): Promise<void> {
    const tx = this.db.transaction(['outbox', 'files'], 'readwrite');
    const outbox = tx.objectStore('outbox');
    try {
      for (let at = await tx.objectStore('files').index('task').openCursor(proof.task_id); at; at = await at.continue()) {
        const p = at.value as Picture;
        if (p.driver !== driver || p.queued) continue;
        await at.update({ ...p, queued: true });
        await outbox.add({ driver, kind: 'action', action: { type: 'proof', ...proof, kind: p.kind, file: p.id } });
      }
      if (then) await outbox.add(then);
      await tx.done;
    } catch (e) {
      void tx.done.catch(() => {}); // it says the same
      if (!tx.error) tx.abort();
      throw e;
    }
  }

  /** What a driver has written of a task's end. */
  async written(task: string): Promise<Written> {
    return (await this.get('written'))?.[task] ?? {};
  }

  async write(task: string, w: Written): Promise<void> {
    const tx = this.db.transaction('kept', 'readwrite');
    const all = ((await tx.store.get('written')) as Kept['written'] | undefined) ?? {};
    await Promise.all([tx.store.put({ ...all, [task]: w }, 'written'), tx.done]);
  }

  /** Forgets what was taken and written, and not sent, of tasks that the driver has no more. */
  async forget(driver: string, tasks: ReadonlySet<string>): Promise<void> {
    const tx = this.db.transaction(['kept', 'files'], 'readwrite');
    const kept = tx.objectStore('kept');
    const files = tx.objectStore('files');
    const all = ((await kept.get('written')) as Kept['written'] | undefined) ?? {};
    const rest = Object.entries(all).filter(([id]) => tasks.has(id));
    if (rest.length < Object.keys(all).length) await kept.put(Object.fromEntries(rest), 'written');
    for (let at = await files.index('task').openKeyCursor(); at; at = await at.continue()) {
      if (tasks.has(at.key as string)) continue;
      const p = (await files.get(at.primaryKey))!;
      if (p.driver === driver && !p.queued) await files.delete(at.primaryKey);
    }
    await tx.done;
  }

  /** The driver has seen a refused step. */
  async dismiss(id: number): Promise<void> {
    const tx = this.db.transaction(['kept', 'outbox'], 'readwrite');
    const kept = tx.objectStore('kept');
    const list = ((await kept.get('refused')) as Refused[] | undefined) ?? [];
    const seen = list.find((r) => r.id === id);
    await Promise.all([kept.put(list.filter((r) => r !== seen), 'refused'), seen && tell(tx.objectStore('outbox'), 'settle', seen), tx.done]);
  }

  /** The steps of a driver that were refused, oldest first. */
  async refused(driver: string): Promise<Refused[]> {
    return ((await this.get('refused')) ?? []).filter((r) => r.driver === driver);
  }

  /** How much of a driver's waits to be sent. */
  async count(driver: string): Promise<number> {
    let n = 0;
    for (let at = await this.db.transaction('outbox').store.openCursor(); at; at = await at.continue()) if (at.value.driver === driver) n++;
    return n;
  }

  /** Forgets all of a driver's, who is no more: somebody else has the id. */
  async purge(driver: string): Promise<void> {
    const tx = this.db.transaction(['kept', 'outbox', 'files'], 'readwrite');
    const kept = tx.objectStore('kept');
    for (const name of ['outbox', 'files'] as const) {
      for (let at = await tx.objectStore(name).openCursor(); at; at = await at.continue()) if (at.value.driver === driver) await at.delete();
    }
    const list = ((await kept.get('refused')) as Refused[] | undefined) ?? [];
    await kept.put(list.filter((r) => r.driver !== driver), 'refused');
    for (const key of ['last', 'feed', 'trips', 'written', 'world'] as const) await kept.delete(key);
    await tx.done;
  }

  /** The unsent actions of a driver, oldest first; those that are held say so. */
  async actions(driver: string): Promise<Action[]> {
    const entries = await this.db.getAllFromIndex('outbox', 'kind', 'action');
    return entries.flatMap((e) => {
      if (e.kind !== 'action' || e.driver !== driver) return [];
      return [holding(e.hold) > 0 ? { ...e.action, held: true } : e.action];
    });
  }

  /** Takes back the held end of a task. False: it is held no more. */
  async takeBack(driver: string, task: string): Promise<boolean> {
    let found = false;
    await this.eachHeld(driver, async (cursor) => {
      const e = cursor.value;
      if (e.kind !== 'action' || e.action.type !== 'complete' || e.action.task_id !== task) return;
      found = true;
      await cursor.delete();
    });
    return found;
  }

  /** Holds nothing of the driver's any longer. */
  async release(driver: string): Promise<void> {
    await this.eachHeld(driver, async (cursor) => {
      await cursor.update({ ...cursor.value, hold: 0 } as Entry);
    });
  }

  private async eachHeld(driver: string, f: (cursor: Held) => Promise<void>): Promise<void> {
    const tx = this.db.transaction('outbox', 'readwrite');
    for (let cursor = await tx.store.openCursor(); cursor; cursor = await cursor.continue()) {
      const e = cursor.value;
      if (e.kind === 'action' && e.driver === driver && holding(e.hold) > 0) await f(cursor);
    }
    await tx.done;
  }

  close(): void {
    this.db.close();
  }
}
