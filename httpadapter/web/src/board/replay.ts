// Where a driver was at a moment of a trip, by the fixes of its path.

import { bearing, distance, near, type LngLat } from '../shared/geo';

export interface PathFix {
  at: LngLat;
  time: number; // Unix milliseconds
}

export interface Moment {
  at: LngLat;
  heading: number | null; // degrees; null where he stood
  silent: boolean; // nothing was heard of him for a while then: where he was is a guess
  passed: number; // how many fixes of the path there were by then
}

const silence = 90_000; // as the service judges fixes
const standing = 3; // metres

/** Reads the answer of /v1/triphistory; what is no fix is left out. */
export function readPath(loc: unknown): PathFix[] {
  if (!Array.isArray(loc)) return [];
  const path: PathFix[] = [];
  for (const f of loc) {
    const time = Date.parse(f?.time);
    if (Array.isArray(f?.lnglat) && f.lnglat.length === 2 && Number.isFinite(time)) path.push({ at: [Number(f.lnglat[0]), Number(f.lnglat[1])], time });
  }
  return path.sort((a, b) => a.time - b.time);
}

/** Where he was at a moment: between two fixes he went straight and at one speed, before the first and after the last he stood. */
export function momentAt(path: readonly PathFix[], ms: number): Moment | null {
  if (path.length === 0) return null;
  let low = 0; // how many fixes are not after ms
  let high = path.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (path[mid]!.time <= ms) low = mid + 1;
    else high = mid;
  }
  const a = path[Math.max(0, low - 1)]!;
  const b = path[low];
  if (low === 0 || !b) return { at: a.at, heading: null, silent: false, passed: low };
  const part = (ms - a.time) / (b.time - a.time);
  const lng = near(b.at[0], a.at[0]);
  const at: LngLat = [near(a.at[0] + (lng - a.at[0]) * part, 0), a.at[1] + (b.at[1] - a.at[1]) * part];
  const moves = distance(a.at, b.at) > standing;
  return { at, heading: moves ? bearing(a.at, b.at) : null, silent: b.time - a.time > silence, passed: low };
}

/** Speeds of a replay: how many seconds of the trip go by in one. */
export const speeds = [10, 30, 60, 120] as const;
