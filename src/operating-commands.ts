// What operators do beside a server: look whether all is well, and take the store elsewhere. Each is loaded when it is asked
// for.
import type { Command } from 'commander';
import type { Logger } from 'pino';

const moving = () => import('./moving-commands.ts');

/** Adds `doctor`, `backup`, `restore` and `migrate`. @param print what they find and do, a line each. */
export function addOperatingCommands(program: Command, log: Logger, print: (text: string) => void): void {
  program
    .command('doctor')
    .description('look at everything the server depends on; the exit code is 1 where something is at fault')
    .option('--json', 'print the findings as JSON')
    .action(async (options: { json?: boolean }) =>
      (await import('./doctor/command.ts')).doctor(options, log, print),
    );
  program
    .command('backup <file>')
    .description('write the whole store to a new file, as it is at one moment, while the server runs or not')
    .action(async (file: string) => (await moving()).backup(file, log, print));
  program
    .command('restore <file>')
    .description('fill an empty store with a backup')
    .action(async (file: string) => (await moving()).restore(file, log, print));
  program
    .command('migrate')
    .description('copy a store to another that is empty: a data directory or a database, either way')
    .requiredOption('--from <place>', 'a data directory, or the address of a PostgreSQL database')
    .requiredOption('--to <place>', 'a data directory, or the address of a PostgreSQL database')
    .action(async (places: { from: string; to: string }) => (await moving()).move(places, log, print));
}
