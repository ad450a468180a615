// What the customer writes to the driver.

export type Sent = 'saved' | 'ended' | 'limited' | 'refused' | 'failed';

/** Sends the note of a link. Never throws: without a network, or with a server in trouble, it has failed and may be tried again. */
export async function sendNote(base: string, text: string, post: typeof fetch = (...a) => fetch(...a)): Promise<Sent> {
  try {
    const r = await post(base + '/note', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ text }),
      credentials: 'omit',
    });
    if (r.ok) return 'saved';
    const known: Record<number, Sent> = { 400: 'refused', 404: 'ended', 409: 'ended', 429: 'limited' };
    return known[r.status] ?? 'failed';
  } catch {
    return 'failed';
  }
}

/** What the form holds beside what the server has: a note of another screen is shown unless something else was written here meanwhile. */
export function takeNote(written: string, before: string, now: string): string {
  return written.trim() === before ? now : written;
}
