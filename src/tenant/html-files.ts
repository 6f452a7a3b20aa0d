// Texts that the deploy tool keeps in files beside the tenant file: pages and e-mails.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** The lists whose records have such a text, and the key that has it. */
const TEXTS = { pages: 'html', emailTemplates: 'body', clients: 'custom_login_page' } as const;

/** A path, as against HTML, which a tag gives away. */
const PATH = /^[^<>\n]+\.html?$/i;

/**
 * Puts the contents of the files where a document names them. In a file `##NAME##` stands for an environment variable,
 * and for itself where there is none of that name; `${NAME}` is JavaScript's there and stays.
 * @param directory what the paths are relative to.
 * @param faults gets a sentence for each file that cannot be read.
 */
export function readHtmlFiles(
  document: unknown,
  directory: string,
  env: Environment,
  faults: string[],
): unknown {
  if (typeof document !== 'object' || document === null) return document;
  const sections = Object.entries(TEXTS).flatMap(([section, key]) => {
    const records: unknown = (document as Record<string, unknown>)[section];
    if (!Array.isArray(records)) return [];
    const read = records.map((record: unknown, index) => {
      const path: unknown = typeof record === 'object' && record !== null ? record[key as never] : undefined;
      if (typeof path !== 'string' || !PATH.test(path)) return record;
      try {
        const text = readFileSync(resolve(directory, path), 'utf8');
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
