// Writes a table for spreadsheets.

/** A cell that no spreadsheet takes for a formula, whoever wrote what is in it. */
export function safeCell(text: string): string {
  return /^[\s\u00a0\ufeff]*[=+\-@＝＋－＠]/.test(text) || /^[\t\r\n]/.test(text) ? "'" + text : text;
}

/** CSV as RFC 4180 has it, with the separator that spreadsheets of a language expect, and the mark by which they see that it is UTF-8. */
export function writeCSV(rows: readonly (readonly string[])[], separator: ',' | ';'): string {
  const cell = (text: string) => {
    const safe = safeCell(text);
    return /[",;\t\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  return '\uFEFF' + rows.map((r) => r.map(cell).join(separator) + '\r\n').join('');
}

/** The separator of a language: where numbers have a comma, lists have a semicolon. */
export function separatorOf(locale: string): ',' | ';' {
  return new Intl.NumberFormat(locale).format(1.5).includes(',') ? ';' : ',';
}
