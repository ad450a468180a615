import assert from 'node:assert/strict';
import { test } from 'node:test';
import de from '../texts/de.json';
import en from '../texts/en.json';
import { guessColumns, kindOf } from '../src/board/columns';
import { digest, readPaste, type NewTask, type PasteOptions } from '../src/board/paste';
import { pieces, sendAll, tally, type BatchAnswer, type Fate } from '../src/board/send';
import { readSheet } from '../src/board/sheet';

const o: PasteOptions = { now: Date.parse('2026-11-28T09:00:00Z'), zone: 'Europe/Berlin', monthFirst: false, autoAssign: false };
const columns = (text: string) => guessColumns(readSheet(text), o).columns;

test('headers in English and German', () => {
  for (const [header, kind] of [
    ['Order ID', 'order_id'], ['Order no.', 'order_id'], ['Auftragsnr.', 'order_id'], ['Bestellnummer', 'order_id'], ['Referenz', 'order_id'], ['Nr.', 'order_id'], ['#', ''],
    ['Delivery Address', 'address'], ['Anschrift', 'address'], ['Lieferadresse', 'address'], ['ADRESSE', 'address'], ['Empfänger-Adresse', 'address'],
    ['Straße', 'street'], ['Strasse', 'street'], ['Hausnummer', 'number'], ['PLZ', 'postcode'], ['Zip code', 'postcode'], ['Ort', 'city'], ['City', 'city'],
    ['Latitude', 'lat'], ['Längengrad', 'lng'], ['Koordinaten', 'point'], ['lat/lng', 'point'],
    ['Name', 'name'], ['Empfänger', 'name'], ['Customer name', 'name'], ['Kunde', 'name'], ['Tel.', 'mobile'], ['Handy', 'mobile'], ['Customer phone', 'mobile'], ['Telefonnummer', 'mobile'],
    ['Notes', 'notes'], ['Bemerkung', 'notes'], ['Date', 'day'], ['Lieferdatum', 'day'], ['Zeitfenster', 'window'], ['Time window', 'window'], ['Von', 'from'], ['bis', 'to'], ['Window to', 'to'],
    ['Pickup address', 'pickup_address'], ['Abholadresse', 'pickup_address'], ['Abholung', 'pickup_address'], ['Sender name', 'pickup_name'], ['Absender Telefon', 'pickup_mobile'], ['Pickup coordinates', 'pickup_point'],
    ['Fahrer', ''], ['Weight', ''], ['Hauptstr. 1', ''], ['', ''],
  ] as const)
    assert.equal(kindOf(header), kind, header);
});

test('columns by their headers, others left alone', () => {
  assert.deepEqual(columns('Auftrag;Empfänger;Straße;PLZ;Ort;Gewicht;Zeitfenster\n1001;Anna Ott;Weg 2;10115;Berlin;12 kg;14-16 Uhr'), ['order_id', 'name', 'street', 'postcode', 'city', '', 'window']);
  assert.deepEqual(columns('Name,Name,Address\na,b,Road 1'), ['name', '', 'address']);
});

test('columns by what stands in them', () => {
  assert.deepEqual(columns('#1001\tAnna Ott\tHauptstr. 12, 10115 Berlin\t+49 151 2345678\t14:00-16:00\n#1002\tBo Li\tWeg 2, 10117 Berlin\t0171/2223334\t16:00-18:00'), ['order_id', 'name', 'address', 'mobile', 'window']);
  assert.deepEqual(columns('12 Beach Road, Chennai\t13.0039\t80.2628\n7 Anna Salai, Chennai\t13.0601\t80.2512'), ['address', 'lat', 'lng']);
  assert.deepEqual(columns('52.5200, 13.4050;Anna\n52.5300, 13.4150;Bo'), ['point', 'name']);
  assert.deepEqual(columns('Hauptstr. 12\nWeg 2\n'), ['address']);
  assert.deepEqual(columns('A1,28.11.2026,"Weg 2, Berlin",Ring twice please 2x\nA2,29.11.2026,"Weg 3, Berlin",Behind house 4 b'), ['order_id', 'day', 'address', 'notes']);
});

test('a row of data is no header', () => {
  const t = guessColumns(readSheet('1001,Name,12 Road\n1002,Bo,13 Road'), o);
  assert.equal(t.header, null);
  assert.equal(t.rows.length, 2);
});

