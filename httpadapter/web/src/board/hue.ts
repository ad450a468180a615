// Of which colour a driver's tasks are.

const hues = 12; // that the style sheet has

/** Gives each driver a colour, by the id, or else the next that fewer have: in a small company no two have the same. */
export class Hues {
  private readonly of = new Map<string, number>();
  private readonly used = new Array<number>(hues).fill(0);

  take(driver: string): number {
    const have = this.of.get(driver);
    if (have !== undefined) return have;
    let at = 0;
    for (let i = 0; i < driver.length; i++) at = (at * 31 + driver.charCodeAt(i)) >>> 0;
    at %= hues;
    const fewest = Math.min(...this.used);
    while (this.used[at]! > fewest) at = (at + 1) % hues;
    this.used[at]!++;
    this.of.set(driver, at);
    return at;
  }
}

const page = new Hues();

/** The colour that a driver has on this page. */
export const hue = (driver: string): number => page.take(driver);
