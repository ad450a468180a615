// Reads a table that was pasted or dropped: CSV with commas, semicolons or bars, TSV, or cells of a spreadsheet.

export interface Row {
  line: number; // where it begins in the text, the first line is 1
  cells: string[];
}

export interface Sheet {
  rows: Row[]; // none that is empty
  width: number; // of the widest row
  open: number; // the line of a quote that nothing closes; 0: there is none
}

const separators = ['\t', ';', ',', '|'] as const;

/** Reads a table as RFC 4180 has it, with whichever separator fits. What is quoted may hold separators, quotes doubled, and line breaks. */
export function readSheet(text: string): Sheet {
  text = text.replace(/^\uFEFF/, '');
  const named = /^sep=(.)\r?\n/i.exec(text); // what spreadsheets write for one another
  const separator = named ? named[1]! : guess(text);
  const sheet = split(named ? text.slice(named[0].length) : text, separator);
  if (named) for (const row of sheet.rows) row.line++;
  return sheet;
}

/** The separator that makes most columns, the same number in most rows. Tabs, of which addresses have none, win over all others. */
function guess(text: string): string {
  const head = text.slice(0, 20_000);
  let best = ',';
  let most = 0;
  for (const separator of separators) {
    const widths = split(head, separator, 30).rows.map((r) => r.cells.length);
    const counts = new Map<number, number>();
    for (const w of widths) if (w > 1) counts.set(w, (counts.get(w) ?? 0) + 1);
    for (const [width, rows] of counts) {
      const fits = (rows / widths.length) * (1 + Math.min(width, 12) / 4) * (separator === '\t' ? 4 : 1);
      if (fits > most) [best, most] = [separator, fits];
    }
  }
  return best;
}

function split(text: string, separator: string, atMost = Infinity): Sheet {
  const rows: Row[] = [];
  let cells: string[] = [];
  let cell = '';
  let width = 0;
  let line = 1;
  let began = 1; // the row
  let open = 0;
  const endCell = () => {
    cells.push(cell.trim());
    cell = '';
  };
  const endRow = () => {
    endCell();
    if (cells.some((c) => c !== '')) {
      rows.push({ line: began, cells });
      width = Math.max(width, cells.length);
    }
    cells = [];
    began = line + 1;
  };
  let i = 0;
  while (i < text.length && rows.length < atMost) {
    const c = text[i]!;
    if (c === '"' && cell.trim() === '') {
      const end = closing(text, i + 1);
      if (end < 0) {
        // Inches, and not a quote: it is a text like any other up to the end of its cell.
        open ||= line;
        cell += c;
        i++;
        continue;
      }
      const inside = text.slice(i + 1, end);
      line += breaks(inside);
      cell = inside.replaceAll('""', '"');
      i = end + 1;
      continue;
    }
    if (c === separator) {
      endCell();
    } else if (c === '\n' || c === '\r') {
      if (c === '\r' && text[i + 1] === '\n') i++;
      endRow();
      line++;
    } else {
      cell += c;
    }
    i++;
  }
  if (cell !== '' || cells.length > 0) endRow();
  return { rows, width, open };
}

/** Where the quote is that closes one, −1 if there is none. */
function closing(text: string, from: number): number {
  for (let i = from; ; i += 2) {
    i = text.indexOf('"', i);
    if (i < 0 || text[i + 1] !== '"') return i;
  }
}

function breaks(text: string): number {
  return text.match(/\r\n|\r|\n/g)?.length ?? 0;
}
