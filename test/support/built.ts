// The bundled server with the packages that it needs, as in its container image: a process needs a third less processor
// time to start than from source. Built once for each state of the sources.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle, ROOT } from '../../build/bundle.ts';
import { lockName } from '../../src/store/lock.ts';
import { until } from './wait-until.ts';

const PLACE = join(ROOT, 'node_modules/.cache/built');
/** A server with faults on request, by the name of its program. */
const FAULTY = { faulty: join(ROOT, 'test/process/processes/server.ts') };
/** Files that the server reads beside its programs. */
const BESIDE = ['views', 'sandbox', 'config', 'package.json'];
/** The sources of the programs. */
const SOURCES = [
  'src/**/*.{ts,js,json}',
  'test/process/processes/server.ts',
  'build/bundle.ts',
  'package-lock.json',
];

/** The directory of the programs, once it was requested in this process. */
let programs: Promise<string> | undefined;

/** Returns the file that starts the server or, with arguments, runs one of its commands. */
export async function builtProgram(): Promise<string> {
  programs ??= build();
  return join(await programs, 'cli.js');
}

/** Returns a directory like that of the installed package, for programs that import `gatehouse/testing`. */
export async function builtPackage(): Promise<string> {
  return dirname(dirname(await builtProgram()));
}

/** Returns the file of `test/process/processes/server.ts`. */
export async function builtFaultyServer(): Promise<string> {
  programs ??= build();
  return join(await programs, 'faulty.js');
}

async function build(): Promise<string> {
  const directory = join(PLACE, digestOfSources());
  const dist = join(directory, 'dist');
  if (existsSync(directory)) return dist;
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
  return dist;
}

/** The rename makes it appear complete or not at all. */
async function make(directory: string): Promise<void> {
  const unfinished = join(PLACE, 'unfinished');
  rmSync(unfinished, { recursive: true, force: true });
  await bundle(join(unfinished, 'dist'), 'inside', FAULTY);
  for (const name of BESIDE) symlinkSync(join(ROOT, name), join(unfinished, name));
  renameSync(unfinished, directory);
}

function digestOfSources(): string {
  const hash = createHash('sha256');
  for (const name of globSync(SOURCES, { cwd: ROOT }).sort())
    hash.update(`${name}\0`).update(readFileSync(join(ROOT, name)));
  return hash.digest('hex').slice(0, 16);
}
