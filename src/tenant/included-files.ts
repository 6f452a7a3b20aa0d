// Scripts, pages and messages in files beside the tenant file, as the hosted service's deploy tool writes them.
// docs/understand/decisions/operating.md#a-tenant-file-reads-only-files-of-its-own-folder
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { YamlFault } from './document.ts';
import { mayBeFile } from './text-members.ts';
import { type Environment, fillInFile, mapStrings, pathText } from './variables.ts';

/** The longest text that is taken for a path. */
const MAX_PATH = 1_000;

/** A path with the name of a script, a page or a message at its end. It is no comment, code or HTML. */
const FILE_NAME = /^(?!\/[/*])[^<>\n\r;(){}="'`]+\.(?:html?|m?js|cjs|ts|liquid|txt|md|css)$/i;

/** A path that says that it is one. */
const RELATIVE = /^\.{1,2}[\\/][^<>\n\r;(){}]+$/;

export const OUTSIDE = 'it is not in the folder of the tenant file';

interface IncludedFiles {
  /** The folder of the tenant file. Paths lead to nothing outside of it. */
  directory: string;
  /** Returns the folders in which a member's file is looked for. */
  foldersOf(path: readonly string[]): string[];
  env: Environment;
  /** Gets a message for each file that cannot be read. */
  faults: string[];
  /** Called for each fault in a file. */
  onFault(path: string, fault: YamlFault): void;
  /** Called with the path of each file before it is read. */
  onFile(path: string): void;
}

/** Replaces paths in a document by the contents of their files. */
export function readIncludedFiles(document: unknown, options: IncludedFiles): unknown {
  const { directory, foldersOf, env, faults, onFault, onFile } = options;
  return mapStrings(document, [], (text, path) => {
    if (!mayBeFile(path) || !isPath(text)) return text;
    const name = text.trim().replaceAll('\\', '/');
    const named = foldersOf(path).map((folder) => (isAbsolute(name) ? name : join(folder, name)));
    const places = named.filter((one) => !isOutside(directory, one));
    for (const place of places) onFile(place);
    const fault = (cause: string) => {
      faults.push(`${pathText(path)}: ${text.trim()} cannot be read (${cause})`);
      return text;
    };
    try {
      const file = places.find(isFile);
      if (file === undefined) return fault(places.length < named.length ? OUTSIDE : 'there is no such file');
      // A link may lead out of the folder.
      if (isOutside(realpathSync(directory), realpathSync(file))) return fault(OUTSIDE);
      const read = fillInFile(readFileSync(file, 'utf8'), env);
      for (const one of read.faults) onFault(file, one);
      return read.text;
    } catch (thrown) {
      return fault((thrown as NodeJS.ErrnoException).code ?? 'it cannot be opened');
    }
  });
}

const isPath = (text: string): boolean =>
  text.length <= MAX_PATH && (RELATIVE.test(text.trim()) || FILE_NAME.test(text.trim()));

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Returns whether a path leads out of a folder. */
export function isOutside(directory: string, path: string): boolean {
  const way = relative(resolve(directory), resolve(path));
  return way === '..' || way.startsWith(`..${sep}`) || resolve(way) === way;
}
