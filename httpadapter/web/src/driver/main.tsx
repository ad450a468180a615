// Starts the driver app.

import { render } from 'preact';
import { readConfig } from '../shared/config';
import { App } from './app';
import { Install } from './install';
import { Store } from './store';
import { Root } from './views';

const config = readConfig(document);
const install = new Install(config.base);
const app = new App(config, await Store.open(), location);
await app.boot();
render(<Root app={app} install={install} />, document.getElementById('app')!);
