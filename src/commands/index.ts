// The commands of `gatehouse`.
import { Command, CommanderError } from 'commander';
import { type CommandProcess, visible } from '../runtime/command-process.ts';
import { createLog } from '../runtime/log.ts';
import { sendOrRunOrder } from '../server/administration/carry-out.ts';
import { faultText } from '../server/fault.ts';
import { testAction } from './actions.ts';
import { createAdmin } from './admin.ts';
import { apply, plan } from './apply.ts';
import { backup } from './backup.ts';
import { check } from './check.ts';
import type { CommandContext, CommandDeclaration } from './command.ts';
import { doctor } from './doctor.ts';
import { exportTenant } from './export.ts';
import { init } from './init.ts';
import { reseal, reset, rotate, trust } from './keys.ts';
import { migrate } from './migrate.ts';
import { closeMove, moveStatus, openMove, trickle } from './move/bridges.ts';
import { moveSessions, moveTokens } from './move/logins.ts';
import { moveIn } from './move/move-in.ts';
import { moveOut } from './move/move-out.ts';
import { checkMove } from './move.ts';
import { repair } from './repair.ts';
import { restore } from './restore.ts';
import { testConnectionScript } from './script.ts';
import { start } from './start.ts';
import { account, exportUsers, importUsers } from './users.ts';

/** All commands, in the order of the help. */
const COMMANDS: readonly CommandDeclaration[] = [
  start,
  init,
  doctor,
  backup,
  restore,
  migrate,
  checkMove,
  moveIn,
  moveOut,
  check,
  apply,
  plan,
  exportTenant,
  repair,
  importUsers,
  exportUsers,
  account,
  rotate,
  trust,
  reseal,
  reset,
  openMove,
  trickle,
  moveSessions,
  moveTokens,
  moveStatus,
  closeMove,
  createAdmin,
  testConnectionScript,
  testAction,
];

/** The first words that several commands share, with their descriptions. */
const GROUPS: Readonly<Record<string, string>> = {
  move: 'moving here from the hosted service, and leaving (migrate copies a store)',
  users: 'the users in the store, of a running server or of none',
  keys: 'signing keys, and the key that the secrets in the store are sealed with',
  admin: 'administrators of the console, and applications of the Management API',
  script: 'the scripts of connections',
  actions: 'the actions of the tenant',
};

/**
 * Runs a command to its end; `start` returns when the server listens. Prints faults to standard error and sets the exit
 * code.
 * @param args the arguments after the command's name.
 */
export async function runCommand(args: readonly string[], host: CommandProcess): Promise<void> {
  // Whoever reads the output may stop before its end, as `head` does.
  host.stdout.on('error', (thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'EPIPE') return host.exit(0);
    host.stderr.write(`${visible(faultText(thrown))}\n`);
    host.exit(1);
  });
  try {
    await programOf(host).parseAsync(args, { from: 'user' });
  } catch (thrown) {
    // The parser has already printed what is wrong with the arguments.
    if (thrown instanceof CommanderError) {
      host.exitCode = thrown.exitCode;
      return;
    }
    host.stderr.write(`${visible(faultText(thrown))}\n`);
    host.exit(1);
  }
}

function programOf(host: CommandProcess): Command {
  const { env, stdout, stderr } = host;
  const log = createLog(env.LOG_LEVEL, stderr);
  const context: CommandContext = {
    host,
    log,
    sendOrder: (settings, order) => sendOrRunOrder(settings, order, log),
  };
  const program = new Command('gatehouse')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
    })
    .description(
      'A self-hosted identity server. Settings come from the environment: see docs/reference/settings.md.',
    )
    .action((_options, { args: [unknown] }: Command) =>
      unknown === undefined
        ? start.run(context)
        : program.error(`error: unknown command '${unknown}': see --help`),
    );
  for (const declared of COMMANDS) addCommand(program, declared, context);
  // Set last, because subcommands inherit it: only the program itself takes any arguments, which are then the name
  // of a command that does not exist.
  return program.allowExcessArguments();
}

function addCommand(
  program: Command,
  { name, description, options, run }: CommandDeclaration,
  context: CommandContext,
): void {
  const [first = '', ...others] = name.split(' ');
  const ofGroup = GROUPS[first];
  const command =
    ofGroup === undefined
      ? program.command(name)
      : groupOf(program, first, ofGroup).command(others.join(' '));
  command.description(description);
  options?.(command);
  // The parser gives the arguments and options that the command declares.
  command.action((...given) => run(context, ...(given as never[])));
}

function groupOf(program: Command, name: string, description: string): Command {
  const known = program.commands.find((one) => one.name() === name);
  return known ?? program.command(name).description(description);
}
