// Warnings about custom databases without the scripts that some functions need.
import { type CustomScriptName, customScript } from '../records/custom-scripts.ts';
import type { TenantFile } from '../records/tenant.ts';

/** Returns a warning for each missing script, with what does not work without it. */
export function databaseWarnings({ databases }: Pick<TenantFile, 'databases'>): string[] {
  return databases.flatMap(({ name, options }, index) => {
    if (options.enabledDatabaseCustomization !== true || options.import_mode === true) return [];
    const effects: [CustomScriptName, string][] = [
      ...(options.disable_signup ? [] : [['create', 'nobody can sign up'] as [CustomScriptName, string]]),
      ['change_password', 'nobody can set a new password'],
      ['get_user', 'who never logged in cannot set a new password, and may be signed up as by somebody else'],
    ];
    return effects
      .filter(([script]) => customScript(options, script) === undefined)
      .map(
        ([script, what]) =>
          `databases[${index}].options.customScripts.${script}: without it ${what} in ${name}`,
      );
  });
}
