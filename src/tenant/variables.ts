// Environment variables in a tenant file. `##NAME##` is replaced by a value as it is, `@@NAME@@` by a value as JSON, as the
// hosted service's deploy tool does in the text of each file; `${NAME}` is our own and stands in strings. A backslash
// escapes each of them, so that an export can be read again unchanged. The configuration of the deploy tool may have further
// values, for names in any letters.
// docs/understand/decisions/operating.md#a-tenant-file-takes-variables-as-the-deploy-tool-does
import { CST, Lexer } from 'yaml';
import { isNamedSecret } from '../records/secrets.ts';
import type { YamlFault } from './document.ts';
import { isText } from './text-members.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What variables stand for. The environment comes before the mappings of the deploy tool, as in the tool. */
export interface Values {
  env: Environment;
  /** JSON values by name. */
  mappings: ReadonlyMap<string, unknown>;
  /** Names that are no variables: what looks like one is a text. */
  texts?: ReadonlySet<string>;
}

export const valuesOf = (env: Environment): Values => ({ env, mappings: new Map() });

const MARKER = /\\?(?:##([A-Za-z_][\w-]*)##|@@([A-Za-z_][\w-]*)@@)/g;
const VARIABLE = /\\?(?:##([A-Za-z_][\w-]*)##|@@([A-Za-z_][\w-]*)@@|\$\{([A-Za-z_][A-Za-z0-9_]*)\})/g;

/**
 * Returns whether a mark is that of a variable. Small letters between `@@` are marks of pages, mails and SAML requests
 * (`@@config@@`, `@@password@@`), and no variable of the environment has a hyphen, unless a mapping has the name.
 */
const isVariable = (
  { mappings, texts }: Values,
  {
    hashed,
    json,
    braced,
  }: { hashed?: string | undefined; json?: string | undefined; braced?: string | undefined },
): boolean => {
  if (texts?.has(hashed ?? json ?? braced ?? '') === true) return false;
  return hashed === undefined
    ? json === undefined || /^[A-Z][A-Z0-9_]*$/.test(json) || mappings.has(json)
    : /^\w+$/.test(hashed) || mappings.has(hashed);
};

// A value may contain what looks like a variable. This character, which is in no text of a language (Unicode 23.7), keeps it from
// being replaced in turn; one is taken out at the end. Where it stands so in a text itself, an export writes one more.
const GUARD = '\uFDD0';
const guarded = (value: string) =>
  value.replace(/\$(?=\uFDD0*\{)|#(?=\uFDD0*#)|@(?=\uFDD0*@)/g, `$&${GUARD}`);
const unguarded = (text: string) =>
  text.replace(/(\$)\uFDD0(?=\uFDD0*\{)|(#)\uFDD0(?=\uFDD0*#)|(@)\uFDD0(?=\uFDD0*@)/g, '$1$2$3');
/** Guards what {@link unguarded} would change. */
const guardedAgain = (text: string) => (unguarded(text) === text ? text : guarded(text));

/** Returns a value as JSON: itself if it is JSON, such as a list or a number, else as a string. */
function jsonOf(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value));
  } catch {
    return JSON.stringify(value);
  }
}

/** Returns what a variable is replaced by: its value, or that as JSON; undefined where it is not set. */
function replacementOf({ env, mappings }: Values, name: string, isJson: boolean): string | undefined {
  // Never what each object has, such as `constructor`.
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value !== undefined) return isJson ? jsonOf(value) : value;
  if (!mappings.has(name)) return undefined;
  const mapped = mappings.get(name);
  return isJson ? JSON.stringify(mapped) : String(mapped);
}

const notSet = (name: string, whole: string) =>
  `the environment variable ${name} is not set (the text itself is \\${whole})`;

/** Whether a name needs no value any more: it has one, or what looks like a variable is a text. */
export const isSet = (values: Values, name: string): boolean =>
  values.texts?.has(name) === true || replacementOf(values, name, false) !== undefined;

interface FilledText {
  text: string;
  /** The variables that are not set. */
  faults: YamlFault[];
  /** Returns the line before the replacement: a value may have several. */
  lineOf(line: number): number;
}

/**
 * Replaces the variables that stand outside of quotes and block texts, where their values are read as YAML, and
 * `"@@NAME@@"`. {@link fillIn} replaces the others, once the text is parsed: there a value cannot become more than a
 * part of a string. Comments stay as they are.
 */
export function fillInYaml(text: string, values: Values): FilledText {
  const markers = [...text.matchAll(MARKER)].filter(
    (marker) =>
      !marker[0].startsWith('\\') &&
      isVariable(values, { hashed: marker[1], json: marker[2] }) &&
      !isHeading(text, marker, values),
  );
  const closed = closedTokens(text, markers);
  const faults: YamlFault[] = [];
  const grown: { line: number; by: number }[] = [];
  const lineAt = linesOf(text);
  let filled = '';
  let end = 0;
  let next = 0;
  for (const { 0: whole, 1: hashed, 2: json, index } of markers) {
    // Both lists are in the order of the text.
    while ((closed[next]?.end ?? Infinity) <= index) next += 1;
    const around = (closed[next]?.start ?? Infinity) <= index ? closed[next] : undefined;
    const isWhole =
      json !== undefined && around?.isQuoted === true && around.end - around.start === whole.length + 2;
    if (around !== undefined && !isWhole) continue;
    const line = lineAt(index);
    const name = hashed ?? json ?? '';
    const value = replacementOf(values, name, json !== undefined);
    if (value === undefined) faults.push({ line, message: `${whole}: ${notSet(name, whole)}` });
    const replacement = value === undefined ? 'null' : guarded(value);
    filled += text.slice(end, around?.start ?? index) + replacement;
    end = around?.end ?? index + whole.length;
    const by = replacement.split('\n').length - 1;
    if (by > 0) grown.push({ line, by });
  }
  return {
    text: filled + text.slice(end),
    faults,
    lineOf: (line) => grown.reduce((now, one) => Math.max(Math.min(now, one.line), now - one.by), line),
  };
}

/** Returns a function that gives the line of a place; each place is at or after the one before. */
function linesOf(text: string): (index: number) => number {
  let line = 1;
  let end = text.indexOf('\n');
  return (index) => {
    for (; end !== -1 && end < index; end = text.indexOf('\n', end + 1)) line += 1;
    return line;
  };
}

/** Returns whether it is a comment such as `##Applications##`, alone in its line. */
function isHeading(text: string, { 0: whole, 1: hashed, index }: RegExpExecArray, values: Values): boolean {
  if (hashed === undefined || replacementOf(values, hashed, false) !== undefined) return false;
  const start = text.lastIndexOf('\n', index - 1) + 1;
  const end = text.indexOf('\n', index);
  return text.slice(start, end === -1 ? undefined : end).trim() === whole;
}

interface Token {
  start: number;
  end: number;
  isQuoted: boolean;
}

/** Returns the comments and the quoted and block texts. */
function closedTokens(text: string, markers: readonly RegExpExecArray[]): Token[] {
  // A marker is read as a word: `#` would begin a comment, and no value begins with `@` (YAML 1.2 5.3).
  let words = '';
  for (const { 0: whole, index } of markers)
    words += text.slice(words.length, index) + 'x'.repeat(whole.length);
  words += text.slice(words.length);
  const closed: Token[] = [];
  let start = 0;
  let isBlock = false;
  let isScalar = false;
  for (const source of new Lexer().lex(words)) {
    const type = CST.tokenType(source);
    if (type === 'doc-mode' || type === 'flow-error-end' || type === 'scalar') {
      // These stand for nothing in the text.
      isScalar = type === 'scalar';
      continue;
    }
    const end = start + source.length;
    const isQuoted = !isScalar && (type === 'single-quoted-scalar' || type === 'double-quoted-scalar');
    if (isQuoted || type === 'comment' || (isScalar && isBlock)) closed.push({ start, end, isQuoted });
    if (type === 'block-scalar-header') isBlock = true;
    else if (isScalar) isBlock = false;
    isScalar = false;
    start = end;
  }
  return closed;
}

interface Findings {
  /** Variables that are not set, each with its path. */
  faults: string[];
  warnings: string[];
}

/** Replaces the variables in the strings of a document. */
export function fillIn(document: unknown, values: Values, { faults, warnings }: Findings): unknown {
  const filled = mapStrings(document, [], (text, path) =>
    text.replace(VARIABLE, (whole: string, hashed?: string, json?: string, braced?: string) => {
      if (braced !== undefined && isText(path)) return whole;
      if (!isVariable(values, { hashed, json, braced })) return whole;
      if (whole.startsWith('\\')) return whole.slice(1);
      const name = hashed ?? json ?? braced ?? '';
      const value = replacementOf(values, name, json !== undefined);
      if (value !== undefined) return value;
      // A secret that everybody can read in the file would be none.
      const isNeeded =
        hashed !== undefined || path.some(isNamedSecret) || (json !== undefined && text === whole);
      if (isNeeded) faults.push(`${pathText(path)}: ${notSet(name, whole)}`);
      else if (braced !== undefined)
        warnings.push(
          `${pathText(path)}: ${whole} is kept as it is, because no environment variable has that name`,
        );
      return whole;
    }),
  );
  return mapStrings(filled, [], unguarded, unguarded);
}

/** Replaces `##NAME##` and `@@NAME@@` in a file that a tenant file names. `${NAME}` is JavaScript or a text's own there. */
export function fillInFile(text: string, values: Values): { text: string; faults: YamlFault[] } {
  const faults: YamlFault[] = [];
  const lineAt = linesOf(text);
  const filled = text.replace(
    MARKER,
    (whole: string, hashed: string | undefined, json: string | undefined, index: number) => {
      if (!isVariable(values, { hashed, json })) return whole;
      if (whole.startsWith('\\')) return whole.slice(1);
      const name = hashed ?? json ?? '';
      const value = replacementOf(values, name, json !== undefined);
      if (value !== undefined) return value;
      // Small letters are names of a script or a page rather than of the environment.
      if (name === name.toUpperCase()) faults.push({ line: lineAt(index), message: notSet(name, whole) });
      return whole;
    },
  );
  return { text: filled, faults };
}

/** Returns the names of all that looks like a variable in a text. @param braced whether `${NAME}` does. */
export const marksIn = (text: string, { braced: isBraced }: { braced: boolean }): string[] =>
  [...text.matchAll(VARIABLE)].flatMap(
    ([, hashed, json, braced]) => hashed ?? json ?? (isBraced ? (braced ?? []) : []),
  );

/** Escapes a document so that {@link fillIn} returns it unchanged. */
export function escapeVariables(document: unknown): unknown {
  const escaped = (text: string, path: readonly string[]) =>
    text.replace(VARIABLE, (whole: string, hashed?: string, json?: string, braced?: string) =>
      (braced !== undefined && isText(path)) || !isVariable(valuesOf({}), { hashed, json })
        ? whole
        : `\\${whole}`,
    );
  return mapStrings(document, [], (text, path) => escaped(guardedAgain(text), path), guardedAgain);
}

/** Returns a path as faults have it: `clients[0].name`. */
export const pathText = (path: readonly string[]): string =>
  path
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '');

/** Returns a document with each of its strings changed, and the names of its members. */
export function mapStrings(
  value: unknown,
  path: readonly string[],
  change: (text: string, path: readonly string[]) => string,
  changeName = (name: string) => name,
): unknown {
  if (typeof value === 'string') return change(value, path);
  if (Array.isArray(value))
    return value.map((item, index) => mapStrings(item, [...path, String(index)], change, changeName));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      changeName(key),
      mapStrings(item, [...path, key], change, changeName),
    ]),
  );
}
