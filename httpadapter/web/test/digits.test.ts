import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { digitsOf, telLink } from '../src/shared/digits';

test('a number has the digits that the server compares, of any script', () => {
  const cases = JSON.parse(readFileSync('testdata/digits.json', 'utf8')) as [string, string][];
  for (const [number, want] of cases) assert.equal(digitsOf(number), want, number);
  assert.equal(digitsOf(undefined), '');
});

test('a number in any script can be called', () => {
  assert.equal(telLink('+٤٩ ١٥١'), 'tel:+49151');
  assert.equal(telLink('ext.'), null);
});
