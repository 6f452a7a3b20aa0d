// Assigns the faults of a refused body to the fields of a form.
import type { z } from 'zod';
import type { AuthError } from '../../../http/errors.ts';
import { wordingIn } from '../schema-words.ts';
import { type Field, WHOLE } from './console-resource-fields.ts';

export interface FormFaults {
  /** By the path of a field. */
  at: Record<string, string>;
  general: string[];
}

export const hasFaults = ({ at, general }: FormFaults): boolean =>
  general.length > 0 || Object.keys(at).length > 0;

/** @param language the tag of the locale for the messages. */
export function faultsBySchema(
  schema: z.ZodType,
  body: unknown,
  fields: readonly Field[],
  language = 'en',
): FormFaults {
  const wording = wordingIn(language);
  const result = schema.safeParse(body, { reportInput: true });
  const faults: FormFaults = { at: {}, general: [] };
  for (const issue of result.success ? [] : result.error.issues)
    addFault(faults, fields, issue.path.map(String), wording(issue));
  return faults;
}

/** Returns the fault that a handler reported. Its text ends with the faulty member, if there is one. */
export function faultOfAnswer({ error_description: text }: AuthError, fields: readonly Field[]): FormFaults {
  const faults: FormFaults = { at: {}, general: [] };
  const [, path = ''] = / on property ([\w.[\]-]+)\.$/.exec(text) ?? [];
  addFault(faults, fields, path.replaceAll(/\[(\d+)\]/g, '.$1').split('.'), text);
  return faults;
}

/** Adds a fault to the most deeply nested field that contains the member. */
function addFault(faults: FormFaults, fields: readonly Field[], path: readonly string[], text: string): void {
  const paths = pathsOf(fields);
  for (let length = path.length; length > 0; length -= 1) {
    const at = path.slice(0, length).join('.');
    if (!paths.has(at)) continue;
    const rest = path.slice(length).join('.');
    faults.at[at] ??= rest === '' ? text : `${rest}: ${text}`;
    return;
  }
  if (paths.has(WHOLE)) faults.at[WHOLE] ??= path.length === 0 ? text : `${path.join('.')}: ${text}`;
  else faults.general.push(path.join('') === '' ? text : `${path.join('.')}: ${text}`);
}

/** Returns the paths of all fields, including those of groups and their members. */
function pathsOf(fields: readonly Field[]): Set<string> {
  return new Set(fields.flatMap((field) => [field.path, ...pathsOf(field.fields ?? [])]));
}
