// `gatehouse apply`, and `gatehouse plan`, which only says what apply would do.
import { print } from '../runtime/command-process.ts';
import { readSettings } from '../settings/index.ts';
import { type ConfigOption, configured, tenantOf, withConfig } from './check.ts';
import type { CommandContext, CommandDeclaration } from './command.ts';

export const apply: CommandDeclaration = {
  name: 'apply',
  description: 'make the tenant in the store equal to the tenant file',
  options: withConfig,
  run: async (context, given: ConfigOption) => void (await changes('apply', context, given)),
};

export const plan: CommandDeclaration = {
  name: 'plan',
  description: 'print what apply would change; the exit code is 2 where that is anything',
  options: withConfig,
  run: async (context, given: ConfigOption) => {
    if ((await changes('plan', context, given)) > 0) context.host.exitCode = 2;
  },
};

/** Applies the tenant file, or with `plan` only prints what would change. @returns the number of changes. */
async function changes(
  command: 'apply' | 'plan',
  { host, sendOrder }: CommandContext,
  given: ConfigOption,
): Promise<number> {
  const settings = readSettings(host.env);
  const { tenant } = await tenantOf(settings, host, configured(host, given));
  const lines = await sendOrder(settings, { command, tenant });
  for (const line of lines) print(host, line);
  const { tenantFile } = settings;
  const count = `${lines.length} ${lines.length === 1 ? 'change' : 'changes'}`;
  if (lines.length === 0) print(host, `${tenantFile}: no changes`);
  else print(host, command === 'apply' ? `applied ${tenantFile}: ${count}` : `${tenantFile}: ${count}`);
  return lines.length;
}
