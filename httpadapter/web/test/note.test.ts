import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sendNote, takeNote } from '../src/track/note';

test('a note is sent as it is, and every answer is a word', async () => {
  const cases: [Response | Error, string][] = [
    [Response.json({ message: 'Note sent', success: true }), 'saved'],
    [new Response('', { status: 400 }), 'refused'],
    [new Response('', { status: 404 }), 'ended'],
    [new Response('', { status: 409 }), 'ended'],
    [new Response('', { status: 429 }), 'limited'],
    [new Response('', { status: 413 }), 'failed'],
    [new Response('', { status: 503 }), 'failed'],
    [new TypeError('network'), 'failed'],
  ];
  for (const [answer, want] of cases) {
    const asked: [string, RequestInit][] = [];
    const got = await sendNote('/p/track/T', 'Ring "twice"\n<b>', (url, init) => {
      asked.push([String(url), init!]);
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    });
    assert.equal(got, want);
    assert.equal(asked[0]![0], '/p/track/T/note');
    assert.deepEqual([asked[0]![1].method, asked[0]![1].body, asked[0]![1].credentials], ['POST', '{"text":"Ring \\"twice\\"\\n<b>"}', 'omit']);
  }
});

test('a note from elsewhere is shown, but not over what is being written', () => {
  assert.equal(takeNote('', '', 'Ring twice'), 'Ring twice');
  assert.equal(takeNote('Ring twice', 'Ring twice', 'Ring once'), 'Ring once');
  assert.equal(takeNote('Ring tw', 'Ring twice', 'Ring once'), 'Ring tw');
  assert.equal(takeNote(' Ring twice\n', 'Ring twice', ''), '');
});
