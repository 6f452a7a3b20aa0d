// `gatehouse move`: moving here from the hosted service. `gatehouse migrate` is another thing: it copies a store of ours.

import { readExport } from '../moving/export.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import type { CommandDeclaration } from './command.ts';

export const checkMove: CommandDeclaration = {
  name: 'move check <export>',
  description:
    'say what becomes of a tenant of the hosted service here: the file or folder that its deploy tool exported',
  run: ({ host }, path: string) => checkExport(host, path),
};

async function checkExport(host: CommandProcess, path: string): Promise<void> {
  const { sections, faults } = await readExport(path, host.env);
  for (const [name, value] of Object.entries(sections))
    print(host, `${name}: ${Array.isArray(value) ? value.length : 1}`);
  for (const fault of faults) host.stderr.write(`${fault}\n`);
  if (faults.length > 0) host.exitCode = 1;
}
