// The stream of /v1/live, which is taken up again whenever it breaks off.

import { backoff, EventParser, Pause, readStream } from '../shared/sse';

const idle = 12_000; // ms without a word, of which there is one every 5 s
const notLive = 10_000; // ms without a stream until that is said

export interface Link {
  /** When the stream was last heard, by this computer's clock; 0: never. */
  heard: number;
}

/** What is said of the connection: nothing of a break so short that nobody needs to know. */
export type Liveness = { kind: 'connecting' } | { kind: 'live' } | { kind: 'stale'; since: number };

export function liveness(link: Link, whole: boolean, started: number, now: number): Liveness {
  if (!whole) return now - started < notLive ? { kind: 'connecting' } : { kind: 'stale', since: link.heard };
  return now - link.heard < notLive ? { kind: 'live' } : { kind: 'stale', since: link.heard };
}

export class Connection {
  readonly link: Link = { heard: 0 };
  readonly pause = new Pause();
  private readonly stop = new AbortController();

  constructor(
    private readonly o: {
      url: string;
      fetch: typeof fetch;
      onEvent: (type: string, data: unknown) => void;
      /** Begins anew: what came of a snapshot so far is not worth going on from. */
      restart: () => boolean;
      onChange: () => void;
      onSignedOut: () => void;
    },
  ) {}

  close(): void {
    this.stop.abort();
  }

  async run(): Promise<void> {
    let cursor = '';
    for (let tries = 0; !this.stop.signal.aborted; tries++) {
      if (this.o.restart()) cursor = '';
      let came = false;
      const parser = new EventParser((e) => {
        came = true;
        cursor = e.id || cursor;
        let data: unknown;
        try {
          data = JSON.parse(e.data);
        } catch {
          return; // of something in between
        }
        this.o.onEvent(e.type, data);
      });
      const end = await readStream({
        fetch: this.o.fetch,
        url: this.o.url,
        headers: cursor ? { 'Last-Event-ID': cursor } : {},
        credentials: 'same-origin',
        signal: this.stop.signal,
        idle,
        parser,
        onOpen: () => this.hear(),
        onHeard: () => (this.link.heard = Date.now()),
      });
      this.o.onChange();
      if (this.stop.signal.aborted) return;
      if (end.kind === 'status' && (end.status === 401 || end.status === 403)) return this.o.onSignedOut();
      if (came) tries = 0;
      const wait = end.kind === 'status' && end.retryAfter > 0 ? Math.min(end.retryAfter, 60) * 1000 : backoff(tries, 10_000);
      await this.pause.wait(wait, this.stop.signal);
    }
  }

  private hear(): void {
    this.link.heard = Date.now();
    this.o.onChange();
  }
}
