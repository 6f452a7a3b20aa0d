// `gatehouse move out`: the tenant as the hosted service's deploy tool reads it, and its users in the forms that the service takes.
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Option } from 'commander';
import { IMPORT_BYTES, leavingFiles } from '../../moving/leaving-files.ts';
import { type Files, FORMATS, type Format, filesOf } from '../../moving/leaving-layout.ts';
import { leavingTenant } from '../../moving/leaving-tenant.ts';
import { print, visible } from '../../runtime/command-process.ts';
import { directoryMode, fileMode, syncDirectory } from '../../runtime/files.ts';
import { sendOrRunTransfer } from '../../server/administration/carry-out.ts';
import { readSettings } from '../../settings/index.ts';
import { GATEHOUSE_FILE } from '../../tenant/gatehouse-file.ts';
import type { CommandContext, CommandDeclaration } from '../command.ts';

interface Options {
  output: string;
  format: Format;
}

export const moveOut: CommandDeclaration = {
  name: 'move out',
  description:
    "write the tenant as the hosted service's deploy tool reads it, and the users with password hashes in the forms that the service takes: whoever reads them may try passwords",
  options: (command) =>
    void command
      .requiredOption('-o, --output <folder>', 'where to: a folder that is not there yet')
      .addOption(
        new Option(
          '--format <format>',
          'the form of the tenant: one YAML file with scripts and pages beside it, or the folders of the deploy tool, in `tenant`',
        )
          .choices(FORMATS)
          .default('yaml'),
      ),
  run: (context, options: Options) => moveTenantOut(context, options),
};

/** Where the tenant is, below the folder. */
const TENANT_FOLDERS: Readonly<Record<Format, string>> = { yaml: '.', directory: 'tenant' };

async function moveTenantOut(
  { host, log, sendOrder }: CommandContext,
  { output, format }: Options,
): Promise<void> {
  const settings = readSettings(host.env);
  // Without a slash at its end.
  const folder = join(dirname(output), basename(output));
  await requireAbsent(folder);
  // The folder gets its name only when it is complete.
  const unfinished = `${folder}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(dirname(unfinished), { recursive: true, mode: directoryMode });
  // Not one that somebody else has made meanwhile.
  await mkdir(unfinished, { mode: directoryMode });
  await mkdir(join(unfinished, 'import'), { mode: directoryMode });
  const files = leavingFiles(unfinished);
  try {
    const { file, notHeld } = await sendOrder(settings, { command: 'leave' });
    const leaving = leavingTenant(file);
    const warn = (text: string) => void host.stderr.write(`warning: ${visible(text)}\n`);
    for (const kind of notHeld)
      warn(`not in it, as management tools keep it: ${kind}; the deploy tool exports it from the server`);
    for (const one of leaving.refused) warn(`in ${GATEHOUSE_FILE} alone: ${one}`);
    await writeTenant(join(unfinished, TENANT_FOLDERS[format]), filesOf(leaving, format));
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
    await files.abandon();
    await rm(unfinished, { recursive: true, force: true });
    throw thrown;
  }
}

async function writeTenant(folder: string, files: Files): Promise<void> {
  for (const [path, content] of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true, mode: directoryMode });
    await writeFile(file, content, { mode: fileMode, flag: 'wx', flush: true });
  }
}

/** @throws Error for anything of that name, a link that leads nowhere too */
async function requireAbsent(folder: string): Promise<void> {
  const found = await lstat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found !== undefined) throw new Error(`${folder} is there already`);
}
