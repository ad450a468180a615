// The row with the next step of a stop's tasks, under the thumb.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { App, Mark } from './app';
import { nextStep, type ShownTask, type StepName } from './model';

const order: StepName[] = ['start', 'arrive', 'pickup', 'complete'];

/** The step that comes first of those that the tasks wait for, and the tasks that wait for it. */
export function stepOf(tasks: readonly ShownTask[]): { step: StepName | null; tasks: ShownTask[] } {
  const step = order.find((s) => tasks.some((t) => nextStep(t) === s)) ?? null;
  return { step, tasks: tasks.filter((t) => step !== null && nextStep(t) === step) };
}

/**
 * Each step's button is across from the one tapped before it, and where that was nothing can be hit
 * for a while; what else the row offers comes back there.
 */
export function Steps({ app, tasks, class: name, children }: { app: App; tasks: readonly ShownTask[]; class: string; children: ComponentChildren }) {
  const { t } = app;
  const { step, tasks: on } = stepOf(tasks);
  const held = tasks.filter((x) => x.held);
  const mark = app.step && !app.step.trip ? app.step : null;
  const side = app.side;
  let button: ComponentChildren = null;
  if (held.length > 0) {
    const undo: Mark = { of: held[0]!.task_id, side, words: t('driver.undone') };
    button = (
      <StepButton app={app} class="button undo" key="undo" onTap={() => app.undo(held.map((x) => x.task_id), undo)}>
        {t('driver.undo')}
      </StepButton>
    );
  } else if (step) {
    const type = on[0]!.type;
    const many = (words: string) => (on.length > 1 ? t('driver.step.all', { step: words, n: on.length }) : words);
    const words = many(t(step === 'complete' ? 'driver.complete.' + type : 'driver.step.' + step));
    const tap = () =>
      app.act(
        on.map((x) => (step === 'complete' ? { type: step, task_id: x.task_id, outcome: 'succeeded' as const } : { type: step, task_id: x.task_id })),
        { of: on[0]!.task_id, side, words },
      );
    button = (
      <StepButton app={app} class={'primary' + (step === 'complete' || step === 'pickup' ? ' good' : '')} key={on[0]!.task_id + step} onTap={tap}>
        {many(t(step === 'complete' ? 'driver.complete.' + type : 'driver.' + step))}
      </StepButton>
    );
  }
  const rest = mark ? <Done key="done" mark={mark} /> : held.length > 0 ? <span key="rest" /> : children;
  return (
    <div class={name}>
      {side === 'left' ? button : rest}
      {side === 'left' ? rest : button}
    </div>
  );
}

/** A button that takes a tap only when the screen has settled, and no repetition of a held key. */
export function StepButton({ app, class: name, onTap, children }: { app: App; class: string; onTap: () => Promise<void>; children: ComponentChildren }) {
  return (
    <button
      type="button"
      class={name}
      aria-disabled={app.guard.closed ? 'true' : undefined}
      onClick={() => void onTap()}
      onKeyDown={(e) => e.repeat && e.preventDefault()}
    >
      {children}
    </button>
  );
}

/** What was done, where its button was. It takes over the focus that the button had. */
export function Done({ mark }: { mark: Mark }) {
  const ref = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    if (document.activeElement === document.body || document.activeElement === null) ref.current!.focus({ preventScroll: true });
  }, []);
  return (
    <span class={'step-done' + (mark.refused ? ' refused' : '')} role="status" tabIndex={-1} ref={ref}>
      {mark.words}
    </span>
  );
}

