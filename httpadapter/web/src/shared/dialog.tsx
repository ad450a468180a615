// A question, or a sheet to fill in, over the screen.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** A modal dialog of the browser's own: it keeps the focus, and Escape closes it. */
export function Dialog({ title, sheet, onClose, children }: { title: string; sheet?: boolean; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const d = ref.current!;
    if (!d.open) d.showModal();
  }, []);
  return (
    <dialog ref={ref} class={'dialog' + (sheet ? ' sheet' : '')} aria-label={title} onClose={onClose} onClick={(e) => !sheet && e.target === ref.current && ref.current!.close()}>
      <div class="dialog-body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
