// Starts the driver app.

import { render } from 'preact';
import { readConfig, translator } from '../shared/config';
import { App } from './app';
import { Install } from './install';
import { Store } from './store';
import { Root } from './views';

const config = readConfig(document);
const root = document.getElementById('app')!;
const store = await Store.open().catch(() => null);
if (store) {
  const install = new Install(config.base);
  const app = new App(config, store, location);
  if (await app.boot()) render(<Root app={app} install={install} />, root);
} else {
  // Without a store a token, and what the driver did, would be lost with the page.
  render(<p class="note warn">{translator(config.words)('driver.storage')}</p>, root);
}
