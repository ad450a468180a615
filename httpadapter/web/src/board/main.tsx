// Starts the board.

import { render } from 'preact';
import { readConfig } from '../shared/config';
import { Board } from './board';
import { Root } from './root';

/** What the browser keeps for the page; there is none in some private windows. */
function kept(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

const board = new Board(readConfig(document), kept());
render(<Root board={board} />, document.getElementById('app')!);
await board.boot();
