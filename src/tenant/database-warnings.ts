// Warnings about databases elsewhere whose scripts do not carry out all that people may ask for.
import { type CustomScriptName, customScript } from '../records/custom-scripts.ts';
import type { TenantFile } from '../records/tenant.ts';

/** One sentence for each script that is missed by whoever wants something of it. */
export function databaseWarnings({ databases }: Pick<TenantFile, 'databases'>): string[] {
  return databases.flatMap(({ name, options }, index) => {
    if (options.enabledDatabaseCustomization !== true || options.import_mode === true) return [];
    const missed: [CustomScriptName, string][] = [
      ...(options.disable_signup ? [] : [['create', 'nobody can sign up'] as [CustomScriptName, string]]),
      ['change_password', 'nobody can set a new password'],
      ['get_user', 'who never logged in cannot set a new password, and may be signed up as by somebody else'],
    ];
    return missed
      .filter(([script]) => customScript(options, script) === undefined)
      .map(
        ([script, what]) =>
          `databases[${index}].options.customScripts.${script}: without it ${what} in ${name}`,
      );
  });
}
