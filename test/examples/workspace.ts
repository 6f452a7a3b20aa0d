// Installs the packages of the examples that `npm run test:examples` runs, once for all of them: as an npm workspace
// outside of `examples`, so that there each example installs by itself. package-lock.json beside this file keeps the
// versions; `node test/examples/workspace.ts --update` renews it.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

/** Where copies of the examples run. */
export const WORKSPACE = fileURLToPath(new URL('../../node_modules/.cache/examples', import.meta.url));

const LOCK = fileURLToPath(new URL('./package-lock.json', import.meta.url));

/** Examples with a package.json that are not run here, each with the reason. */
export const NOT_RUN: Record<string, string> = {
  'react-native': 'needs a device',
  'testing-cypress': "the program of Cypress is not a package of npm's: it is downloaded from its maker",
  'testcontainers-node': 'it needs a container engine; its README says how it was checked',
};

/** Returns the examples of Node.js that are run. */
export function runnable(): string[] {
  return readdirSync(EXAMPLES).filter(
    (name) => existsSync(join(EXAMPLES, name, 'package.json')) && NOT_RUN[name] === undefined,
  );
}

/**
 * Returns the package.json of an example without Gatehouse itself: it is made from the sources, and put beside the other
 * packages by the tests that use it.
 */
function manifestOf(name: string): string {
  const manifest = JSON.parse(readFileSync(join(EXAMPLES, name, 'package.json'), 'utf8'));
  delete manifest.devDependencies?.gatehouse;
  return JSON.stringify(manifest);
}

/** Installs the packages, unless the same are installed. */
export function install({ update = false } = {}): void {
  const names = runnable();
  const manifests = Object.fromEntries(names.map((name) => [name, manifestOf(name)]));
  const installed = join(WORKSPACE, 'installed.json');
  const wanted = JSON.stringify([manifests, existsSync(LOCK) ? readFileSync(LOCK, 'utf8') : '']);
  if (!update && existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return;

  rmSync(installed, { force: true });
  for (const name of existsSync(WORKSPACE) ? readdirSync(WORKSPACE) : []) {
    if (name !== 'node_modules') rmSync(join(WORKSPACE, name), { recursive: true });
  }
  for (const [name, manifest] of Object.entries(manifests)) {
    mkdirSync(join(WORKSPACE, name), { recursive: true });
    writeFileSync(join(WORKSPACE, name, 'package.json'), manifest);
  }
  writeFileSync(join(WORKSPACE, 'package.json'), JSON.stringify({ private: true, workspaces: names }));
  const lock = join(WORKSPACE, 'package-lock.json');
  if (existsSync(LOCK)) cpSync(LOCK, lock);
  const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  execFileSync('npm', [update ? 'install' : 'ci', ...flags], { cwd: WORKSPACE, stdio: 'inherit' });
  if (update) cpSync(lock, LOCK);
  writeFileSync(installed, JSON.stringify([manifests, readFileSync(LOCK, 'utf8')]));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  install({ update: process.argv.includes('--update') });
