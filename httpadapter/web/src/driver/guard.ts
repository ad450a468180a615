// One tap, one step. After a step another button stands where the first one was, or the list has
// moved: a second tap, meant for the first button, must not hit it.

/** How long after a step no other is taken, in ms: a double tap is over, and the screen has changed before the eye. */
export const settling = 800;

/**
 * How long the place where a step was tapped holds no other button, and the list keeps its order,
 * in ms. It is also how long the last step of a task waits for an Undo before it is sent.
 */
export const calm = 5_000;

/** How far in px from the last step's place a tap still is of the same finger. */
export const fingertip = 40;

export interface Point {
  x: number;
  y: number;
}

/** Whether b is where a finger was that tapped a. */
export function sameFinger(a: Point | null, b: Point | null): boolean {
  return a !== null && b !== null && Math.hypot(a.x - b.x, a.y - b.y) < fingertip;
}

export class TapGuard {
  private until = 0;
  private last: { at: number; point: Point } | null = null; // of the taps at buttons
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** onOpen is called when taps are taken again. */
  constructor(
    private readonly onOpen: () => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  get closed(): boolean {
    return this.now() < this.until;
  }

  /** Takes a tap that does something, and no further one for a while. False: this one came too soon. */
  take(): boolean {
    if (this.closed) return false;
    this.close();
    return true;
  }

  /**
   * Whether a tap at a button is another one of a finger that has just tapped one: the second half
   * of a double tap. Who drums goes on being one finger until it rests.
   */
  again(point: Point): boolean {
    const last = this.last;
    this.last = { at: this.now(), point };
    return last !== null && this.now() - last.at < settling && sameFinger(last.point, point);
  }

  /** Takes no tap for a while: what is on the screen has just moved. */
  close(): void {
    this.until = this.now() + settling;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.until = 0; // a browser's timers and its clock differ by a little, and this one does not ring again
      this.onOpen();
    }, settling);
  }
}

const jitter = 8; // px that a button may move without anybody missing it

/**
 * Knows which buttons have come or moved by themselves, as when news push the page down. A finger
 * that is on its way by then was meant for what stood there before. Scrolling and what the reader
 * opens move nothing by themselves: only what happens between before and after counts.
 */
export class Stillness<Button extends object> {
  private was: Map<Button, Point> | null = null;
  private readonly moved = new WeakMap<Button, number>();

  constructor(
    private readonly where: () => Map<Button, Point>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** The screen is about to be drawn anew, without the reader's doing. */
  before(): void {
    this.was ??= this.where();
  }

  /** The screen has been drawn. */
  after(): void {
    const was = this.was;
    if (!was) return;
    this.was = null;
    for (const [button, at] of this.where()) {
      const old = was.get(button);
      if (!old || Math.hypot(at.x - old.x, at.y - old.y) > jitter) this.moved.set(button, this.now());
    }
  }

  /** Whether a button has stood where it is for long enough to be meant. */
  stands(button: Button): boolean {
    return this.now() - (this.moved.get(button) ?? -Infinity) >= settling;
  }
}
