import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSheet } from '../src/board/sheet';

const cells = (text: string) => readSheet(text).rows.map((r) => r.cells);

test('the separator is found, whatever else the cells hold', () => {
  for (const separator of ['\t', ';', ',', '|']) {
    const text = [['Order', 'Address', 'Name'], ['#1', 'Hauptstr. 1', 'Anna'], ['#2', 'Weg 2', 'Bo']].map((r) => r.join(separator)).join('\n');
    assert.deepEqual(cells(text), [['Order', 'Address', 'Name'], ['#1', 'Hauptstr. 1', 'Anna'], ['#2', 'Weg 2', 'Bo']], JSON.stringify(separator));
  }
  assert.deepEqual(cells('#1;Hauptstr. 1, 10115 Berlin\n#2;Weg 2, 10117 Berlin\n'), [['#1', 'Hauptstr. 1, 10115 Berlin'], ['#2', 'Weg 2, 10117 Berlin']]);
  assert.deepEqual(cells('#1\tHauptstr. 1, Berlin, 2. OG; links\n#2\tWeg 2, Berlin, EG; hinten'), [['#1', 'Hauptstr. 1, Berlin, 2. OG; links'], ['#2', 'Weg 2, Berlin, EG; hinten']]);
  assert.deepEqual(cells('a;b;c\n1,5;2,5;3,5\n'), [['a', 'b', 'c'], ['1,5', '2,5', '3,5']]);
  assert.deepEqual(cells('sep=;\na,1;b\nc;d'), [['a,1', 'b'], ['c', 'd']]);
});

test('one column is one column', () => {
  assert.deepEqual(cells('Hauptstr. 1\nWeg 2\n'), [['Hauptstr. 1'], ['Weg 2']]);
  assert.deepEqual(cells(''), []);
  assert.deepEqual(cells(' \n\r\n\t'), []);
});

test('what is quoted may hold separators, quotes and lines', () => {
  assert.deepEqual(cells('a,b\r\n"x, ""y""","1\r\n2"\r\n,\r\nz,\r\n'), [['a', 'b'], ['x, "y"', '1\r\n2'], ['z', '']]);
  assert.deepEqual(cells('"a"\t"b ""c"""\n'), [['a', 'b "c"']]);
  assert.deepEqual(cells('a,5" pipe,c\n1,2,3'), [['a', '5" pipe', 'c'], ['1', '2', '3']]);
});

test('a byte order mark and every kind of line end are no content', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const sheet = readSheet('\uFEFFa;b' + end + end + '1;2' + end + '3;4');
    assert.deepEqual(sheet.rows, [{ line: 1, cells: ['a', 'b'] }, { line: 3, cells: ['1', '2'] }, { line: 4, cells: ['3', '4'] }], JSON.stringify(end));
  }
});

test('a row is told by the line where it begins', () => {
  assert.deepEqual(readSheet('a,b\n"1\n2",3\n4,5\n').rows.map((r) => r.line), [1, 2, 4]);
  assert.deepEqual(readSheet('sep=,\na,b\n1,2\n').rows.map((r) => r.line), [2, 3]);
});

test('a quote that nothing closes swallows no further row', () => {
  const sheet = readSheet('a,b\n"1,2\n3,4\n');
  assert.deepEqual(sheet.rows.map((r) => r.cells), [['a', 'b'], ['"1', '2'], ['3', '4']]);
  assert.equal(sheet.open, 2);
  assert.equal(readSheet('a,"b"').open, 0);
});

test('what is written is read', () => {
  const texts = ['', 'a', 'a b', '"', 'a"b', '""', ',', ';', '\t', '|', 'x\ny', 'x\r\ny', 'ß', '=1+1', "'", '😀'];
  const quote = (v: string) => '"' + v.replaceAll('"', '""') + '"';
  let seed = 1;
  const next = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  for (let i = 0; i < 300; i++) {
    const rows = Array.from({ length: 3 + next(4) }, () => ['k', ...Array.from({ length: 3 }, () => texts[next(texts.length)]!)]);
    for (const separator of ['\t', ';', ',', '|']) {
      const text = rows.map((r) => r.map(quote).join(separator)).join('\n');
      assert.deepEqual(cells('sep=' + separator + '\n' + text), rows.map((r) => r.map((c) => c.trim())), text);
    }
  }
});
