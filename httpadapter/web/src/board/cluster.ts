// Which points of a map are drawn as one.

export interface Point {
  id: string;
  x: number; // px at the zoom of the map, from wherever
  y: number;
}

export interface Cluster<P extends Point> {
  key: string;
  x: number; // the middle of those within
  y: number;
  points: P[];
}

/** Points by the cell of a grid that they lie in. It is that of the zoom and not of the screen, so nothing regroups while the map is moved. */
export function cluster<P extends Point>(points: readonly P[], cell: number): Cluster<P>[] {
  const cells = new Map<string, P[]>();
  for (const p of points) {
    const key = Math.floor(p.x / cell) + ' ' + Math.floor(p.y / cell);
    const there = cells.get(key);
    if (there) there.push(p);
    else cells.set(key, [p]);
  }
  return [...cells].map(([key, list]) => ({
    key,
    x: list.reduce((n, p) => n + p.x, 0) / list.length,
    y: list.reduce((n, p) => n + p.y, 0) / list.length,
    points: list,
  }));
}
