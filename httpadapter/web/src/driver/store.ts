// What the app keeps on the phone: the session, what it last heard, and what it has not sent yet.

import { openDB, type DBSchema, type IDBPDatabase } from 'idb';
import type { Action, Driver, Fix, World } from './model';

export interface Session {
  token: string;
  ingest_url: string;
  driver: Driver;
}

/** An entry of the outbox. Entries are sent in order of seq, and only in the name of the driver who made them. */
export type Entry = { seq?: number; driver: string } & ({ kind: 'fix'; fix: Fix } | { kind: 'action'; action: Action });

export interface Kept {
  session: Session;
  world: World;
  feed: { driver: string; after: string };
  join: { secret: string; nonce: string };
  revoked: { driver: string };
  trips: Record<string, string>; // tracking id → id of the trip that the server made of it
  push: { driver: string; endpoint: string };
}

interface Schema extends DBSchema {
  kept: { key: string; value: unknown };
  outbox: { key: number; value: Entry; indexes: { kind: string } };
}

export class Store {
  private constructor(private readonly db: IDBPDatabase<Schema>) {}

  static async open(name = 'tracking-driver'): Promise<Store> {
    const db = await openDB<Schema>(name, 1, {
      upgrade(db) {
        db.createObjectStore('kept');
        db.createObjectStore('outbox', { keyPath: 'seq', autoIncrement: true }).createIndex('kind', 'kind');
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

  /** The oldest entries of a driver, at most n. */
  async head(driver: string, n: number): Promise<Required<Entry>[]> {
    const out: Required<Entry>[] = [];
    let cursor = await this.db.transaction('outbox').store.openCursor();
    while (cursor && out.length < n) {
      if (cursor.value.driver === driver) out.push(cursor.value as Required<Entry>);
      cursor = await cursor.continue();
    }
    return out;
  }

  async drop(seqs: readonly number[]): Promise<void> {
    const tx = this.db.transaction('outbox', 'readwrite');
    await Promise.all([...seqs.map((s) => tx.store.delete(s)), tx.done]);
  }

  async count(): Promise<number> {
    return this.db.count('outbox');
  }

  /** The unsent actions of a driver, oldest first. */
  async actions(driver: string): Promise<Action[]> {
    const entries = await this.db.getAllFromIndex('outbox', 'kind', 'action');
    return entries.flatMap((e) => (e.kind === 'action' && e.driver === driver ? [e.action] : []));
  }

  close(): void {
    this.db.close();
  }
}
