// Collects the files of the packages that an action requires, and of those that they require. The sandbox gets their
// texts as data.
import { readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { ModuleFile, ModuleFiles } from '../scripts-messages.ts';
import {
  describedAt,
  type Folder,
  fileAt,
  firstFile,
  openFolder,
  ownerOf,
  type Package,
  PackageFault,
  packageFor,
} from './folder.ts';
import { readModule } from './modules.ts';

// Package names, and the targets of `exports` and `imports` in `package.json` (Node.js documentation, "Packages").
// docs/understand/decisions/actions-scripts.md#the-exports-of-a-package-are-read-by-our-own-code

/** The form of a package's name, with its scope. */
const NAME = /^(?:@[a-z0-9~_-][a-z0-9~._-]*\/)?[a-z0-9~_-][a-z0-9~._-]*$/i;

/** @returns a package's name and the path in it; undefined where the specifier names no package. */
function packageOf(specifier: string): { name: string; path: string } | undefined {
  const words = specifier.split('/');
  const count = specifier.startsWith('@') ? 2 : 1;
  const name = words.slice(0, count).join('/');
  return NAME.test(name) ? { name, path: words.slice(count).join('/') } : undefined;
}

/**
 * The conditions that hold in the sandbox, which is not Node.js. CommonJS is preferred, because modules are converted
 * to it.
 */
const CONDITIONS = [new Set(['browser', 'require', 'default']), new Set(['browser', 'import', 'default'])];

/**
 * Returns the path that an entry leads to, relative to the package's folder.
 * @param entry `.`, `./path` or `#name`.
 * @returns undefined where the package has no such entry.
 */
function exportedTarget(entries: unknown, entry: string): string | undefined {
  const isOne = !isObject(entries) || !Object.keys(entries).some((key) => /^[.#]/.test(key));
  const all: Record<string, unknown> = isOne ? { '.': entries } : (entries as Record<string, unknown>);
  for (const conditions of CONDITIONS) {
    const target = matched(all, entry, conditions);
    if (target !== undefined) return target;
  }
  return undefined;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function matched(
  entries: Record<string, unknown>,
  entry: string,
  conditions: ReadonlySet<string>,
): string | undefined {
  if (Object.hasOwn(entries, entry)) return targetOf(entries[entry], conditions);
  // The pattern with the longest part before its `*` comes first, and of those the longest.
  const patterns = Object.keys(entries)
    .filter((key) => key.includes('*'))
    .sort((a, b) => b.indexOf('*') - a.indexOf('*') || b.length - a.length);
  for (const pattern of patterns) {
    const [before = '', after = ''] = pattern.split('*');
    const isIt =
      entry.startsWith(before) && entry.endsWith(after) && entry.length > before.length + after.length;
    if (!isIt) continue;
    const middle = entry.slice(before.length, entry.length - after.length);
    return targetOf(entries[pattern], conditions)?.replaceAll('*', middle);
  }
  return undefined;
}

function targetOf(target: unknown, conditions: ReadonlySet<string>): string | undefined {
  if (typeof target === 'string') return target;
  const choices: unknown[] = Array.isArray(target)
    ? target
    : isObject(target)
      ? Object.entries(target).flatMap(([condition, of]) => (conditions.has(condition) ? [of] : []))
      : [];
  for (const choice of choices) {
    const found = targetOf(choice, conditions);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Limits of all files of an action together. */
const MAX_SIZE = { files: 1000, bytes: 2 * 1024 * 1024 };

interface Needed {
  code: string;
  /** Names of the packages that it lists. */
  dependencies: readonly string[];
  /** The modules that the sandbox has by itself. */
  standIns: readonly string[];
}

/**
 * Collects the files of the packages that an action requires.
 * @param path the folder of the packages, `node_modules`.
 * @throws PackageFault naming what is missing, too large, or no JavaScript.
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
 * Returns the packages that a script without a list of its own requires, as far as they are in the folder. The sandbox
 * reports a missing one when it is required.
 * @param code an expression, such as a function without a name, or the text of a script.
 */
export async function packagesRequired(
  path: string,
  { code, standIns }: Omit<Needed, 'dependencies'>,
): Promise<string[]> {
  const folder = await openFolder(path);
  if (folder === undefined) return [];
  const others = packagesNamed(code).filter((name) => !standIns.includes(name));
  const there = await Promise.all(others.map((name) => isThere(folder, name)));
  return others.filter((_, index) => there[index]);
}

/** Returns the packages that a script requires, whether they are there or not. @param code as of {@link packagesRequired}. */
export function packagesNamed(code: string): string[] {
  // Scripts of the hosted service name versions (`name@1.2.3`); the folder has one version of each.
  return [...new Set(requiredBy(code).flatMap((one) => packageOf(withoutVersion(one))?.name ?? []))];
}

async function isThere(folder: Folder | undefined, name: string): Promise<boolean> {
  if (folder === undefined || packageOf(name)?.path !== '') return false;
  return (await packageFor(folder, name, undefined)) !== undefined;
}

/** Returns the names that a script requires; none where it cannot be parsed, which the sandbox reports. */
function requiredBy(code: string): string[] {
  // A rule is an expression: a function that may have no name.
  for (const text of [code, `(${withoutEnd(code)}\n)`]) {
    try {
      return readModule(text, false).requires;
    } catch {
      // Then it is parsed as an expression.
    }
  }
  return [];
}

/**
 * Removes the semicolons at the end. A regular expression would take quadratic time on a long run of semicolons
 * elsewhere.
 */
function withoutEnd(code: string): string {
  let text = code.trim();
  while (text.endsWith(';')) text = text.slice(0, -1).trim();
  return text;
}

/** Removes the version after the package name of a specifier; the `@` of a scope stays. */
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
    if (bytes > MAX_SIZE.bytes || files.size > MAX_SIZE.files)
      throw new PackageFault(
        `its packages are larger than ${MAX_SIZE.bytes} bytes in ${MAX_SIZE.files} files (the last was ${key})`,
      );
    const { links, ...read } = await readFileOf(folder, file, key);
    files.set(key, {
      ...read,
      links: new Map([...links].map(([name, to]) => [name, to && keyOf(folder, to)])),
    });
    waiting.push(...[...links.values()].filter((one) => one !== ''));
  }
}

/** Reads a file, with the files that it links to; a link is empty for a module that has no code here. */
async function readFileOf(folder: Folder, file: string, key: string): Promise<ModuleFile> {
  const text = await readFile(file, 'utf8');
  const links = new Map<string, string>();
  if (file.endsWith('.json')) return { source: `module.exports = ${text}`, links };
  const { source, requires } = await readModuleOf(folder, { file, key, text });
  for (const specifier of requires) {
    const found = await resolveIn(folder, specifier, file);
    // A name that does not resolve may never be required at run time; the sandbox reports it if it is.
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

// Resolves a module name to a file, as Node.js and bundlers for browsers do: `exports`, `browser`, `main`.

const ENDINGS = ['.js', '.cjs', '.mjs', '.json'];

/** A file; `empty` where a package declares that a module has no code outside of Node.js. */
type Resolved = { file: string } | 'empty' | undefined;

/**
 * Returns the file that a module name or a relative path means.
 * @param from the file that requires it; undefined for an action.
 * @returns undefined where there is none.
 * @throws PackageFault when it would lie outside of the folder.
 */
async function resolveIn(folder: Folder, specifier: string, from: string | undefined): Promise<Resolved> {
  const file = await plainly(folder, specifier, from);
  const owners = await Promise.all(
    [from, file].map((one) => (one === undefined ? undefined : ownerOf(folder, one))),
  );
  for (const owner of owners) {
    const instead = owner === undefined ? undefined : await replacement(folder, owner, specifier, file);
    if (instead === false) return 'empty';
    if (instead === undefined || instead === specifier) continue;
    const other = instead.startsWith('.')
      ? await withEnding(folder, join(owner?.directory ?? '', instead))
      : await plainly(folder, instead, from);
    return other === undefined ? undefined : { file: other };
  }
  return file === undefined ? undefined : { file };
}

async function isModule(folder: Folder, file: string): Promise<boolean> {
  if (file.endsWith('.mjs')) return true;
  return file.endsWith('.js') && (await ownerOf(folder, file))?.json.type === 'module';
}

/** Returns what a package's `browser` member has in place of one of its own files or of another package. */
async function replacement(
  folder: Folder,
  { directory, json: { browser } }: Package,
  specifier: string,
  file: string | undefined,
): Promise<string | false | undefined> {
  if (typeof browser !== 'object' || browser === null) return undefined;
  for (const [name, instead] of Object.entries(browser as Record<string, unknown>)) {
    const isOwn = name.startsWith('.');
    const isMeant = isOwn
      ? file !== undefined && (await withEnding(folder, join(directory, name))) === file
      : name === specifier;
    if (isMeant && (instead === false || typeof instead === 'string')) return instead;
  }
  return undefined;
}

async function plainly(
  folder: Folder,
  specifier: string,
  from: string | undefined,
): Promise<string | undefined> {
  if (/^\.\.?(\/|$)/.test(specifier))
    return from === undefined ? undefined : withEnding(folder, join(dirname(from), specifier));
  if (specifier.startsWith('#')) return ofOwnImports(folder, specifier, from);
  const { name, path } = packageOf(specifier) ?? {};
  if (name === undefined || path === undefined) return undefined;
  const found = await packageFor(folder, name, from);
  return found === undefined ? undefined : inPackage(folder, found, path);
}

async function ofOwnImports(
  folder: Folder,
  specifier: string,
  from: string | undefined,
): Promise<string | undefined> {
  const owner = from === undefined ? undefined : await ownerOf(folder, from);
  const target = exportedTarget(owner?.json.imports ?? {}, specifier);
  if (owner === undefined || target === undefined) return undefined;
  return target.startsWith('.')
    ? fileAt(folder, join(owner.directory, target))
    : plainly(folder, target, from);
}

async function inPackage(
  folder: Folder,
  { directory, json }: Package,
  path: string,
): Promise<string | undefined> {
  if (json.exports !== undefined) {
    const target = exportedTarget(json.exports, path === '' ? '.' : `./${path}`);
    return target === undefined ? undefined : fileAt(folder, join(directory, target));
  }
  if (path === '' && typeof json.browser === 'string')
    return withEnding(folder, join(directory, json.browser));
  return withEnding(folder, join(directory, path));
}

/** Returns the file at a path: as named, with an extension added, or the main file of a folder. */
async function withEnding(folder: Folder, path: string): Promise<string | undefined> {
  const endings = (of: string) => ENDINGS.map((ending) => of + ending);
  const file = await firstFile(folder, [path, ...endings(path)]);
  if (file !== undefined) return file;
  const { main } = (await describedAt(folder, path)) ?? {};
  const mains =
    typeof main === 'string'
      ? [join(path, main), ...endings(join(path, main)), ...endings(join(path, main, 'index'))]
      : [];
  return firstFile(folder, [...mains, ...endings(join(path, 'index'))]);
}
