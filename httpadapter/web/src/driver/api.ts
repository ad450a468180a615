// Calls of the driver's routes.

import { retryAfter } from '../shared/sse';

export type Answer =
  | { kind: 'ok'; data: any }
  | { kind: 'offline' } // no answer: the outcome is not known
  | { kind: 'failed'; status: number; message: string; retryAfter: number }; // seconds, 0 when not said

const timeout = 20_000;

export class Api {
  token = '';
  /** The server's clock less the phone's, ms. Phones' clocks are often wrong, and a fix from the future is thrown away. */
  offset = 0;

  constructor(
    private readonly base: string,
    private readonly get: typeof fetch = (...a) => fetch(...a),
  ) {}

  now(): number {
    return Date.now() + this.offset;
  }

  url(path: string): string {
    return this.base + path;
  }

  auth(): Record<string, string> {
    return this.token ? { Authorization: 'Bearer ' + this.token } : {};
  }

  async call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    const sent = Date.now();
    try {
      const r = await this.get(this.url(path), {
        method,
        headers: { Accept: 'application/json', ...this.auth(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        body: body === undefined ? undefined : JSON.stringify(body),
        cache: 'no-store',
        credentials: 'omit',
        signal: stop.signal,
      });
      this.setClock(r.headers.get('Date'), sent, Date.now());
      let json: any = null;
      try {
        json = await r.json();
      } catch {
        // An answer that is no JSON comes from something in between.
      }
      if (r.ok && json?.success === true) return { kind: 'ok', data: json.data ?? {} };
      if (r.ok) return { kind: 'offline' }; // a captive portal
      return { kind: 'failed', status: r.status, message: typeof json?.message === 'string' ? json.message : '', retryAfter: retryAfter(r) };
    } catch {
      return { kind: 'offline' };
    } finally {
      clearTimeout(timer);
    }
  }

  private setClock(date: string | null, sent: number, received: number): void {
    const server = Date.parse(date ?? '');
    if (!Number.isFinite(server)) return;
    // The header counts whole seconds and was written between sending and receiving.
    const low = server - received;
    const high = server + 999 - sent;
    if (this.offset < low || this.offset > high) this.offset = Math.abs((low + high) / 2) < 5_000 ? 0 : Math.round((low + high) / 2);
  }
}
