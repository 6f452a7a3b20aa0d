// Pages and e-mail templates in files beside the tenant file, as the hosted service's deploy tool writes them.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The sections and members that may contain a path. */
const TEXTS = { pages: 'html', emailTemplates: 'body', clients: 'custom_login_page' } as const;

/** A path. HTML would contain a tag. */
const PATH = /^[^<>\n]+\.html?$/i;

interface HtmlFiles {
  /** The paths are relative to it. */
  directory: string;
  env: Environment;
  /** Gets a message for each file that cannot be read. */
  faults: string[];
  /** Called with the path of each file before it is read. */
  onFile(path: string): void;
}

/**
 * Replaces paths in a document by the contents of their files. In a file `##NAME##` is replaced from the
 * environment if it is set; `${NAME}` is left alone, because it is JavaScript there.
 */
export function readHtmlFiles(document: unknown, { directory, env, faults, onFile }: HtmlFiles): unknown {
  if (typeof document !== 'object' || document === null) return document;
  const sections = Object.entries(TEXTS).flatMap(([section, key]) => {
    const records: unknown = (document as Record<string, unknown>)[section];
    if (!Array.isArray(records)) return [];
    const read = records.map((record: unknown, index) => {
      const path: unknown =
        typeof record === 'object' && record !== null ? (record as Record<string, unknown>)[key] : undefined;
      if (typeof path !== 'string' || !PATH.test(path)) return record;
      const file = resolve(directory, path);
      onFile(file);
      try {
        const text = readFileSync(file, 'utf8');
        return { ...(record as object), [key]: withVariables(text, env) };
      } catch {
        faults.push(`${section}[${index}].${key}: ${path} cannot be read`);
        return record;
      }
    });
    return [[section, read] as const];
  });
  return { ...document, ...Object.fromEntries(sections) };
}

function withVariables(text: string, env: Environment): string {
  return text.replace(/##([A-Za-z_][A-Za-z0-9_]*)##/g, (whole, name: string) => env[name] ?? whole);
}
