// What an action requires of packages, with all that those require: texts, which its sandbox is given as data.
import { readFile, stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { ModuleFile, ModuleFiles } from '../messages.ts';
import { packageOf } from './exports.ts';
import { type Folder, openFolder, PackageFault, packageFor } from './folder.ts';
import { readModule } from './modules.ts';
import { isModule, resolveIn } from './resolve.ts';

/** What all files of an action may have together. */
const MOST = { files: 1000, bytes: 2 * 1024 * 1024 };

/** What an action needs. */
interface Needed {
  code: string;
  /** Names of packages that it lists. */
  dependencies: readonly string[];
  /** What the sandbox has besides. */
  standIns: readonly string[];
}

/**
 * Collects the files.
 * @param path of the folder that has the packages, `node_modules`.
 * @throws PackageFault with the name of what is missing, too large, or no JavaScript.
 */
export async function bundlePackages(path: string, needed: Needed): Promise<ModuleFiles> {
  const folder = await openFolder(path);
  for (const name of needed.dependencies)
    if (!(await isThere(folder, name)) && !needed.standIns.includes(name))
      throw new PackageFault(`the package ${name} is not in modules/node_modules of the data directory`);
  const files: ModuleFiles = new Map();
  if (folder === undefined) return files;
  const listed = new Set(needed.dependencies);
  const wanted = requiredBy(needed.code).filter((one) => listed.has(packageOf(one)?.name ?? ''));
  const links = new Map<string, string>();
  const waiting: string[] = [];
  for (const specifier of new Set([...wanted, ...needed.dependencies])) {
    const found = await resolveIn(folder, specifier, undefined);
    if (found === undefined || found === 'empty') continue;
    links.set(specifier, keyOf(folder, found.file));
    waiting.push(found.file);
  }
  files.set('', { source: '', links });
  await collect(folder, waiting, files);
  return files;
}

/**
 * The packages that a script without a list of its own requires, as far as they are in the folder: the sandbox names what is
 * missing when it is required.
 * @param code an expression, such as a function without a name, or the text of a script.
 */
export async function packagesRequired(
  path: string,
  { code, standIns }: Omit<Needed, 'dependencies'>,
): Promise<string[]> {
  const folder = await openFolder(path);
  if (folder === undefined) return [];
  // Scripts of the hosted service name versions: one is in the folder.
  const names = requiredBy(code).flatMap((one) => packageOf(withoutVersion(one))?.name ?? []);
  const others = [...new Set(names)].filter((name) => !standIns.includes(name));
  const there = await Promise.all(others.map((name) => isThere(folder, name)));
  return others.filter((_, index) => there[index]);
}

async function isThere(folder: Folder | undefined, name: string): Promise<boolean> {
  if (folder === undefined || packageOf(name)?.path !== '') return false;
  return (await packageFor(folder, name, undefined)) !== undefined;
}

/** What a script requires by name; the sandbox says what is wrong with one that cannot be read. */
function requiredBy(code: string): string[] {
  // A rule is an expression: a function that may have no name.
  for (const text of [code, `(${withoutEnd(code)}\n)`]) {
    try {
      return readModule(text, false).requires;
    } catch {
      // As an expression, then.
    }
  }
  return [];
}

/** Without the semicolons after it. By a regular expression, a long run of them elsewhere would be looked through for each. */
function withoutEnd(code: string): string {
  let text = code.trim();
  while (text.endsWith(';')) text = text.slice(0, -1).trim();
  return text;
}

/** A specifier without the version after its name; the `@` of a scope stays. */
function withoutVersion(specifier: string): string {
  const at = specifier.indexOf('@', Math.max(1, specifier.lastIndexOf('/') + 1));
  return at < 0 ? specifier : specifier.slice(0, at);
}

const keyOf = ({ root }: Folder, file: string) => relative(root, file).replaceAll(sep, '/');

async function collect(folder: Folder, waiting: string[], files: ModuleFiles): Promise<void> {
  let bytes = 0;
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const key = keyOf(folder, file);
    if (files.has(key)) continue;
    bytes += (await stat(file)).size;
    if (bytes > MOST.bytes || files.size > MOST.files)
      throw new PackageFault(
        `its packages are larger than ${MOST.bytes} bytes in ${MOST.files} files (the last was ${key})`,
      );
    const { links, ...read } = await readFileOf(folder, file, key);
    files.set(key, {
      ...read,
      links: new Map([...links].map(([name, to]) => [name, to && keyOf(folder, to)])),
    });
    waiting.push(...[...links.values()].filter((one) => one !== ''));
  }
}

/** A file, with the files that it links to; empty for what is nothing here. */
async function readFileOf(folder: Folder, file: string, key: string): Promise<ModuleFile> {
  const text = await readFile(file, 'utf8');
  const links = new Map<string, string>();
  if (file.endsWith('.json')) return { source: `module.exports = ${text}`, links };
  const { source, requires } = await readModuleOf(folder, { file, key, text });
  for (const specifier of requires) {
    const found = await resolveIn(folder, specifier, file);
    // What nothing is found for may never be required: the sandbox says so if it is.
    if (found !== undefined) links.set(specifier, found === 'empty' ? '' : found.file);
  }
  return { source, links };
}

async function readModuleOf(
  folder: Folder,
  { file, key, text }: { file: string; key: string; text: string },
) {
  if (!/\.(c|m)?js$/.test(file)) throw new PackageFault(`${key} is no JavaScript`);
  try {
    return readModule(text, await isModule(folder, file));
  } catch (thrown) {
    throw new PackageFault(
      `${key} cannot be read: ${thrown instanceof Error ? thrown.message : 'no JavaScript'}`,
    );
  }
}
