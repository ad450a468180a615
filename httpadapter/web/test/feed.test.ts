import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api } from '../src/driver/api';
import { follow, readNotice } from '../src/driver/feed';
import { Pause } from '../src/shared/sse';

class NoPause extends Pause {
  override wait(): Promise<void> {
    return Promise.resolve();
  }
}

async function run(start: string, answers: (Response | Error)[]) {
  const log: string[] = [];
  const asked: string[] = [];
  const stop = new AbortController();
  const get: typeof fetch = (url, init) => {
    const a = answers.shift();
    const h = init!.headers as Record<string, string>;
    if (!a) {
      stop.abort();
      return Promise.reject(new Error('over'));
    }
    asked.push([String(url).replace('/v1/driver/notifications', '') || 'feed', h.Accept === 'text/event-stream' ? 'stream' : 'json', h['Last-Event-ID'] ?? ''].join(' ').trim());
    assert.equal(h.Authorization, 'Bearer T');
    return a instanceof Error ? Promise.reject(a) : Promise.resolve(a);
  };
  const api = new Api('', get);
  api.token = 'T';
  await follow(
    api,
    start,
    {
      onNotice: (n) => log.push(`${n.id} ${n.kind}`),
      onReset: () => log.push('reset'),
      onOnline: (ok) => ok || log.push('offline'),
      onRevoked: () => {
        log.push('revoked');
        stop.abort();
      },
      keep: (id) => log.push('keep ' + id),
    },
    new NoPause(),
    stop.signal,
    get,
  );
  return { log, asked };
}

const stream = (text: string) => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });

test('a stream is taken up where it broke off', async () => {
  const r = await run('4', [stream('id: 5\nevent: notice\ndata: {"id":5,"kind":"assigned","task_id":"a"}\n\n'), stream('id: 6\ndata: {"kind":"cancelled"}\n\n')]);
  assert.deepEqual(r.asked, ['feed stream 4', 'feed stream 5']);
  assert.deepEqual(r.log.filter((l) => l !== 'reset'), ['keep 5', '5 assigned', 'keep 6', '6 cancelled']);
});

test('where there is no stream the feed is asked for', async () => {
  const list = (...n: object[]) => Response.json({ success: true, data: { notifications: n } });
  const r = await run('', [new Response('', { status: 405 }), list({ id: 1, kind: 'assigned' }), list(), list({ id: 2, kind: 'updated' })]);
  assert.deepEqual(r.asked, ['feed stream', 'feed json', '?after=1 json', '?after=1 json']);
  assert.deepEqual(r.log.filter((l) => /^\d/.test(l)), ['1 assigned', '2 updated']);
});

test('a feed whose place is lost says so', async () => {
  const r = await run('99', [new Response('', { status: 405 }), Response.json({ success: true, data: { reset: true, after: 3, notifications: [] } })]);
  assert.deepEqual(r.log.filter((l) => l !== 'offline'), ['reset', 'keep 3']);
});

test('a token that is revoked ends it', async () => {
  const refused = () => Response.json({ success: false, message: 'no' }, { status: 401 });
  const r = await run('', [refused(), refused()]);
  assert.deepEqual(r.log, ['revoked']);
  const page = () => new Response('<html>sign in</html>', { status: 401 });
  const proxy = await run('', [page(), page(), page()]);
  assert.ok(!proxy.log.includes('revoked'), 'a page of something in between ends nothing');
});

test('notices', () => {
  assert.deepEqual(readNotice({ id: 7, kind: 'assigned', time: 'x', task_id: 't' }, ''), { id: '7', kind: 'assigned', time: 'x', task_id: 't', tracking_id: '' });
  assert.equal(readNotice({ kind: 'assigned' }, '8')!.id, '8');
  for (const v of [null, 1, {}, { id: 1 }, { kind: 'x' }]) assert.equal(readNotice(v, ''), null);
});
