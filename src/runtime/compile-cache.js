// Compiled code, kept between starts: most of a start is reading and compiling modules.
import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * Keeps what is compiled of the modules loaded from now on in `<dataDir>/cache`, and takes it from there; Node.js compares
 * it with the source. It is code that will run, so it is used from a directory alone that nobody else can write to.
 * Without one the start takes longer, and nothing else.
 * @param {string} [dataDir] the setting DATA_DIR, before it is checked.
 */
export function keepCompiledCode(dataDir = './data') {
  const directory = join(dataDir, 'cache');
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const found = lstatSync(directory);
    const isOurs = process.getuid === undefined || found.uid === process.getuid();
    if (found.isDirectory() && isOurs && (found.mode & 0o022) === 0) enableCompileCache(directory);
  } catch {
    // The start says what is wrong with the directory.
  }
}

/**
 * The environment of a thread that uses the same compiled code: threads do not inherit it. Without it each of ours loads the
 * compiler of TypeScript, which takes 20 MB and longer than all else that it does at its start.
 * @returns {Record<string, string>}
 */
export function threadEnvironment() {
  const directory = getCompileCacheDir();
  // Node.js keeps its own version's in a directory below.
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: dirname(directory) };
}
