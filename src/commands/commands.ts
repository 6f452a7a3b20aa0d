// The subcommands of the `gatehouse` command. Modules that only some of them need, above all the server, are loaded by
// these commands.
import { Command, CommanderError, Option } from 'commander';
import type { RotatedKey } from '../capabilities/signing/keys.ts';
import { SIGNING_ALGS, type SigningAlg } from '../records/signing-algs.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { createLog } from '../runtime/log.ts';
import { addActionCommands } from '../server/administration/action-commands.ts';
import { addAdministratorCommands } from '../server/administration/administrator-commands.ts';
import { sendOrRunOrder } from '../server/administration/order.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import { addScriptCommands } from '../server/administration/script-commands.ts';
import { faultText } from '../server/fault.ts';
import { readSettings } from '../settings/index.ts';
import { addOperatingCommands } from './operating-commands.ts';
import { repair, reseal, resetSecrets } from './store-commands.ts';
import { addTenantCommands } from './tenant-commands.ts';
import { addUserCommands } from './user-commands.ts';

/**
 * Runs a command to its end; `start` returns when the server listens. Prints faults to standard error and sets the exit
 * code.
 * @param args the arguments after the command's name.
 */
export async function runCommand(args: readonly string[], host: CommandProcess): Promise<void> {
  try {
    await programOf(host).parseAsync(args, { from: 'user' });
  } catch (thrown) {
    // The parser has already printed what is wrong with the arguments.
    if (thrown instanceof CommanderError) {
      host.exitCode = thrown.exitCode;
      return;
    }
    host.stderr.write(`${faultText(thrown)}\n`);
    host.exit(1);
  }
}

function programOf(host: CommandProcess): Command {
  const { env, stdout, stderr } = host;
  // Standard output is for the command's result.
  const log = createLog(env.LOG_LEVEL, stderr);
  const ordered: SendOrder = (settings, order) => sendOrRunOrder(settings, order, log);
  const start = async () => (await import('./run.ts')).runServer(env, stdout);
  const program = new Command('gatehouse')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
    })
    .description('A self-hosted identity server. Settings come from the environment: see docs/operating.md.')
    .action((_options, { args: [unknown] }: Command) =>
      unknown === undefined ? start() : program.error(`error: unknown command '${unknown}': see --help`),
    );
  program.command('start').description('start the server (the default)').action(start);
  addOperatingCommands(program, host, log);
  addTenantCommands(program, host, ordered);
  program
    .command('repair')
    .description('give up what is damaged or missing in the store, and keep the rest; backups are better')
    .action(() => repair(host));
  addUserCommands(program, host, { log, sendOrder: ordered });
  addKeyCommands(program, host, ordered);
  addAdministratorCommands(program, host, ordered);
  addScriptCommands(program, host, ordered);
  addActionCommands(program, host, ordered);
  // Set last, because subcommands inherit it: only the program itself takes any arguments, which are then the name
  // of a command that does not exist.
  return program.allowExcessArguments();
}

function addKeyCommands(program: Command, host: CommandProcess, ordered: SendOrder): void {
  const keys = program
    .command('keys')
    .description('signing keys, and the key that the secrets in the store are sealed with');
  keys
    .command('rotate')
    .description('sign with the next keys from now on')
    .addOption(new Option('--alg <alg>', 'only with those of this algorithm').choices(SIGNING_ALGS))
    .action(async ({ alg }: { alg?: SigningAlg }) => {
      const order = { command: 'rotate', ...(alg && { alg }) } as const;
      const keys = (await ordered(readSettings(host.env), order)) as RotatedKey[];
      const [first, ...others] = keys;
      if (others.length === 0) print(host, `from now on tokens are signed with ${first?.kid}`);
      else for (const { alg, kid } of keys) print(host, `from now on ${alg} tokens are signed with ${kid}`);
    });
  keys
    .command('reseal')
    .description('seal the secrets in the store with SECRETS_KEY, or with a new key in keys/secrets.key')
    .action(() => reseal(host));
  keys
    .command('reset')
    .alias('reset-authenticators')
    .description('when the key of the store is lost for good: remove the secrets that it sealed')
    .action(() => resetSecrets(host));
}
