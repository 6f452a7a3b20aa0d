// `gatehouse apply`, and `gatehouse plan`, which only says what apply would do.
import { print } from '../runtime/command-process.ts';
import { readSettings } from '../settings/index.ts';
import { tenantOf } from './check.ts';
import type { CommandContext, CommandDeclaration } from './command.ts';

export const apply: CommandDeclaration = {
  name: 'apply',
  description: 'make the tenant in the store equal to the tenant file',
  run: async (context) => void (await changes('apply', context)),
};

export const plan: CommandDeclaration = {
  name: 'plan',
  description: 'print what apply would change; the exit code is 2 where that is anything',
  run: async (context) => {
    if ((await changes('plan', context)) > 0) context.host.exitCode = 2;
  },
};

/** Applies the tenant file, or with `plan` only prints what would change. @returns the number of changes. */
async function changes(command: 'apply' | 'plan', { host, sendOrder }: CommandContext): Promise<number> {
  const settings = readSettings(host.env);
  const { tenant } = await tenantOf(settings, host);
  const lines = await sendOrder(settings, { command, tenant });
  for (const line of lines) print(host, line);
  const { tenantFile } = settings;
  const count = `${lines.length} ${lines.length === 1 ? 'change' : 'changes'}`;
  if (lines.length === 0) print(host, `${tenantFile}: no changes`);
  else print(host, command === 'apply' ? `applied ${tenantFile}: ${count}` : `${tenantFile}: ${count}`);
  return lines.length;
}
