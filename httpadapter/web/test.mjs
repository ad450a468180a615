// Bundles the tests and runs them with Node's own runner.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

process.chdir(import.meta.dirname);
const out = mkdtempSync(join(tmpdir(), 'tracking-web-test-'));
try {
  const tests = readdirSync('test').filter((f) => f.endsWith('.test.ts')).sort();
  await build({
    entryPoints: tests.map((f) => join('test', f)),
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'inline',
    logLevel: 'warning',
  });
  const run = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...readdirSync(out).map((f) => join(out, f))], { stdio: 'inherit' });
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
