// How an owner declares its settings: the environment variables, and what they mean together. `src/settings` joins the
// groups of all owners.
import { z } from 'zod';

type Values<V extends z.ZodRawShape> = z.output<z.ZodObject<V>>;

export interface SettingsGroup<V extends z.ZodRawShape, Result extends object, Others> {
  /**
   * Form, default and meaning of each variable, by its name. In `meta`: `description`; `fallback`, what the documents
   * say where the default is no value; `isSecret` for one that is a secret or may contain one.
   */
  variables: V;
  /** Returns the faults of valid variables together, one sentence each, which quotes no secret. */
  faults(own: Values<V>, others: Others): string[];
  /** Returns the settings. Members that are undefined are left out. */
  settings(own: Values<V>, others: Others): Result;
}

/** Declares a group. The type of `others` says which variables of other groups it looks at. */
export function settingsGroup<V extends z.ZodRawShape, Result extends object, Others = unknown>(declared: {
  variables: V;
  faults?: (own: Values<V>, others: Others) => string[];
  settings: (own: Values<V>, others: Others) => Result;
}): SettingsGroup<V, Result, Others> {
  return { faults: () => [], ...declared };
}

/** Returns an object without the members that are undefined. */
export function present<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

/** A port number; 0 takes a free port. */
export const port = z
  .string()
  .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65535, 'must be a port number, 0 to 65535')
  .transform(Number);

/** An https origin, without its slash. @param example for the fault. */
export const origin = (example: string) =>
  z.string().transform((text, context) => {
    const url = URL.parse(text);
    if (url?.protocol === 'https:' && url.href === `${url.origin}/`) return url.origin;
    context.addIssue({
      code: 'custom',
      message: `must be an https origin, such as ${example}, without a path`,
    });
    return z.NEVER;
  });

/** A list that is separated by commas. @param form what an entry that is not valid lacks. */
export const list = (isValid: (entry: string) => boolean, form: string) =>
  z.string().transform((text, context) => {
    const entries = text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '');
    for (const entry of entries)
      if (!isValid(entry)) context.addIssue({ code: 'custom', message: `${entry} is no ${form}` });
    return entries;
  });
