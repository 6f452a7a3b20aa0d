// `gatehouse script`.

import { text } from 'node:stream/consumers';
import { Argument } from 'commander';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import {
  profileArguments,
  TESTABLE_SCRIPTS,
  type TestableScript,
  tryScript,
} from '../server/administration/script-test.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import type { CommandDeclaration } from './command.ts';

interface ScriptTestOptions {
  token?: string;
  context: string;
  username?: string;
  passwordStdin?: boolean;
}

export const testConnectionScript: CommandDeclaration = {
  name: 'script test <connection>',
  description: 'run a script of a connection, and print profile, log and what it used',
  options: (command) =>
    void command
      .addArgument(
        new Argument('[script]', 'what is run')
          .choices(TESTABLE_SCRIPTS)
          .default('fetchUserProfile' as const),
      )
      .option('-t, --token <token>', 'the access token for fetchUserProfile; - reads it from standard input')
      .option('--context <json>', 'what else the token endpoint would have answered', '{}')
      .option('-u, --username <name>', 'whom login and get_user are asked for: an address or username')
      .option('--password-stdin', 'read the password for login from standard input'),
  run: ({ host, sendOrder }, connection: string, script: TestableScript, options: ScriptTestOptions) =>
    testScript(host, sendOrder, { connection, script }, options),
};

async function testScript(
  host: CommandProcess,
  sendOrder: SendOrder,
  target: { connection: string; script: TestableScript },
  options: ScriptTestOptions,
): Promise<void> {
  const settings = readSettings(host.env);
  const { args, secrets } = await scriptArguments(settings, host, target, options);
  const script = await sendOrder(settings, { command: 'script', ...target });
  const { report, hasFailed } = await tryScript(settings, script, { ...target, args, secrets });
  print(host, report);
  if (hasFailed) host.exitCode = 1;
}

/** Secrets come from standard input, because other users of the machine can see command lines. */
async function scriptArguments(
  settings: Settings,
  { stdin }: CommandProcess,
  { connection, script }: { connection: string; script: TestableScript },
  { token: tokenOption, context, username, passwordStdin = false }: ScriptTestOptions,
): Promise<{ args: readonly unknown[]; secrets: readonly string[] }> {
  if (script === 'fetchUserProfile') {
    if (tokenOption === undefined) throw new Error('fetchUserProfile needs --token');
    const token = tokenOption === '-' ? (await text(stdin)).trim() : tokenOption;
    const parsedContext = JSON.parse(context) as Record<string, unknown>;
    return {
      args: profileArguments(settings, { connection, token, context: parsedContext }),
      secrets: [token],
    };
  }
  if (username === undefined) throw new Error(`${script} needs --username`);
  if (script === 'get_user') return { args: [username], secrets: [] };
  if (!passwordStdin) throw new Error('login needs --password-stdin');
  const password = (await text(stdin)).replace(/\r?\n$/, '');
  return { args: [username, password], secrets: [password] };
}
