// Resolves a module name to a file, as Node.js and bundlers for browsers do: `exports`, `browser`, `main`.
import { dirname, join } from 'node:path';
import { exportedTarget, packageOf } from './exports.ts';
import { describedAt, type Folder, fileAt, firstFile, ownerOf, type Package, packageFor } from './folder.ts';

const ENDINGS = ['.js', '.cjs', '.mjs', '.json'];

/** A file; `empty` where a package declares that a module has no code outside of Node.js. */
type Resolved = { file: string } | 'empty' | undefined;

/**
 * Returns the file that a module name or a relative path means.
 * @param from the file that requires it; undefined for an action.
 * @returns undefined where there is none.
 * @throws PackageFault when it would lie outside of the folder.
 */
export async function resolveIn(
  folder: Folder,
  specifier: string,
  from: string | undefined,
): Promise<Resolved> {
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

/** Reports whether a file is an ECMAScript module. */
export async function isModule(folder: Folder, file: string): Promise<boolean> {
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