const table = [
  'Auftrag;Empfänger;Straße;PLZ;Ort;Telefon;Datum;Von;Bis;Hinweis',
  '1001;"Ott, Anna";Weg 2;10115;Berlin;+49 151 1;28.11.2026;14:00;16:00;"2. OG; links"',
  '1002;Bo;;;;;;;;',
  '1003;Cy;Weg 3;10115;Berlin;;31.2.2026;;;',
  '1004;Di;Weg 4;10115;Berlin;;28.11.2026;16:00;14:00;',
  '1005;Ed;Weg 5;10115;Berlin;;;soon;;',
].join('\n');

test('each row is a task, or says what is wrong with it', () => {
  const { drafts } = readPaste(table, o);
  assert.deepEqual(drafts.map((d) => d.problems), [
    [],
    [{ kind: 'address', fault: 'place' }],
    [{ kind: 'day', fault: 'day' }],
    [{ kind: 'to', fault: 'before' }],
    [{ kind: 'from', fault: 'time' }],
  ]);
  const { key, ...first } = drafts[0]!.task;
  assert.deepEqual(first, {
    type: 2, order_id: '1001', notes: '2. OG; links', drop: { address: 'Weg 2, 10115 Berlin', customer: { name: 'Ott, Anna', mobile: '+49 151 1' } },
    window: { from: '2026-11-28T13:00:00.000Z', to: '2026-11-28T15:00:00.000Z' },
  });
  assert.match(key!, /^paste-[a-z0-9]{22}-1$/);
});

test('pickups, points, and what is too much', () => {
  const of = (text: string) => readPaste(text, o).drafts[0]!;
  assert.deepEqual({ ...of('Pickup address,Sender name,Address,Name\nMill Lane 3,Bakery,Road 1,Anna').task, key: '' }, {
    type: 3, key: '', pickup: { address: 'Mill Lane 3', customer: { name: 'Bakery' } }, drop: { address: 'Road 1', customer: { name: 'Anna' } },
  });
  assert.deepEqual({ ...of('Pickup address,Name\nMill Lane 3,Anna').task, key: '' }, { type: 1, key: '', pickup: { address: 'Mill Lane 3', customer: { name: 'Anna' } } });
  assert.deepEqual(of('lat;lng\n52,52;13,405').task.drop, { lnglat: [13.405, 52.52] });
  assert.deepEqual(of('lat,lng\n95,13').problems, [{ kind: 'lat', fault: 'point' }]);
  assert.deepEqual(of('lat,lng\n52,').problems, [{ kind: 'lng', fault: 'point' }]);
  assert.deepEqual(of('Coordinates;Name\nnowhere;Bo').problems, [{ kind: 'point', fault: 'point' }]);
  assert.deepEqual(of('Order,Address\n' + '1'.repeat(201) + ',Road 1').problems, [{ kind: 'order_id', fault: 'long' }]);
  assert.deepEqual(of('Order,Address\n"1\n2",Road 1').problems, [{ kind: 'order_id', fault: 'control' }]);
  assert.deepEqual(of('Address,Name\n"Road 1,Anna').problems, [{ kind: '', fault: 'quote' }]);
  assert.deepEqual(of('Address,Name\n' + '😀'.repeat(1000) + ',Anna').problems, []);
});

test('a person may say what the columns are', () => {
  const { drafts } = readPaste('Fahrer;Ziel\nWeg 1;Bo', { ...o, columns: ['address', 'name'] });
  assert.deepEqual(drafts[0]!.task.drop, { address: 'Weg 1', customer: { name: 'Bo' } });
});

const keys = (text: string, with_: Partial<PasteOptions> = {}) => readPaste(text, { ...o, ...with_ }).drafts.map((d) => d.task.key);

test('pasting twice gives the same keys, in whatever order, and equal rows are as many tasks', () => {
  const rows = ['Weg 1;Anna', 'Weg 2;Bo', 'Weg 1;Anna'];
  const text = ['Adresse;Name', ...rows].join('\n');
  assert.deepEqual(keys(text), keys(text));
  assert.equal(new Set(keys(text)).size, 3);
  assert.deepEqual(new Set(keys(['Adresse;Name', ...rows.slice().reverse()].join('\n'))), new Set(keys(text)));
  assert.deepEqual(new Set(keys(['Name\tAdresse', 'Anna\tWeg 1', 'Bo\tWeg 2', 'Anna\tWeg 1'].join('\n'))), new Set(keys(text)), 'another order of columns');
  assert.deepEqual(keys(text, { autoAssign: true }), keys(text));
});

