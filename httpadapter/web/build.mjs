// Builds src into dist. The output depends on nothing but the sources and the locked packages, so that CI can compare it with what is committed.

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { build } from 'esbuild';

const root = import.meta.dirname;
process.chdir(root);
for (const [name, want] of Object.entries(JSON.parse(readFileSync('package.json', 'utf8')).dependencies)) {
  const file = join('node_modules', name, 'package.json');
  if (!existsSync(file) || JSON.parse(readFileSync(file, 'utf8')).version !== want) throw new Error(`${name} ${want} is not there: run npm ci`);
}
// Built beside and then swapped: a Go build at the same time finds the whole of one or of the other.
const dist = 'dist.new';
const out = dist + '/assets';
rmSync(dist, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// What Leaflet brings that we do not use, or that our Content-Security-Policy forbids.
const leaflet = {
  name: 'leaflet',
  setup(b) {
    // The package's main file is UMD, which is bundled whole.
    b.onResolve({ filter: /^leaflet$/ }, () => ({ path: resolve('node_modules/leaflet/dist/leaflet-src.esm.js') }));
    // Images of controls and icons.
    b.onLoad({ filter: /leaflet[/\\]dist[/\\]leaflet\.css$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(/background-image:\s*url\([^)]*\);?/g, ''),
      loader: 'css',
    }));
    // A data: URL that tiles are set to when they are not wanted any more. An empty source cancels a request as well.
    b.onLoad({ filter: /leaflet-src\.esm\.js$/ }, ({ path }) => {
      const parts = readFileSync(path, 'utf8').split(/var emptyImageUrl = 'data:image\/gif;base64,[^']*';/);
      if (parts.length !== 2) throw new Error('Leaflet has changed: where is emptyImageUrl?');
      return { contents: parts.join("var emptyImageUrl = '';"), loader: 'js' };
    });
  },
};

// It takes Leaflet from the page's globals.
const protomaps = {
  name: 'protomaps',
  setup(b) {
    b.onLoad({ filter: /protomaps-leaflet[/\\]dist[/\\]esm[/\\]index\.js$/ }, ({ path }) => ({
      contents: `import * as L from 'leaflet';\n${readFileSync(path, 'utf8')}`,
      loader: 'js',
    }));
  },
};

const common = {
  bundle: true,
  minify: true,
  charset: 'utf8',
  legalComments: 'none', // dist/LICENSES.txt has them
  target: ['chrome111', 'firefox115', 'safari16.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  metafile: true,
  logLevel: 'warning',
  plugins: [leaflet, protomaps],
};

const scripts = await build({
  ...common,
  entryPoints: { track: 'src/track/page.ts', driver: 'src/driver/main.tsx', board: 'src/board/main.tsx' },
  outdir: out,
  format: 'esm',
  splitting: true,
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
});
const sheets = await build({
  ...common,
  entryPoints: { track: 'src/track/track.css', driver: 'src/driver/driver.css', board: 'src/board/board.css' },
  outdir: out,
  entryNames: '[name]-[hash]',
});

const entries = {};
for (const [file, o] of [...Object.entries(scripts.metafile.outputs), ...Object.entries(sheets.metafile.outputs)]) {
  const source = o.entryPoint;
  if (!source) continue;
  const name = {
    'src/track/page.ts': 'track.js',
    'src/driver/main.tsx': 'driver.js',
    'src/board/main.tsx': 'board.js',
    'src/shared/map.ts': 'map.js',
    'src/shared/basemap.ts': 'basemap.js',
    'src/track/track.css': 'track.css',
    'src/driver/driver.css': 'driver.css',
    'src/board/board.css': 'board.css',
  }[source];
  if (name) entries[name] = basename(file);
}

// What the map needs, so that both are asked for at once.
const library = Object.entries(scripts.metafile.outputs).find(([, o]) => Object.keys(o.inputs).some((i) => i.endsWith('leaflet-src.esm.js')));
entries['leaflet.js'] = basename(library[0]);

for (const file of readdirSync('icons').sort()) {
  const dot = file.lastIndexOf('.');
  const hash = createHash('sha256').update(readFileSync(join('icons', file))).digest('hex').slice(0, 8).toUpperCase();
  const built = `${file.slice(0, dot)}-${hash}${file.slice(dot)}`;
  cpSync(join('icons', file), join(out, built));
  entries[file] = built;
}

// What the driver app needs offline: its script with the chunks it may load, its style and its icon. A vector map is not there without a
// network, so neither is what draws it.
const needed = new Set([entries['driver.css'], entries['icon.svg'], entries['icon-192.png']]);
const follow = (file) => {
  if (needed.has(basename(file)) || scripts.metafile.outputs[file].entryPoint === 'src/shared/basemap.ts') return;
  needed.add(basename(file));
  for (const i of scripts.metafile.outputs[file].imports) if (!i.external) follow(i.path);
};
follow(join(out, entries['driver.js']));
const version = createHash('sha256').update([...needed].sort().join()).digest('hex').slice(0, 12);
await build({
  ...common,
  entryPoints: ['src/worker/sw.ts'],
  outfile: dist + '/sw.js',
  format: 'iife',
  define: { ASSETS: JSON.stringify([...needed].sort()), VERSION: JSON.stringify(version), ICON: JSON.stringify(entries['icon-192.png']) },
});

const sorted = Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(dist + '/entries.json', JSON.stringify(sorted, null, 2) + '\n');

// The licences of what is bundled, from the packages themselves. Two come without the text, which is that of a third by the same authors
// but for the first line.
const borrowed = {
  pmtiles: ['protomaps-leaflet', 'Copyright 2021 Protomaps LLC'],
  '@protomaps/basemaps': ['protomaps-leaflet', 'Copyright 2019-2023 Protomaps LLC, Kelso Cartography'],
};
const bundled = new Set();
for (const meta of [scripts.metafile, sheets.metafile]) {
  for (const input of Object.keys(meta.inputs)) {
    const m = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (m) bundled.add(m[1]);
  }
}
let licences = 'The files in this folder contain the following packages.\n';
for (const name of [...bundled].sort()) {
  const dir = join('node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const [from, first] = borrowed[name] ?? [name];
  const folder = join('node_modules', from);
  const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
  let text = readFileSync(join(folder, file), 'utf8').replace(/\r\n/g, '\n').trim();
  if (first) text = text.replace(/^Copyright .*/, first);
  licences += `\n${'-'.repeat(72)}\n${name} ${version} (${license})\n\n${text}\n`;
}
writeFileSync(dist + '/LICENSES.txt', licences);

rmSync('dist', { recursive: true, force: true });
renameSync(dist, 'dist');
