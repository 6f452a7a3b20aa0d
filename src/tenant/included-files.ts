// Scripts, pages and messages in files beside the tenant file, as the hosted service's deploy tool writes them.
// docs/understand/decisions/operating.md#a-tenant-file-reads-only-files-of-its-own-folder
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { YamlFault } from './document.ts';
import { placed, readText, type Source } from './source.ts';
import { mayBeFile } from './text-members.ts';
import { fillInFile, mapStrings, pathText, type Values } from './variables.ts';

/** The longest text that is taken for a path. */
const MAX_PATH = 1_000;

/** A path with the name of a script, a page or a message at its end. It is no comment, code or HTML. */
const FILE_NAME = /^(?!\/[/*])[^<>\n\r;(){}="'`]+\.(?:html?|m?js|cjs|ts|liquid|txt|md|css)$/i;

/** A path that says that it is one. */
const RELATIVE = /^\.{1,2}[\\/][^<>\n\r;(){}]+$/;

export const OUTSIDE = 'it is not in the folder of the tenant file';

interface IncludedFiles {
  /** The folder of the tenant file. Paths lead to nothing outside of it. Without one, there are no files. */
  directory: string | undefined;
  /** Returns the folders in which a member's file is looked for; none for a member that is never a path. */
  foldersOf(path: readonly string[]): string[];
  values: Values;
  /** Gets a message for each file that cannot be read. */
  faults: string[];
  /** Called for each fault in a file. */
  onFault(path: string, fault: YamlFault): void;
  /** Called with the path of each file before it is read. */
  onFile(path: string): void;
}

/** Replaces paths in a document by the contents of their files, and takes the backslash away that keeps a text from being one. */
export function readIncludedFiles(document: unknown, options: IncludedFiles): unknown {
  const { directory, foldersOf, values, faults, onFault, onFile } = options;
  return mapStrings(document, [], (text, path) => {
    if (!mayBeFile(path) || !isLikePath(text)) return text;
    const folders = foldersOf(path);
    if (folders.length === 0) return text;
    if (text.startsWith('\\') && isLikePath(text.slice(1))) return text.slice(1);
    if (directory === undefined || !isPath(text)) return text;
    const name = text.trim().replaceAll('\\', '/');
    const named = [
      ...folders.map((folder) => (isAbsolute(name) ? name : join(folder, name))),
      ...(isAbsolute(name) ? [] : fromItsFolder(directory, name)),
    ];
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
      const read = fillInFile(readFileSync(file, 'utf8'), values);
      for (const one of read.faults) onFault(file, one);
      return read.text;
    } catch (thrown) {
      return fault((thrown as NodeJS.ErrnoException).code ?? 'it cannot be opened');
    }
  });
}

/**
 * Older versions of the tool write the paths of actions from the folder in which it ran: `tenant/actions/NAME/code.js`.
 * @returns the path from the folder of the tenant, if there is one.
 */
function fromItsFolder(directory: string, name: string): string[] {
  const places = ['/actions/', '/action-modules/'].map((folder) => name.indexOf(folder));
  return places.filter((at) => at >= 0).map((at) => join(directory, name.slice(at + 1)));
}

export const isPath = (text: string): boolean =>
  text.length <= MAX_PATH && (RELATIVE.test(text.trim()) || FILE_NAME.test(text.trim()));

/** Returns whether a text is a path, or would be one without backslashes before it. */
const isLikePath = (text: string): boolean => isPath(text) || isPath(text.replace(/^\\+/, ''));

/**
 * Returns a document in which {@link readIncludedFiles} finds no paths and returns the same texts: who may write a message at the
 * Management API must not have a file read into it when an export is applied.
 */
export const escapePaths = (document: unknown): unknown =>
  mapStrings(document, [], (text, path) => (mayBeFile(path) && isLikePath(text) ? `\\${text}` : text));

/** Returns whether there is a file; not for what is no path to the system, such as one that is too long. */
export function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}

/** Returns whether a path leads out of a folder. */
export function isOutside(directory: string, path: string): boolean {
  const way = relative(resolve(directory), resolve(path));
  return way === '..' || way.startsWith(`..${sep}`) || resolve(way) === way;
}

/** A value that is read from a JSON file of its own, and where it is in the tenant. */
interface JsonPart {
  path: readonly string[];
  source: Source;
}

/**
 * Returns a source in which forms, flows and the renderers of screens are as in the JSON files that a YAML file names for
 * them. A missing file of a renderer is a warning, as in the tool.
 */
export function withJsonFiles(
  source: Source,
  { directory, values, onFile }: Pick<IncludedFiles, 'values' | 'onFile'> & { directory: string },
): Source {
  const document = source.value as Readonly<Record<string, unknown>> | undefined;
  const { screenRenderers: renderers } = Object(document?.prompts) as { screenRenderers?: unknown };
  const sections = ['forms', 'flows'].filter((section) => Array.isArray(document?.[section]));
  if (document === undefined || (sections.length === 0 && !Array.isArray(renderers))) return source;
  const parts: JsonPart[] = [];
  const read = (name: string, path: readonly string[], problems: string[]): object | undefined => {
    const file = join(directory, name.trim().replaceAll('\\', '/'));
    const problem = (cause: string) => {
      problems.push(placed(`${pathText(path)}: ${name} cannot be read (${cause})`, source.placeOf(path)));
      return undefined;
    };
    if (isOutside(directory, file)) return problem(OUTSIDE);
    onFile(file);
    if (!isFile(file)) return problem('there is no such file');
    if (isOutside(realpathSync(directory), realpathSync(file))) return problem(OUTSIDE);
    const part = readText(readFileSync(file, 'utf8'), values, file);
    problems.push(...part.faults);
    parts.push({ path, source: part });
    return Object(part.value) as object;
  };
  const faults = [...source.faults];
  const warnings = [...source.warnings];
  const bodies = sections.map((section) => {
    const items = (document[section] as unknown[]).map((item, index) => {
      const { body: file, ...rest } = Object(item) as Record<string, unknown>;
      if (typeof file !== 'string') return item;
      const { body: _, ...content } = Object(read(file, [section, String(index)], faults)) as {
        body?: unknown;
      };
      return { ...rest, ...content };
    });
    return [section, items] as const;
  });
  const screens: unknown[] = [];
  for (const entry of Array.isArray(renderers) ? (renderers as unknown[]) : [])
    for (const one of filesOf(entry) ?? [entry]) {
      const path = ['prompts', 'screenRenderers', String(screens.length)];
      const screen = typeof one === 'string' ? read(one, path, warnings) : one;
      if (screen !== undefined) screens.push(screen);
    }
  const partOf = (path: readonly string[]) =>
    parts.find((part) => part.path.every((step, at) => step === path[at]));
  return {
    ...source,
    value: {
      ...document,
      ...Object.fromEntries(bodies),
      ...(Array.isArray(renderers) && {
        prompts: { ...(document.prompts as object), screenRenderers: screens },
      }),
    },
    faults,
    warnings,
    placeOf: (path) => {
      const part = partOf(path);
      return part?.source.placeOf(path.slice(part.path.length)) ?? source.placeOf(path);
    },
  };
}

/** Returns the files of an entry `{ PROMPT: { SCREEN: FILE } }`; undefined for another one. */
function filesOf(entry: unknown): string[] | undefined {
  const files = Object.values(Object(entry) as object).flatMap((screens) =>
    typeof screens === 'object' && screens !== null ? Object.values(screens as object) : [screens],
  ) as unknown[];
  return files.length > 0 && files.every((file) => typeof file === 'string' && /\.json$/.test(file))
    ? (files as string[])
    : undefined;
}
