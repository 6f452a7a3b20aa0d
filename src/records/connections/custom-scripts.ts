// The scripts of a database connection whose users are, or were, kept in an external database.
import { Script } from 'node:vm';
import { z } from 'zod';
import { MAX_SCRIPT_LENGTH } from '../base/script-length.ts';

/** The scripts, by the hosted service's names. */
const CUSTOM_SCRIPTS = [
  'login',
  'get_user',
  'create',
  'verify',
  'change_password',
  'change_email',
  'change_username',
  'delete',
] as const;
export type CustomScriptName = (typeof CUSTOM_SCRIPTS)[number];

const scriptSchema = z
  .string()
  .max(MAX_SCRIPT_LENGTH, `is longer than ${MAX_SCRIPT_LENGTH} characters`)
  .refine(isJavaScript, 'is no JavaScript')
  .nullish();

/** The scripts' source texts by name; a faulty script is refused under its name. */
export const customScriptsSchema = z.looseObject(
  Object.fromEntries(CUSTOM_SCRIPTS.map((name) => [name, scriptSchema])) as Record<
    CustomScriptName,
    typeof scriptSchema
  >,
);

/** The options of a database that decide whether its users are kept externally. */
interface Customization {
  enabledDatabaseCustomization?: boolean | undefined;
  import_mode?: boolean | undefined;
  customScripts?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Returns the source of a script; undefined if there is none. */
export function customScript(
  { customScripts }: Pick<Customization, 'customScripts'>,
  name: CustomScriptName,
): string | undefined {
  const source = customScripts?.[name];
  return typeof source !== 'string' || source.trim() === '' ? undefined : source;
}

/**
 * Returns the required scripts that are missing. Only where users move here are there any: without them a user who has not
 * moved yet would seem not to exist, and anybody could sign up as them, so nobody can. Elsewhere nobody can log in without
 * `login`, which is a warning.
 */
export function missingScripts(options: Customization): CustomScriptName[] {
  if (options.enabledDatabaseCustomization !== true || options.import_mode !== true) return [];
  return (['login', 'get_user'] as const).filter((name) => customScript(options, name) === undefined);
}

/** Returns whether a text compiles in the way the sandbox reads it, as an expression or as a module. It is not run. */
function isJavaScript(text: string): boolean {
  if (text.trim() === '') return true;
  return [`(${text}\n)`, `(function () {${text}\n})`].some((source) => {
    try {
      return new Script(source) !== undefined;
    } catch {
      return false;
    }
  });
}
