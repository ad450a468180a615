// A map within a page leaves the page its own gestures: one finger scrolls the page and two move the map; the wheel scrolls the page, and zooms the map while
// Ctrl is held or after a click. Words over the map say so to whoever tries the other way.

import type * as L from 'leaflet';
import type { Translate } from './config';

const hintFor = 1_500; // ms

/** Has the map yield to the page around it. */
export function yieldGestures(map: L.Map, box: HTMLElement, t: Translate): void {
  box.classList.add('yields'); // the style sheet leaves one finger to the browser
  const hint = box.ownerDocument.createElement('div');
  hint.className = 'map-hint';
  hint.setAttribute('aria-hidden', 'true'); // of no use to those who have neither finger nor wheel on the map; keys move it as ever
  box.append(hint);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const say = (words: string) => {
    hint.textContent = words;
    hint.classList.add('on');
    clearTimeout(timer);
    timer = setTimeout(unsay, hintFor);
  };
  const unsay = () => hint.classList.remove('on');

  let clicked = false;
  // Before Leaflet's own listeners, which take what follows: a mouse drags the map, a finger does not.
  box.addEventListener(
    'pointerdown',
    (e) => {
      if (e.pointerType === 'mouse') {
        map.dragging.enable();
        clicked = true;
        unsay();
      } else {
        map.dragging.disable();
      }
    },
    { capture: true },
  );
  box.addEventListener('pointerleave', (e) => {
    if (e.pointerType === 'mouse') clicked = false;
  });

  const fingers = (e: TouchEvent) => (e.touches.length === 1 ? say(t('track.map.fingers')) : unsay());
  box.addEventListener('touchmove', fingers, { passive: true });

  const key = /Mac|iP(hone|ad)/.test(navigator.platform) ? '⌘' : t('track.map.key');
  box.addEventListener(
    'wheel',
    (e) => {
      if (e.ctrlKey || e.metaKey || clicked || !scrolls()) return unsay();
      e.stopImmediatePropagation(); // not prevented: the page scrolls, or the one that this is a frame of
      say(t('track.map.scroll', { key }));
    },
    { capture: true, passive: true },
  );
}

/** Whether a wheel has something else to do than to zoom the map. */
function scrolls(): boolean {
  const root = document.documentElement;
  return window.top !== window || root.scrollHeight > root.clientHeight;
}
