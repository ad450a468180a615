// Guesses what the columns of a pasted table are: by their headers, else by what stands in them.

import { decimal, readPoint } from './point';
import type { Row, Sheet } from './sheet';
import { readDay, readSpan, type Clock } from './when';

/** What a column may be; '' is none that is used. */
export const kinds = [
  '', 'order_id', 'address', 'street', 'number', 'postcode', 'city', 'point', 'lat', 'lng', 'name', 'mobile', 'notes', 'day', 'window', 'from', 'to',
  'pickup_address', 'pickup_point', 'pickup_name', 'pickup_mobile',
] as const;
export type Kind = (typeof kinds)[number];

export interface Table {
  header: Row | null;
  rows: Row[];
  columns: Kind[];
}

// In English and German, without case, accents and punctuation.
const words: [Kind, RegExp][] = [
  ['order_id', /^(order|auftrag|auftrags|bestellung|bestell|sendung|sendungs|lieferschein|shipment|tracking|reference|referenz|ref|rechnung|rechnungs|invoice|external|kunden)? ?(id|nr|no|num|number|nummer|ref|reference|referenz)$|^(order|auftrag|bestellung|sendung|lieferschein|shipment|reference|referenz|invoice|rechnung|ordernumber|orderid|auftragsnummer|bestellnummer|sendungsnummer)$/],
  ['number', /^(house|haus|building) ?(no|nr|number|nummer)$/],
  ['address', /^((delivery|drop|drop off|dropoff|destination|ship to|shipping|customer|full|liefer|ziel|empfanger|kunden|zustell|to) ?)?(address|adresse|addresse|anschrift|location|ort und strasse)( ?1)?$|^(destination|ziel|lieferort|drop|dropoff|drop off|wohin)$/],
  ['street', /^(street|strasse|str|street address|strasse und hausnummer|strasse hausnummer|strasse hausnr|strasse nr|street and number|address line 1)$/],
  ['postcode', /^(zip|zip ?code|post ?code|postal ?code|plz|postleitzahl)$/],
  ['city', /^(city|town|ort|stadt|wohnort|place)$/],
  ['point', /^(coordinates|coords|koordinaten|geo|gps|lat ?lng|lat ?lon|lat ?long|latitude longitude|position|standort|place on the map|ort auf der karte)$/],
  ['lat', /^(lat|latitude|breite|breitengrad|geo lat)$/],
  ['lng', /^(lng|lon|long|longitude|lange|langengrad|geo lng|geo lon)$/],
  ['mobile', /^((customer|contact|recipient|empfanger|kunden) ?)?(phone|mobile|telephone|tel|cell|telefon|handy|mobil|rufnummer|handynummer|telefonnummer|mobilnummer|phone ?(no|nr|number)|mobile ?(no|nr|number)|tel ?nr|telefon ?nr)$/],
  ['name', /^((customer|contact|recipient|client|empfanger|kunden|full|ansprech|last|nach) ?)?(name|partner)$|^(customer|contact|recipient|consignee|client|kunde|kundin|empfanger|empfangerin|kontakt|ansprechpartner)$/],
  ['notes', /^(note|notes|comment|comments|remark|remarks|instruction|instructions|delivery (notes|instructions)|message|info|hinweis|hinweise|notiz|notizen|bemerkung|bemerkungen|anmerkung|anmerkungen|kommentar|lieferhinweis|lieferhinweise)( for the driver| fur den fahrer)?$/],
  ['day', /^((delivery|liefer|zustell|ship) ?)?(date|day|datum|tag|termin)$/],
  ['window', /^((delivery|liefer|zustell) ?)?(time|window|time ?window|slot|time ?slot|zeitfenster|fenster|zeit|uhrzeit|zeitraum|wann|when)$/],
  ['from', /^(from|earliest|after|start|starts|begin|begins|not before|window from|von|ab|fruhestens|beginn)$|^(time|zeit|uhrzeit|lieferzeit|zeitfenster|window) (from|start|von|ab)$/],
  ['to', /^(to|until|till|latest|before|by|end|ends|due|deadline|promised|window to|bis|spatestens|ende|frist|zugesagt)$|^(time|zeit|uhrzeit|lieferzeit|zeitfenster|window) (to|end|bis)$/],
];

const pickup = /^(pickup|pick up|collection|collect|sender|origin|from|abhol|abholung|abhol ?ort|absender|versender|laden|shop|store) ?/;
const pickupAlone = /^(pickup|pick up|collection|origin|abholung|abholort|absender|woher)$/;

