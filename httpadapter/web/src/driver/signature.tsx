// A signature by finger or pen.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { App } from './app';

export type Point = [x: number, y: number]; // as shares of the pad's width, so that it can be drawn at any size
export type Stroke = Point[];

export const shape = 2; // of the pad: so many times as wide as it is high
const exported = 600; // px
const thickness = 1 / 150; // of the width

/** Whether there is more than a touch: somebody has moved the pen. */
export function signed(strokes: readonly Stroke[]): boolean {
  const all = strokes.flat();
  const spread = (i: 0 | 1) => Math.max(...all.map((p) => p[i])) - Math.min(...all.map((p) => p[i]));
  return all.length > 2 && Math.max(spread(0), spread(1)) > 0.05;
}

/** Draws strokes in dark on white, whatever the screen's colours are: it is kept on paper's terms. */
export function draw(c: CanvasRenderingContext2D, strokes: readonly Stroke[], width: number): void {
  c.fillStyle = '#fff';
  c.fillRect(0, 0, width, width / shape);
  c.strokeStyle = c.fillStyle = '#14171c';
  c.lineWidth = Math.max(1.5, width * thickness);
  c.lineCap = c.lineJoin = 'round';
  for (const stroke of strokes) {
    const [first, ...rest] = stroke.map(([x, y]): Point => [x * width, y * width]);
    if (!first) continue;
    c.beginPath();
    c.moveTo(...first);
    let last = first;
    for (const p of rest) {
      c.quadraticCurveTo(...last, (last[0] + p[0]) / 2, (last[1] + p[1]) / 2);
      last = p;
    }
    c.lineTo(...last); // a dot, too
    c.stroke();
  }
}

function png(strokes: readonly Stroke[]): Promise<Blob | null> {
  const canvas = Object.assign(document.createElement('canvas'), { width: exported, height: exported / shape });
  const c = canvas.getContext('2d');
  if (!c) return Promise.resolve(null);
  draw(c, strokes, exported);
  return new Promise((done) => canvas.toBlob(done, 'image/png'));
}

/** The pad. onSigned is told of each state of it, null when there is no signature. */
export function Pad({ app, onSigned }: { app: App; onSigned: (signature: Blob | null) => void }) {
  const { t } = app;
  const ref = useRef<HTMLCanvasElement>(null);
  const strokes = useRef<Stroke[]>([]);
  const pen = useRef<number | null>(null);
  const [empty, setEmpty] = useState(true);

  const redraw = () => {
    const canvas = ref.current;
    if (!canvas) return; // it has just gone
    const width = Math.round(canvas.clientWidth * devicePixelRatio);
    if (canvas.width !== width) Object.assign(canvas, { width, height: Math.round(width / shape) });
    const c = canvas.getContext('2d');
    if (c) draw(c, strokes.current, width);
  };
  useLayoutEffect(redraw, []);
  useEffect(() => {
    const seen = new ResizeObserver(redraw);
    seen.observe(ref.current!);
    return () => seen.disconnect();
  }, []);

  const point = (e: PointerEvent): Point => {
    const at = ref.current!.getBoundingClientRect();
    return [(e.clientX - at.left) / at.width, (e.clientY - at.top) / at.width];
  };
  const down = (e: PointerEvent) => {
    if (pen.current !== null || e.button !== 0) return; // another finger, or the hand
    pen.current = e.pointerId;
    ref.current!.setPointerCapture(e.pointerId);
    strokes.current.push([point(e)]);
    setEmpty(false);
    redraw();
  };
  const move = (e: PointerEvent) => {
    if (e.pointerId !== pen.current) return;
    const all = e.getCoalescedEvents?.() ?? [];
    strokes.current.at(-1)!.push(...(all.length > 0 ? all : [e]).map(point));
    redraw();
  };
  const up = (e: PointerEvent) => {
    if (e.pointerId !== pen.current) return;
    pen.current = null;
    if (signed(strokes.current)) void png(strokes.current).then((blob) => blob && strokes.current.length > 0 && onSigned(blob));
  };
  const clear = () => {
    strokes.current = [];
    setEmpty(true);
    redraw();
    onSigned(null);
  };

  return (
    <div class="pad">
      <canvas
        ref={ref}
        role="img"
        aria-label={t(empty ? 'driver.proof.sign.empty' : 'driver.proof.sign.signed')}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={up}
      />
      <div class="pad-foot">
        <span class="sub">{t('driver.proof.sign.hint')}</span>
        <button type="button" class="quiet" disabled={empty} onClick={clear}>
          {t('driver.proof.clear')}
        </button>
      </div>
    </div>
  );
}
