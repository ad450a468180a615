// What is searched for and found. Answers come in any order; only the newest question's is shown.

import type { Task } from './model';

export interface Found {
  text: string; // that was asked for
  tasks: Task[];
  next: string; // where the list goes on; '' for nowhere
}

export type SearchState = { kind: 'idle' } | { kind: 'short' } | { kind: 'asking'; found: Found | null } | { kind: 'found'; found: Found } | { kind: 'failed'; message: string };

/** An answer of the list of tasks, as far as this looks at it. */
export type ListAnswer = { kind: 'ok'; data: { task_list?: Task[]; next?: string } } | { kind: 'offline' } | { kind: 'failed'; message: string };

const least = 2; // characters, as the API wants
const longest = 100;
const pageSize = 50;
const pause = 250; // ms after the last key

export class Search {
  state: SearchState = { kind: 'idle' };
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly list: (query: URLSearchParams) => Promise<ListAnswer>,
    private readonly changed: () => void,
    private readonly wait = pause,
  ) {}

  /** Takes what stands in the field now. */
  type(text: string): void {
    clearTimeout(this.timer);
    this.asked++;
    const q = [...text.trim()].slice(0, longest).join('');
    const n = [...q].length;
    if (n < least) return this.set(n === 0 ? { kind: 'idle' } : { kind: 'short' });
    const before = this.state.kind === 'found' || this.state.kind === 'asking' ? this.state.found : null;
    this.set({ kind: 'asking', found: before });
    this.timer = setTimeout(() => void this.ask(q, null), this.wait);
  }

  /** Adds those that follow. */
  more(): void {
    const s = this.state;
    if (s.kind !== 'found' || s.found.next === '') return;
    this.asked++;
    this.set({ kind: 'asking', found: s.found });
    void this.ask(s.found.text, s.found);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.asked++;
  }

  private async ask(text: string, before: Found | null): Promise<void> {
    const asked = this.asked;
    const query = new URLSearchParams({ q: text, limit: String(pageSize) });
    if (before) query.set('after', before.next);
    const a = await this.list(query);
    if (asked !== this.asked) return;
    if (a.kind !== 'ok') return this.set({ kind: 'failed', message: a.kind === 'failed' ? a.message : '' });
    const tasks = [...(before?.tasks ?? []), ...(a.data.task_list ?? [])];
    this.set({ kind: 'found', found: { text, tasks, next: a.data.next ?? '' } });
  }

  private set(s: SearchState): void {
    this.state = s;
    this.changed();
  }
}
