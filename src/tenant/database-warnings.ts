// Warnings about custom databases without the scripts that some functions need.
import { type CustomScriptName, customScript } from '../records/connections/custom-scripts.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';

/** Returns a warning for each missing script, with what does not work without it. */
export function databaseWarnings({ databases }: Pick<TenantFile, 'databases'>): string[] {
  return databases.flatMap((database, index) =>
    scriptWarnings(database).map((warning) => `databases[${index}].${warning}`),
  );
}

interface CustomDatabase {
  name: string;
  options: Parameters<typeof customScript>[0] & {
    readonly enabledDatabaseCustomization?: unknown;
    readonly import_mode?: unknown;
    readonly disable_signup?: unknown;
  };
}

/** As {@link databaseWarnings}, for one database. */
export function scriptWarnings({ name, options }: CustomDatabase): string[] {
  if (options.enabledDatabaseCustomization !== true || options.import_mode === true) return [];
  const effects: [CustomScriptName, string][] = [
    ['login', 'nobody can log in'],
    ...(options.disable_signup ? [] : [['create', 'nobody can sign up'] as [CustomScriptName, string]]),
    ['change_password', 'nobody can set a new password'],
    ['get_user', 'who never logged in cannot set a new password, and may be signed up as by somebody else'],
  ];
  return effects
    .filter(([script]) => customScript(options, script) === undefined)
    .map(([script, what]) => `options.customScripts.${script}: without it ${what} in ${name}`);
}
