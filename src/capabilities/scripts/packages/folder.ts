// A folder of packages. Nothing outside of it is ever read, whatever a link or a path in it says.
// docs/understand/decisions/actions-scripts.md#packages-of-actions-are-read-never-executed-outside-of-the-sandbox
import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';

/** Why a package cannot be used. The message is for the person who deploys an action. */
export class PackageFault extends Error {}

/** Returns the error if it is a fault of a package. @throws any other error. */
export function asFault(thrown: unknown): PackageFault {
  if (thrown instanceof PackageFault) return thrown;
  throw thrown;
}

interface PackageJson {
  type?: unknown;
  main?: unknown;
  browser?: unknown;
  exports?: unknown;
  imports?: unknown;
}

export interface Package {
  directory: string;
  json: PackageJson;
}

export interface Folder {
  /** The real path of the folder that has the packages, `node_modules`. */
  root: string;
  described: Map<string, PackageJson | undefined>;
}

/** @returns undefined where it does not exist. */
export async function openFolder(path: string): Promise<Folder | undefined> {
  const root = await realpath(path).catch(() => undefined);
  return root === undefined ? undefined : { root, described: new Map() };
}

/**
 * Returns the real path of a file; undefined where there is no such file.
 * @throws PackageFault when it is outside of the folder.
 */
export async function fileAt({ root }: Folder, path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return undefined;
  if (!real.startsWith(root + sep) && real !== root)
    throw new PackageFault(`${relative(root, path)} leads out of the folder`);
  return (await stat(real)).isFile() ? real : undefined;
}

/** @throws PackageFault */
export async function firstFile(folder: Folder, paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const file = await fileAt(folder, path);
    if (file !== undefined) return file;
  }
  return undefined;
}

/** Returns the `package.json` of a folder, if it has one. @throws PackageFault */
export async function describedAt(folder: Folder, directory: string): Promise<PackageJson | undefined> {
  const { described } = folder;
  if (!described.has(directory))
    described.set(directory, await read(folder, join(directory, 'package.json')));
  return described.get(directory);
}

async function read(folder: Folder, path: string): Promise<PackageJson | undefined> {
  const file = await fileAt(folder, path);
  if (file === undefined) return undefined;
  try {
    const json: unknown = JSON.parse(await readFile(file, 'utf8'));
    return typeof json === 'object' && json !== null ? json : {};
  } catch {
    throw new PackageFault(`${relative(folder.root, path)} cannot be read`);
  }
}

export async function ownerOf(folder: Folder, file: string): Promise<Package | undefined> {
  for (const directory of upwards(folder, dirname(file))) {
    const json = await describedAt(folder, directory);
    if (json !== undefined) return { directory, json };
  }
  return undefined;
}

/**
 * Returns the package that a name means for a file: the nearest one. Without a file, as for an action, it is looked up
 * in the folder itself.
 */
export async function packageFor(
  folder: Folder,
  name: string,
  from: string | undefined,
): Promise<Package | undefined> {
  const near = from === undefined ? [] : upwards(folder, dirname(from)).map((at) => join(at, 'node_modules'));
  for (const start of [...near, folder.root]) {
    const json = await describedAt(folder, join(start, name));
    if (json !== undefined) return { directory: join(start, name), json };
  }
  return undefined;
}

function upwards({ root }: Folder, directory: string): string[] {
  const all: string[] = [];
  for (let at = directory; at.startsWith(root + sep); at = dirname(at)) all.push(at);
  return all;
}
