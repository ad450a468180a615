// Places as people write them: latitude first, as maps show it. Inside and on the wire it is longitude first.

import type { LngLat } from '../shared/geo';

const number = String.raw`[-+−]?\d{1,3}(?:[.,]\d+)?`;
const pair = new RegExp(String.raw`^(?:geo:)?\s*([NS]?)\s*(${number})\s*°?\s*([NS]?)\s*[,;/\s]\s*([EWO]?)\s*(${number})\s*°?\s*([EWO]?)$`, 'i');

/** A number with a dot or a comma before its decimals; NaN for anything else. */
export function decimal(text: string): number {
  return new RegExp(`^${number}$`).test(text.trim()) ? Number(text.trim().replace('−', '-').replace(',', '.')) : NaN;
}

/** The place that "latitude, longitude" tells; null where that is none. "0, 0" is none: it is what devices send that do not know. */
export function readPoint(text: string): LngLat | null {
  const m = pair.exec(text.trim());
  if (!m) return null;
  const side = (a: string, b: string, negative: string) => (negative.includes((a || b || '-').toUpperCase()) ? -1 : 1);
  return toPoint(decimal(m[2]!) * side(m[1]!, m[3]!, 'S'), decimal(m[5]!) * side(m[4]!, m[6]!, 'W'));
}

/** The place of a latitude and a longitude, null where there is none such. */
export function toPoint(lat: number, lng: number): LngLat | null {
  if (!(Math.abs(lat) <= 90 && Math.abs(lng) <= 180) || (lat === 0 && lng === 0)) return null;
  return [lng, lat];
}

/** A place as it is written to be read, and read again by readPoint: to about 10 cm. */
export function writePoint([lng, lat]: LngLat): string {
  const short = (n: number) => String(Number(n.toFixed(6)));
  return short(lat) + ', ' + short(lng);
}
