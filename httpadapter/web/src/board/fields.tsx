// Fields of the panels' forms.

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import type { Board } from './board';
import type { Task } from './model';

/** Gives an element the focus once it is there, after the panel's heading had it, unless somebody writes already. */
export function useFocus<T extends HTMLElement>(wanted = true) {
  const ref = useRef<T>(null);
  useEffect(() => {
    if (wanted && !document.activeElement?.matches('.panel :is(input, textarea, select)')) ref.current?.focus();
  }, []);
  return ref;
}

interface FieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  error?: string;
  type?: 'text' | 'tel' | 'email' | 'search' | 'number';
  name?: string;
  max?: number;
  rows?: number; // of a text with lines
  focus?: boolean; // has the focus at first
  onFocus?: () => void;
}

/** A text to be written, with its label, a hint, and what is wrong with it. */
export function Field({ label, value, onInput, hint, error, type = 'text', name, max, rows, focus, onFocus }: FieldProps) {
  const id = useId();
  const input = useFocus<HTMLInputElement>(focus === true && !rows);
  const about = [error && id + '-error', hint && id + '-hint'].filter(Boolean).join(' ');
  const given = {
    id,
    name,
    value,
    maxLength: max,
    autocomplete: 'off',
    spellcheck: false,
    dir: 'auto' as const,
    'aria-invalid': error ? ('true' as const) : undefined,
    'aria-describedby': about || undefined,
    onFocus,
    onInput: (e: { currentTarget: { value: string } }) => onInput(e.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows ? <textarea rows={rows} {...given} /> : <input ref={input} {...given} {...({ type } as { type: 'text' })} />}
      {error && (
        <p class="error" id={id + '-error'}>
          {error}
        </p>
      )}
      {hint && (
        <p class="hint" id={id + '-hint'}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [value: string, words: string])[];
  bare?: boolean; // the label is only heard
}

export function Choice({ label, value, onChange, options, bare }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={bare ? 'sr' : undefined}>
        {label}
      </label>
      <select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {options.map(([v, words]) => (
          <option key={v} value={v}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(e) => onChange(e.currentTarget.checked)} /> {label}
    </label>
  );
}

/** A term and what it is; nothing where there is none. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === undefined || children === null || children === '' || children === false) return null;
  return (
    <div class="fact-row">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The buttons of a form: what it does, and the way back. */
export function FormButtons({ board, words, busy, onBack }: { board: Board; words: string; busy: boolean; onBack: () => void }) {
  return (
    <p class="buttons">
      <button class="do" disabled={busy}>
        {words}
      </button>
      <button type="button" class="other" onClick={onBack}>
        {board.t('board.back')}
      </button>
    </p>
  );
}

/** A button that has the focus once it is there. */
export function First({ words, onClick }: { words: string; onClick: () => void }) {
  return (
    <button type="button" class="other" ref={useFocus<HTMLButtonElement>()} onClick={onClick}>
      {words}
    </button>
  );
}

/** Does what the board has asked of the panel of a task, once. */
export function useAsked(board: Board, what: 'delete' | 'unassign', task: Task, does: () => void): void {
  const wanted = board.asking?.what === what && board.asking.of === task.task_id;
  useEffect(() => {
    if (!wanted) return;
    board.asking = null;
    does();
  }, [wanted]);
}
