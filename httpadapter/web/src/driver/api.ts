// Calls of the driver's routes.

import { retryAfter } from '../shared/sse';

export type Answer =
  | { kind: 'ok'; data: any }
  | { kind: 'offline' } // no answer: the outcome is not known
  | { kind: 'failed'; status: number; message: string; field?: string; retryAfter: number }; // seconds, 0 when not said

const timeout = 20_000;
const fileTimeout = 180_000; // a picture on a bad network

/** Whether the server says that what was sent did not reach it whole. */
function brokenOff(status: number, json: any): boolean {
  return status === 400 && !json.error?.field && /^The body (did not arrive|ended too early|could not be read)/.test(json.message);
}

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

  /** Calls a route. One that is kept alive outlives the page; a body of such a call must be small. */
  async call(method: 'GET' | 'POST', path: string, body?: unknown, { keepalive = false } = {}): Promise<Answer> {
    const json = body === undefined ? undefined : JSON.stringify(body);
    return this.send(path, { method, body: json, keepalive }, json === undefined ? '' : 'application/json', timeout);
  }

  /** Sends a file. */
  put(path: string, data: Uint8Array<ArrayBuffer>, type: string): Promise<Answer> {
    return this.send(path, { method: 'PUT', body: data }, type, fileTimeout);
  }

  private async send(path: string, init: RequestInit, type: string, timeout: number): Promise<Answer> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    const sent = Date.now();
    try {
      const r = await this.get(this.url(path), {
        ...init,
        headers: { Accept: 'application/json', ...this.auth(), ...(type ? { 'Content-Type': type } : {}) },
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
      // A refusal is the server's own only where it says so: a proxy's page decides nothing, nor does a body that did not come whole.
      if (r.status < 500 && r.status !== 429 && (json?.success !== false || brokenOff(r.status, json))) return { kind: 'offline' };
      const text = (v: unknown) => (typeof v === 'string' ? v : '');
      return { kind: 'failed', status: r.status, message: text(json?.message), field: text(json?.error?.field), retryAfter: retryAfter(r) };
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
