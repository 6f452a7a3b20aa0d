// The operators' commands beside the server: check everything it depends on, and move the store. Each is loaded when it
// is used.
import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { CommandProcess } from '../runtime/command-process.ts';

const moving = () => import('./moving-commands.ts');

/** Adds `doctor`, `backup`, `restore` and `migrate`. @param log the log of the store, where this process opens it. */
export function addOperatingCommands(program: Command, host: CommandProcess, log: Logger): void {
  program
    .command('doctor')
    .description('look at everything the server depends on; the exit code is 1 where something is at fault')
    .option('--json', 'print the findings as JSON')
    .action(async (options: { json?: boolean }) =>
      (await import('./doctor/command.ts')).doctor(options, host, log),
    );
  program
    .command('backup <file>')
    .description('write the whole store to a new file, as it is at one moment, while the server runs or not')
    .action(async (file: string) => (await moving()).backup(file, host, log));
  program
    .command('restore <file>')
    .description('fill an empty store with a backup')
    .action(async (file: string) => (await moving()).restore(file, host, log));
  program
    .command('migrate')
    .description('copy a store to another that is empty: a data directory or a database, either way')
    .requiredOption('--from <place>', 'a data directory, or the address of a PostgreSQL database')
    .requiredOption('--to <place>', 'a data directory, or the address of a PostgreSQL database')
    .action(async (places: { from: string; to: string }) => (await moving()).move(places, host, log));
}