test('what comes each day is made each day, and an order once', () => {
  const tomorrow = { now: o.now + 86_400_000 };
  assert.notDeepEqual(keys('Adresse;Name\nWeg 1;Anna'), keys('Adresse;Name\nWeg 1;Anna', tomorrow));
  assert.deepEqual(keys('Auftrag;Adresse\n1;Weg 1'), keys('Auftrag;Adresse\n1;Weg 1', tomorrow));
  assert.deepEqual(keys('Auftrag;Adresse\n1;Weg 1'), keys('Auftrag;Adresse\n1;Weg 2'), 'the server says that it differs');
  assert.deepEqual(keys('Adresse;Datum\nWeg 1;30.11.2026').length, 1);
});

test('digests differ', () => {
  const seen = new Set(Array.from({ length: 20_000 }, (_, i) => digest('row ' + i)));
  assert.equal(seen.size, 20_000);
});

const tasks = (n: number): NewTask[] => Array.from({ length: n }, (_, i) => ({ type: 2, drop: { address: 'Weg ' + i }, key: 'k' + i }));

test('pieces are no larger than the API takes', () => {
  assert.deepEqual(pieces(tasks(1200)), [[0, 500], [500, 1000], [1000, 1200]]);
  assert.deepEqual(pieces(tasks(500)), [[0, 500]]);
  assert.deepEqual(pieces([]), []);
  const heavy = tasks(10).map((t) => ({ ...t, notes: 'ä'.repeat(2000) }));
  assert.deepEqual(pieces(heavy, 500, 9_000), [[0, 2], [2, 4], [4, 6], [6, 8], [8, 10]]);
});

async function send(n: number, answers: BatchAnswer[], known: string[] = []): Promise<{ fates: Fate[]; calls: number }> {
  const fates: Fate[] = Array.from({ length: n }, () => ({ kind: 'waits' }));
  let calls = 0;
  await sendAll(tasks(n), async () => answers[calls++]!, (task) => known.includes(task.task_id), (i, f) => (fates[i] = f));
  return { fates, calls };
}

test('each row is told what became of it', async () => {
  const results = [{ task: { task_id: 'a' } }, { task: { task_id: 'b' } }, { error: { code: 'invalid', field: 'drop', message: 'No.' } }, { error: { code: 'unavailable', message: 'Later.' } }, { error: { code: 'conflict', field: 'key', message: 'Other.' } }];
  const { fates } = await send(6, [{ kind: 'ok', data: { results } }], ['b']);
  assert.deepEqual(fates, [
    { kind: 'made', id: 'a' },
    { kind: 'there', id: 'b' },
    { kind: 'refused', message: 'No.', field: 'drop', conflict: false },
    { kind: 'unknown' },
    { kind: 'refused', message: 'Other.', field: 'key', conflict: true },
    { kind: 'unknown' }, // that the answer says nothing of
  ]);
  assert.deepEqual(tally(fates), { waits: 0, sent: 0, made: 1, there: 1, refused: 2, unknown: 2 });
});

test('a network that is gone leaves the rest waiting, and nothing said to be done', async () => {
  const ok: BatchAnswer = { kind: 'ok', data: { results: Array.from({ length: 500 }, (_, i) => ({ task: { task_id: 't' + i } })) } };
  const { fates, calls } = await send(1200, [ok, { kind: 'offline' }]);
  assert.equal(calls, 2);
  assert.deepEqual(tally(fates), { waits: 200, sent: 0, made: 500, there: 0, refused: 0, unknown: 500 });
  for (const [answer, kind] of [[{ kind: 'failed', status: 503, message: 'm' }, 'unknown'], [{ kind: 'failed', status: 429, message: 'm' }, 'unknown'], [{ kind: 'failed', status: 403, message: 'm' }, 'refused']] as const) {
    assert.equal((await send(1, [answer])).fates[0]!.kind, kind, JSON.stringify(answer));
  }
});

test('what the form of a task calls its fields is known as a header, in each language', () => {
  const fields = { address: 'address', point: 'point', name: 'name', mobile: 'mobile', when: 'window', order: 'order_id', notes: 'notes' };
  for (const words of [en, de] as Record<string, string>[]) for (const [field, kind] of Object.entries(fields)) assert.equal(kindOf(words['board.form.' + field]!), kind, words['board.form.' + field]);
});
