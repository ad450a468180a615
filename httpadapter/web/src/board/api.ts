// Calls of an application's routes, in the name of whoever is signed in by a cookie.

import { retryAfter } from '../shared/sse';

export type Answer =
  | { kind: 'ok'; data: any }
  | { kind: 'offline' } // no answer: the outcome is not known
  | { kind: 'failed'; status: number; code: string; message: string; field?: string; retryAfter: number };

const timeout = 20_000;

export class Api {
  constructor(
    private readonly base: string,
    private readonly get: typeof fetch = (...a) => fetch(...a),
  ) {}

  url(path: string): string {
    return this.base + path;
  }

  async call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    try {
      const r = await this.get(this.url(path), {
        method,
        headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        cache: 'no-store',
        credentials: 'same-origin',
        signal: stop.signal,
      });
      const json: any = await r.json().catch(() => null); // what is no JSON comes from something in between
      if (r.ok && json?.success === true) return { kind: 'ok', data: json.data ?? {} };
      if (r.ok || json?.success !== false) return { kind: 'offline' };
      const text = (v: unknown) => (typeof v === 'string' ? v : '');
      return { kind: 'failed', status: r.status, code: text(json.error?.code), message: text(json.message), field: text(json.error?.field), retryAfter: retryAfter(r) };
    } catch {
      return { kind: 'offline' };
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A query of what is there. */
export function query(path: string, values: Record<string, string | number | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) if (v !== undefined && v !== '') q.set(k, String(v));
  const text = q.toString();
  return text ? path + '?' + text : path;
}
