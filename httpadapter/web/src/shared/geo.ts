// Geometry on the sphere and on the screen's map. Positions are [longitude, latitude] in degrees, as on the wire.

export type LngLat = [number, number];

const earthRadius = 6371008.8; // metres, mean radius
const rad = Math.PI / 180;

/** Great-circle distance in metres. */
export function distance(a: LngLat, b: LngLat): number {
  const sy = Math.sin(((b[1] - a[1]) * rad) / 2);
  const sx = Math.sin(((b[0] - a[0]) * rad) / 2);
  const h = sy * sy + Math.cos(a[1] * rad) * Math.cos(b[1] * rad) * sx * sx;
  return 2 * earthRadius * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** Initial great-circle bearing from a to b, degrees clockwise from north, 0 … 360. */
export function bearing(a: LngLat, b: LngLat): number {
  const dx = (b[0] - a[0]) * rad;
  const y = Math.sin(dx) * Math.cos(b[1] * rad);
  const x = Math.cos(a[1] * rad) * Math.sin(b[1] * rad) - Math.sin(a[1] * rad) * Math.cos(b[1] * rad) * Math.cos(dx);
  return (Math.atan2(y, x) / rad + 360) % 360;
}

/** The longitude equal to lng that is nearest to another: a line across ±180° must not run around the Earth. */
export function near(lng: number, other: number): number {
  return lng - 360 * Math.round((lng - other) / 360);
}

/** A path whose longitudes run on across ±180°. */
export function unwrap(path: readonly LngLat[], start?: number): LngLat[] {
  let last = start;
  return path.map(([lng, lat]) => {
    const l = last === undefined ? lng : near(lng, last);
    last = l;
    return [l, lat];
  });
}

/** The angle from one heading to another by the shorter turn, −180 … 180. */
export function turn(from: number, to: number): number {
  return ((((to - from) % 360) + 540) % 360) - 180;
}

export function isLngLat(v: unknown): v is LngLat {
  return (
    Array.isArray(v) &&
    v.length === 2 &&
    v.every((n) => typeof n === 'number' && Number.isFinite(n)) &&
    Math.abs(v[0]) <= 180 &&
    Math.abs(v[1]) <= 90
  );
}
