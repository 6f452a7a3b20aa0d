// The texts that a tenant is read from: one YAML file, or the files of a folder. Each value has a place, for faults and warnings.
import { dirname, join } from 'node:path';
import { readYaml, type YamlFault } from './document.ts';
import { fillInYaml, type Values } from './variables.ts';

export interface Place {
  file: string | undefined;
  line: number | undefined;
}

/** What was read, before the variables in its strings are replaced. */
export interface Source {
  /** Undefined if it could not be read, which is a fault. */
  value: unknown;
  /** Whether there was nothing in it but comments. */
  isEmpty: boolean;
  /** With their places. */
  faults: string[];
  warnings: string[];
  placeOf(path: readonly string[]): Place;
  /** Returns the folders in which the file is looked for that a member names. */
  foldersOf(path: readonly string[]): string[];
}

/** Adds the place in the form that editors and terminals link: `sentence (file:line)`. */
export function placed(sentence: string, { file, line }: Place): string {
  if (file === undefined) return sentence;
  return `${sentence} (${file}${line === undefined ? '' : `:${line}`})`;
}

/** The folders in which the deploy tool looks first. */
const FOLDERS: Readonly<Record<string, string>> = { clients: 'clients', connections: 'connections' };

/** Reads a YAML text. @param file its file; undefined if it has none. */
export function readText(text: string, values: Values, file: string | undefined): Source {
  const given = fillInYaml(text, values);
  const lineOf = (line: number | undefined) => (line === undefined ? undefined : given.lineOf(line));
  const yamlFault = ({ line, message }: YamlFault) =>
    placed(`not valid YAML: ${message}`, { file, line: lineOf(line) });
  const read = readYaml(given.text);
  const unset = given.faults.map(({ line, message }) => placed(message, { file, line }));
  const isRead = !('faults' in read);
  return {
    value: isRead ? (read.value ?? {}) : undefined,
    isEmpty: isRead && (read.value ?? undefined) === undefined,
    faults: isRead ? unset : [...unset, ...read.faults.map(yamlFault)],
    warnings: isRead ? read.warnings.map(yamlFault) : [],
    placeOf: (path) => ({ file, line: isRead ? lineOf(read.lineOf(path)) : undefined }),
    foldersOf: ([section = '']) => {
      const folder = dirname(file ?? '');
      const first = FOLDERS[section];
      return first === undefined ? [folder] : [join(folder, first), folder];
    },
  };
}
