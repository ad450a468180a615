// Server-sent events over fetch: EventSource can neither send an Authorization header nor tell a 204 from a 429.

export interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

/** Takes the text of a stream in pieces and calls back for each event (HTML standard, 9.2.6). */
export class EventParser {
  private buffer = '';
  private type = '';
  private data: string[] = [];
  private first = true;
  lastId = '';

  constructor(
    private readonly onEvent: (e: ServerEvent) => void,
    private readonly onRetry: (ms: number) => void = () => {},
  ) {}

  push(text: string): void {
    if (this.first && text !== '') {
      this.first = false;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    this.buffer += text;
    for (;;) {
      const m = /\r\n|\r|\n/.exec(this.buffer);
      if (!m) return;
      // A CR at the end of a piece may be the first half of a CRLF.
      if (m[0] === '\r' && m.index === this.buffer.length - 1) return;
      this.line(this.buffer.slice(0, m.index));
      this.buffer = this.buffer.slice(m.index + m[0].length);
    }
  }

  private line(line: string): void {
    if (line === '') {
      if (this.data.length > 0) this.onEvent({ id: this.lastId, type: this.type || 'message', data: this.data.join('\n') });
      this.type = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment, the heartbeat
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    switch (field) {
      case 'event':
        this.type = value;
        break;
      case 'data':
        this.data.push(value);
        break;
      case 'id':
        if (!value.includes('\0')) this.lastId = value;
        break;
      case 'retry':
        if (/^\d+$/.test(value)) this.onRetry(Number(value));
        break;
    }
  }
}

/** How one connection to a stream ended. */
export type Ending =
  | { kind: 'lost' } // broke off, or never came about
  | { kind: 'closed' } // by the server, after events had come
  | { kind: 'status'; status: number; retryAfter: number }; // refused; seconds, 0 when not said

/** Reads a stream until it ends. A stream silent for `idle` ms counts as lost: its heartbeats should come more often. */
export async function readStream(o: {
  fetch: typeof fetch;
  url: string;
  headers?: Record<string, string>;
  credentials?: RequestCredentials; // whether cookies go along; none by default
  signal: AbortSignal;
  idle: number;
  parser: EventParser;
  onOpen?: () => void;
  onHeard?: () => void; // anything, a heartbeat too
}): Promise<Ending> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  o.signal.addEventListener('abort', abort);
  if (o.signal.aborted) abort();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wake = () => {
    clearTimeout(timer);
    timer = setTimeout(abort, o.idle);
  };
  try {
    wake();
    const headers = { Accept: 'text/event-stream', ...o.headers };
    const r = await o.fetch(o.url, { headers, signal: stop.signal, cache: 'no-store', credentials: o.credentials ?? 'omit' });
    const streams = r.headers.get('Content-Type')?.startsWith('text/event-stream');
    if (r.status !== 200 || !streams || !r.body) {
      void r.body?.cancel();
      return { kind: 'status', status: r.status, retryAfter: retryAfter(r) };
    }
    o.onOpen?.();
    const reader = r.body.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { kind: 'closed' };
      wake();
      o.onHeard?.();
      o.parser.push(decoder.decode(value, { stream: true }));
    }
  } catch {
    return { kind: 'lost' };
  } finally {
    clearTimeout(timer);
    o.signal.removeEventListener('abort', abort);
  }
}

/** The seconds of a Retry-After header, 0 when there is none. */
export function retryAfter(r: Response): number {
  const v = r.headers.get('Retry-After') ?? '';
  return /^\d{1,9}$/.test(v) ? Number(v) : 0;
}

/** The wait before the next try, in ms: doubling from 1 s to `most`, jittered so that a thousand viewers do not come back as one. */
export function backoff(tries: number, most = 30_000, random: () => number = Math.random): number {
  const full = Math.min(most, 1000 * 2 ** Math.min(tries, 16));
  return full * (0.5 + random() / 2);
}

/** Waits, but no longer than until `wake` is called through the returned object: when the network or the page comes back. */
export class Pause {
  private resolve: (() => void) | null = null;

  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.resolve = null;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.resolve = done;
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    });
  }

  wake(): void {
    this.resolve?.();
  }
}
