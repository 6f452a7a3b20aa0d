// The bundled server with the packages that it needs, as in its container image: a process needs a third less processor
// time to start than from source. Built once for each state of the sources.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, ROOT } from '../../build/bundle.ts';
import { lockName } from '../../src/store/lock.ts';
import { until } from './wait-until.ts';

const PLACE = join(ROOT, 'node_modules/.cache/built');
/** Files that the server reads beside its programs. */
const BESIDE = ['views', 'sandbox', 'config', 'package.json'];
/** The sources of the programs. */
const SOURCES = ['src/**/*.{ts,js,json}', 'build/bundle.ts', 'package-lock.json'];

/** The path of the program, once it was requested in this process. */
let program: Promise<string> | undefined;

/** Returns the file that starts the server or, with arguments, runs one of its commands. */
export function builtProgram(): Promise<string> {
  program ??= build();
  return program;
}

async function build(): Promise<string> {
  const directory = join(PLACE, digestOfSources());
  const file = join(directory, 'dist/cli.js');
  if (existsSync(directory)) return file;
  mkdirSync(PLACE, { recursive: true });
  let unlock: (() => void) | undefined;
  await until(() => {
    unlock = lockName(join(PLACE, 'making'));
    return unlock !== undefined;
  });
  try {
    // Another process may have built it meanwhile.
    if (!existsSync(directory)) await make(directory);
  } finally {
    unlock?.();
  }
  return file;
}

/** The rename makes it appear complete or not at all. */
async function make(directory: string): Promise<void> {
  const unfinished = join(PLACE, 'unfinished');
  rmSync(unfinished, { recursive: true, force: true });
  await bundle(join(unfinished, 'dist'), 'inside');
  for (const name of BESIDE) symlinkSync(join(ROOT, name), join(unfinished, name));
  renameSync(unfinished, directory);
}

function digestOfSources(): string {
  const hash = createHash('sha256');
  for (const name of globSync(SOURCES, { cwd: ROOT }).sort())
    hash.update(`${name}\0`).update(readFileSync(join(ROOT, name)));
  return hash.digest('hex').slice(0, 16);
}
