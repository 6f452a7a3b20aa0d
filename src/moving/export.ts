// Reads what the hosted service's deploy tool has exported, to say what will become of it. Nothing has to be complete for that:
// variables that are not set yet are values to ask for, not faults.
import { readFile } from 'node:fs/promises';
import { readTenant, readTenantDocument, type TenantDocument, TenantFault } from '../tenant/load.ts';
import { placed } from '../tenant/source.ts';
import type { Environment } from '../tenant/variables.ts';

export interface TenantExport {
  /** By section, in the deploy tool's names. Where a variable is not set, a text contains its {@link unsetMark}. */
  sections: Readonly<Record<string, unknown>>;
  /** What `apply` would refuse, apart from variables that are not set. */
  faults: readonly ExportFault[];
  placeOf: TenantDocument['placeOf'];
}

export interface ExportFault {
  /** Its steps separated by dots; empty where it is not about a member. */
  path: string;
  /** With its place. */
  sentence: string;
}

/** Variables of the deploy tool, and ours where the name can be no other. */
const VARIABLE = /\\?(?:##([A-Za-z_][A-Za-z0-9_]*)##|@@([A-Z][A-Z0-9_]*)@@|\$\{([A-Z_][A-Z0-9_]*)\})/g;

/** Stands for a variable that is not set. It is a word of YAML and a label of a host, so that what contains it is read. */
const unsetMark = (name: string): string => `unset-variable-${name}`;

const UNSET_MARK = /unset-variable-([A-Za-z_][A-Za-z0-9_]*)/gi;

/** Returns the variables that a value lacks. */
export function unsetVariables(value: unknown): string[] {
  if (typeof value !== 'string' || value.length > 100_000) return [];
  return [...new Set([...value.matchAll(UNSET_MARK)].map(([, name = '']) => name))];
}

/** Returns a text with the variables that it lacks as the export has them. */
export const withMarks = (text: string): string => text.replace(UNSET_MARK, '##$1##');

/** How often new variables are looked for: one may stand in the path of a file that has more. */
const PASSES = 3;

/**
 * @param path a tenant file, or the folder that the deploy tool writes.
 * @throws TenantFault if it cannot be read, each fault with file, line and cause.
 */
export async function readExport(path: string, env: Environment): Promise<TenantExport> {
  let known = env;
  let read = await readTenantDocument(path, known);
  for (let pass = 0; pass < PASSES; pass += 1) {
    const files = new Set<string>();
    read = await readTenantDocument(path, known, (file) => files.add(file));
    const unset = await unsetIn(files, read.isSet);
    if (unset.length === 0) break;
    known = { ...known, ...Object.fromEntries(unset.map((name) => [name, unsetMark(name)])) };
  }
  const { document, faults, placeOf } = read;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    const cause = 'it is no tenant: a mapping of sections is expected, such as clients and connections';
    throw new TenantFault(faults.length > 0 ? faults : [placed(cause, { file: path, line: undefined })]);
  }
  const sections = document as Record<string, unknown>;
  if (Object.keys(sections).length === 0)
    throw new TenantFault(
      faults.length > 0 ? faults : [placed('there is no section in it', { file: path, line: undefined })],
    );
  return {
    sections,
    faults: [...faults.map((sentence) => ({ path: '', sentence })), ...refusedIn(sections, placeOf)],
    placeOf,
  };
}

/** Returns the variables in files that are not set. Files that cannot be read are faults of the tenant file. */
async function unsetIn(files: Iterable<string>, isSet: TenantDocument['isSet']): Promise<string[]> {
  const names = new Set<string>();
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '');
    for (const { 0: whole, 1: hashed, 2: json, 3: braced, index } of text.matchAll(VARIABLE)) {
      const name = hashed ?? json ?? braced ?? '';
      if (whole.startsWith('\\') || isSet(name) || isHeading(text, whole, index)) continue;
      names.add(name);
    }
  }
  return [...names];
}

/** Returns whether it is a comment such as `##Applications##`, alone in its line. */
function isHeading(text: string, whole: string, index: number): boolean {
  const end = text.indexOf('\n', index);
  const line = text.slice(text.lastIndexOf('\n', index - 1) + 1, end === -1 ? undefined : end);
  return line.trim() === whole;
}

/** Returns what `apply` would refuse. A value that lacks a variable is left out, because nobody knows it yet. */
function refusedIn(
  sections: Readonly<Record<string, unknown>>,
  placeOf: TenantDocument['placeOf'],
): ExportFault[] {
  const open: string[] = [];
  const known = withoutUnset(sections, [], open);
  try {
    readTenant(known);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof TenantFault)) throw thrown;
    return thrown.faults
      .filter((fault) => !open.some((path) => pathStart(fault).startsWith(path)))
      .map((fault) => {
        const path = pathStart(fault);
        return { path, sentence: placed(fault, placeOf(path.split('.'))) };
      });
  }
}

/** Returns the path at the beginning of a fault, its steps separated by dots. */
function pathStart(fault: string): string {
  const [path = ''] = /^[^\s:]*/.exec(fault) ?? [];
  return path.replaceAll('[', '.').replaceAll(']', '');
}

/** Returns a value without the members that lack a variable. @param open gets their paths. */
function withoutUnset(value: unknown, path: readonly string[], open: string[]): unknown {
  if (Array.isArray(value))
    return value
      .filter((item) => unsetVariables(item).length === 0)
      .map((item, index) => withoutUnset(item, [...path, String(index)], open));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const at = [...path, key];
      if (unsetVariables(item).length === 0) return [[key, withoutUnset(item, at, open)]];
      open.push(at.join('.'));
      // What must be there stays there.
      return typeof item === 'string' && ['name', 'identifier', 'domain', 'key'].includes(key)
        ? [[key, item]]
        : [];
    }),
  );
}
