// Makes a directory with all of Gatehouse: the content of the npm package, with its dependencies in its own files.
// Nothing needs to be installed, and a start reads less than half as many files. To update a dependency, make the
// directory again.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Metafile } from 'esbuild';
import { APART, bundle, ROOT } from './bundle.ts';
import { licencesOf, manifestOf, packagesOf } from './bundled-packages.ts';

/**
 * Writes the directory, with the versions that are installed here.
 * @param directory a new or empty directory; `node <directory>/dist/cli.js` starts the server.
 * @returns the inputs of each of its files, by paths from the repository.
 */
export async function standalone(directory: string): Promise<Metafile> {
  unpack(directory);
  rmSync(join(directory, 'dist'), { recursive: true, force: true });
  const metafile = await bundle(join(directory, 'dist'), 'inside');
  for (const place of withWhatTheyNeed(APART))
    cpSync(join(ROOT, place), join(directory, place), { recursive: true, dereference: true });
  writeFileSync(join(directory, 'LICENSES.txt'), licencesOf(Object.keys(metafile.inputs)));
  return metafile;
}

/** Returns the directories of the packages whose code was written, from the repository. @param metafile what `standalone` returned. */
export const packagesIn = ({ inputs }: Metafile): string[] =>
  [...new Set([...packagesOf(Object.keys(inputs)), ...withWhatTheyNeed(APART)])].sort();

/** Copies the files of the npm package. */
function unpack(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory];
  const [{ filename }] = JSON.parse(
    execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  const packed = join(directory, filename);
  execFileSync('tar', ['-xzf', packed, '-C', directory, '--strip-components=1']);
  rmSync(packed);
}

/**
 * Returns the directories of packages and of their dependencies, relative to the repository. Packages for other
 * machines are not installed.
 */
function withWhatTheyNeed(names: string[], from = '', found = new Set<string>()): Set<string> {
  for (const name of names) {
    const place = findPackage(name, from);
    if (place === undefined || found.has(place)) continue;
    found.add(place);
    const { dependencies, optionalDependencies } = manifestOf(place);
    withWhatTheyNeed(Object.keys({ ...dependencies, ...optionalDependencies }), place, found);
  }
  return found;
}

/** Finds a package as Node.js does: beside the one that requires it, then further up. */
function findPackage(name: string, from: string): string | undefined {
  const place = join(from, 'node_modules', name);
  if (existsSync(join(ROOT, place))) return place;
  return from === '' || from === '.' ? undefined : findPackage(name, dirname(from));
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new Error('npm run standalone -- <directory>');
  await standalone(resolve(directory));
}
