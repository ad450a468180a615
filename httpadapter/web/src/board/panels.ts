// What opens over the board: a task, a driver, a form, a search. A panel is added in three steps.
//
// 1. Write its view, a component that is given the board and what it is of (a task's id, say, or '').
//    What is on the screen comes from board.world and is redrawn as that changes; what changes
//    something goes through board.act, which marks the rows meanwhile, learns from the answer, and
//    tells what went wrong. Nothing is shown as done before that.
// 2. Name it below. `title` is the key of its heading's text; a panel with `key` opens by that key and
//    is listed among the keys by `does`; one with `button` has a button of these words in the head.
//    One that is for changing something says `changes`: who may only look never gets it.
// 3. Open it from elsewhere by board.open(name, of), or by a link to '#name/of'.
//
// The frame has the heading, and closes by its button, Escape, and the browser's own way back.

import type { ComponentType } from 'preact';
import { AssignPanel } from './assign';
import type { Board } from './board';
import { DayPanel } from './day';
import { EditPanel, NewPanel } from './new';
import { PastePanel } from './pastepanel';
import { DriverPanel, PeoplePanel } from './people';
import { ReplayPanel } from './replaypanel';
import { SearchPanel } from './searchpanel';
import { SeveralPanel } from './several';
import { TaskPanel } from './task';

export interface Panel {
  View: ComponentType<{ board: Board; of: string }>;
  title: string;
  key?: string; // of the keyboard, in small letters
  does?: string;
  button?: string;
  changes?: boolean;
}

export const panels: Record<string, Panel> = {
  new: { View: NewPanel, title: 'board.new.title', key: 'n', button: 'board.new.button', changes: true },
  paste: { View: PastePanel, title: 'board.paste.title', key: 'p', button: 'board.paste.button', changes: true },
  search: { View: SearchPanel, title: 'board.search.title', key: '/', button: 'board.search.button' },
  people: { View: PeoplePanel, title: 'board.people.title', button: 'board.people.button' },
  day: { View: DayPanel, title: 'board.day.title', button: 'board.day.button' },
  task: { View: TaskPanel, title: 'board.task.title' },
  edit: { View: EditPanel, title: 'board.edit.title', changes: true },
  driver: { View: DriverPanel, title: 'board.driver.title' },
  replay: { View: ReplayPanel, title: 'board.replay.title' },
  assign: { View: AssignPanel, title: 'board.assign.title', changes: true },
  several: { View: SeveralPanel, title: 'board.several.title', key: 'h', does: 'board.key.several', changes: true },
};

/** The panel of a name, if whoever is signed in may have it. */
export function panelOf(name: string, mayChange: boolean): Panel | null {
  const p = Object.hasOwn(panels, name) ? panels[name]! : null;
  return p && (mayChange || !p.changes) ? p : null;
}
