// `gatehouse export`.
import { visible } from '../runtime/command-process.ts';
import { readSettings } from '../settings/index.ts';
import { writeOutput } from '../store/write-whole.ts';
import { NOT_HELD } from '../tenant/tenant-export.ts';
import type { CommandDeclaration } from './command.ts';

export const exportTenant: CommandDeclaration = {
  name: 'export',
  description: 'write the tenant in the store as a tenant file',
  options: (command) => void command.option('-o, --output <file>', 'where to (standard output otherwise)'),
  run: async ({ host: { env, stdout, stderr }, sendOrder }, { output }: { output?: string }) => {
    const yaml = await sendOrder(readSettings(env), { command: 'export' });
    for (const line of yaml.split('\n'))
      if (line.startsWith(NOT_HELD)) stderr.write(`warning: ${visible(line.slice(2))}\n`);
    if (output === undefined) stdout.write(yaml);
    else await writeOutput(output, [yaml]);
  },
};