/** A header as it is compared. */
function plain(header: string): string {
  return header
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/** What a header says that its column is; '' where it is no word of ours. */
export function kindOf(header: string): Kind {
  const h = plain(header);
  const kind = words.find(([, word]) => word.test(h))?.[0] ?? '';
  if (kind !== '') return kind;
  if (pickupAlone.test(h)) return 'pickup_address';
  const rest = h.replace(pickup, '');
  if (rest === h) return '';
  const of = words.find(([, word]) => word.test(rest))?.[0];
  return of === 'address' || of === 'point' || of === 'name' || of === 'mobile' ? (`pickup_${of}` as Kind) : of === 'street' ? 'pickup_address' : '';
}

/** Finds the header, if there is one, and what each column is. No two columns are the same. */
export function guessColumns(sheet: Sheet, c: Clock): Table {
  const first = sheet.rows[0];
  const columns: Kind[] = Array.from({ length: sheet.width }, () => '');
  if (!first) return { header: null, rows: [], columns };
  const header = isHeader(first) ? first : null;
  const rows = header ? sheet.rows.slice(1) : sheet.rows;
  const take = (i: number, kind: Kind) => {
    if (kind !== '' && columns[i] === '' && !columns.includes(kind)) columns[i] = kind;
  };
  header?.cells.forEach((cell, i) => take(i, kindOf(cell)));
  // A header that says nothing to us stands over something else than what we look for; only where to go we cannot do without.
  const free = (i: number) => columns[i] === '' && (header === null || !(header.cells[i] ?? ''));
  byContent(rows.slice(0, 60), sheet.width, c, take, free, columns);
  return { header, rows, columns };
}

/** A first row is a header where it holds words of ours, and nothing that only data can be. */
function isHeader(row: Row): boolean {
  const filled = row.cells.filter((cell) => cell !== '');
  return filled.some((cell) => kindOf(cell) !== '') && !filled.some((cell) => isPhone(cell) || readPoint(cell) !== null || /\d{3}/.test(cell));
}

const isPhone = (cell: string) => /^(?:\+|00|0|\()[\d\s()/.-]{6,24}$/.test(cell) && cell.replace(/\D/g, '').length >= 7 && !/^\d+\.\d+$/.test(cell);
const isOrder = (cell: string) => /^(?=.*\d)[#\p{L}\d/_.-]{1,24}$/u.test(cell) && !/^\d{1,3}\.\d{3,}$/.test(cell);
const isName = (cell: string) => /^\p{L}[\p{L}.'’-]*(?: \p{L}[\p{L}.'’-]*){0,4}$/u.test(cell);
const isAddress = (cell: string) => cell.length >= 6 && /\p{L}{2}/u.test(cell) && /\d/.test(cell) && /[\s,]/.test(cell);

/** Gives columns that have no header a kind, the surest first. */
function byContent(rows: Row[], width: number, c: Clock, take: (i: number, kind: Kind) => void, free: (i: number) => boolean, columns: Kind[]): void {
  const cells = Array.from({ length: width }, (_, i) => rows.map((r) => r.cells[i] ?? '').filter((cell) => cell !== ''));
  const share = (i: number, is: (cell: string) => boolean) => (cells[i]!.length === 0 ? 0 : cells[i]!.filter(is).length / cells[i]!.length);
  const give = (kind: Kind, is: (cell: string) => boolean, atLeast = 0.7) => {
    let best = -1;
    for (let i = 0; i < width; i++) if (free(i) && share(i, is) >= atLeast && (best < 0 || share(i, is) > share(best, is))) best = i;
    if (best >= 0) take(best, kind);
  };
  const isDegrees = (most: number) => (cell: string) => /^[-−]?\d{1,3}[.,]\d{3,}$/.test(cell) && Math.abs(decimal(cell)) <= most;
  const isDay = (cell: string) => readDay(cell, c)?.rest === '';
  const isSpan = (cell: string) => {
    const s = readSpan(cell, c);
    return s !== null && s.from !== undefined && s.to !== undefined;
  };

  if (!columns.includes('lat') && !columns.includes('point')) {
    give('point', (cell) => readPoint(cell) !== null && /[.,]\d/.test(cell));
    for (let i = 0; i + 1 < width && !columns.includes('lat') && !columns.includes('point'); i++) {
      if (!free(i) || !free(i + 1) || share(i, isDegrees(90)) < 0.7 || share(i + 1, isDegrees(180)) < 0.7) continue;
      take(i, 'lat');
      take(i + 1, 'lng');
    }
  }
  give('window', isSpan);
  give('day', isDay);
  give('mobile', isPhone);
  if (!columns.includes('window') && !columns.includes('from')) give('window', (cell) => readSpan(cell, c) !== null);
  if (columns.includes('street') && !columns.includes('postcode')) give('postcode', (cell) => /^\d{4,5}$/.test(cell));
  if (!columns.includes('address') && !columns.includes('street')) {
    // The longest of those that look like one; a second one before it is where to fetch.
    give('address', isAddress, 0.6);
  }
  const distinct = (i: number) => new Set(cells[i]).size === cells[i]!.length;
  for (let i = 0; i < width; i++) if (free(i) && distinct(i) && share(i, isOrder) >= 0.8) take(i, 'order_id');
  give('name', isName, 0.6);
  if (!columns.includes('address') && !columns.includes('street') && !columns.includes('point') && !columns.includes('lat')) give('address', (cell) => /\p{L}{2}/u.test(cell), 0.6);
  for (let i = 0; i < width; i++) if (free(i) && share(i, (cell) => /\p{L}{2}/u.test(cell)) > 0.5) take(i, 'notes');
}
