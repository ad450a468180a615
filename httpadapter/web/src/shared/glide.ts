// How a marker moves from fix to fix: it glides and turns, and jumps where gliding would tell a lie.

import { bearing, distance, near, turn, type LngLat } from './geo';

export interface Pose {
  at: LngLat;
  heading: number | null; // degrees, null: unknown
}

export interface Fix extends Pose {
  time: number; // when it was measured, ms
}

export const snapDistance = 300; // metres
export const snapGap = 60_000; // ms between two fixes
const longest = 4_000; // ms that a glide takes at most
const shortest = 400;
const creep = 4; // metres that tell nothing about a direction

/** A movement from one pose to another that takes `duration` ms; 0 is a jump. */
export interface Glide {
  from: Pose;
  to: Pose;
  duration: number;
}

/** Plans the way to the next fix from where the marker is shown now. */
export function plan(shown: Pose | null, previous: Fix | null, next: Fix, reducedMotion: boolean): Glide {
  let heading = next.heading;
  if (heading === null && previous) {
    heading = distance(previous.at, next.at) >= creep ? bearing(previous.at, next.at) : (shown?.heading ?? null);
  }
  const to: Pose = { at: next.at, heading };
  if (!shown || !previous) return { from: to, to, duration: 0 };
  to.at = [near(next.at[0], shown.at[0]), next.at[1]];
  const gap = Math.abs(next.time - previous.time);
  if (reducedMotion || gap > snapGap || distance(shown.at, next.at) > snapDistance) {
    return { from: to, to, duration: 0 };
  }
  return { from: shown, to, duration: Math.min(longest, Math.max(shortest, gap)) };
}

/** The pose after `elapsed` ms. The place moves evenly, the heading turns within the first third. */
export function pose(g: Glide, elapsed: number): Pose {
  const f = g.duration > 0 ? Math.min(1, Math.max(0, elapsed / g.duration)) : 1;
  if (f >= 1) return g.to;
  const at: LngLat = [
    g.from.at[0] + (g.to.at[0] - g.from.at[0]) * f,
    g.from.at[1] + (g.to.at[1] - g.from.at[1]) * f,
  ];
  let heading = g.to.heading;
  if (heading !== null && g.from.heading !== null) {
    heading = g.from.heading + turn(g.from.heading, heading) * Math.min(1, f * 3);
    heading = (heading + 360) % 360;
  }
  return { at, heading };
}
