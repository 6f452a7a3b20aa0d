// `gatehouse move out`: the tenant as a file of its own, and its users in the forms that the hosted service takes.
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { IMPORT_BYTES, leavingFiles } from '../../moving/leaving-files.ts';
import { print, visible } from '../../runtime/command-process.ts';
import { directoryMode, syncDirectory } from '../../runtime/files.ts';
import { sendOrRunTransfer } from '../../server/administration/carry-out.ts';
import { readSettings } from '../../settings/index.ts';
import { writeOutput } from '../../store/write-whole.ts';
import { NOT_HELD } from '../../tenant/tenant-export.ts';
import type { CommandContext, CommandDeclaration } from '../command.ts';

export const moveOut: CommandDeclaration = {
  name: 'move out',
  description:
    'write the tenant file, and the users with password hashes in the forms that the hosted service takes: whoever reads them may try passwords',
  options: (command) =>
    void command.requiredOption('-o, --output <folder>', 'where to: a folder that is not there yet'),
  run: (context, options: { output: string }) => moveTenantOut(context, options.output),
};

async function moveTenantOut({ host, log, sendOrder }: CommandContext, folder: string): Promise<void> {
  const settings = readSettings(host.env);
  await requireAbsent(folder);
  // The folder gets its name only when it is complete.
  const unfinished = `${folder}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(join(unfinished, 'import'), { recursive: true, mode: directoryMode });
  try {
    const yaml = await sendOrder(settings, { command: 'export' });
    for (const line of yaml.split('\n'))
      if (line.startsWith(NOT_HELD)) host.stderr.write(`warning: ${visible(line.slice(2))}\n`);
    await writeOutput(join(unfinished, 'tenant.yaml'), [yaml]);
    const files = leavingFiles(unfinished);
    const transfer = { command: 'leave' } as const;
    const nothing = async function* () {};
    for await (const one of sendOrRunTransfer(settings, transfer, { file: nothing, log }))
      if ('of' in one) await files.write(one);
    const { users, imports, withoutEmail } = await files.close();
    await syncDirectory(unfinished);
    await requireAbsent(folder);
    await rename(unfinished, folder);
    print(host, `${folder}: the tenant, and ${users} users`);
    print(
      host,
      `files for the hosted service's import of users, each of at most ${IMPORT_BYTES} bytes: ${imports}`,
    );
    if (withoutEmail > 0)
      print(
        host,
        `users without an e-mail address, whom that import does not take, in files of their own: ${withoutEmail}`,
      );
  } catch (thrown) {
    await rm(unfinished, { recursive: true, force: true });
    throw thrown;
  }
}

async function requireAbsent(folder: string): Promise<void> {
  const found = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found !== undefined) throw new Error(`${folder} is there already`);
}
