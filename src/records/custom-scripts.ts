// The scripts of a database connection whose users are kept, or were kept, elsewhere.
import { Script } from 'node:vm';
import { z } from 'zod';
import { LONGEST_SCRIPT } from './script-length.ts';

/** What scripts are for, by the hosted service's names. */
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
  .max(LONGEST_SCRIPT, `is longer than ${LONGEST_SCRIPT} characters`)
  .refine(isJavaScript, 'is no JavaScript')
  .nullish();

/** Their texts, by name; one that could not be run is refused by its name. */
export const customScriptsSchema = z.looseObject(
  Object.fromEntries(CUSTOM_SCRIPTS.map((name) => [name, scriptSchema])) as Record<
    CustomScriptName,
    typeof scriptSchema
  >,
);

/** What of a database's options says whether its users are kept elsewhere. */
interface Customization {
  enabledDatabaseCustomization?: boolean | undefined;
  import_mode?: boolean | undefined;
  customScripts?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The text of a script; undefined where there is none. */
export function customScript(
  { customScripts }: Pick<Customization, 'customScripts'>,
  name: CustomScriptName,
): string | undefined {
  const source = customScripts?.[name];
  return typeof source !== 'string' || source.trim() === '' ? undefined : source;
}

/** The scripts without which nobody could log in, or somebody who has not moved here yet could be taken for nobody. */
export function lackingScripts(options: Customization): CustomScriptName[] {
  if (options.enabledDatabaseCustomization !== true) return [];
  const needed = options.import_mode === true ? (['login', 'get_user'] as const) : (['login'] as const);
  return needed.filter((name) => customScript(options, name) === undefined);
}

/** Whether a text can be read as the sandbox does: an expression, or the text of a module. Nothing of it is run. */
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
