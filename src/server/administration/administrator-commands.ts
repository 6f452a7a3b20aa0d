// The command `gatehouse admin`, which gives access to the Management API and the console.
import type { Command } from 'commander';
import { type CommandProcess, print } from '../../runtime/command-process.ts';
import { readSettings } from '../../settings/index.ts';
import type { Admin } from './admin.ts';
import type { SendOrder } from './orders.ts';

/** Adds the command to the program. @param sendOrder carries out an order. */
export function addAdministratorCommands(program: Command, host: CommandProcess, sendOrder: SendOrder): void {
  program
    .command('admin')
    .description('administrators of the console, and applications of the Management API')
    .command('create')
    .description(
      'with --email: print a link, once, by which somebody becomes an owner at the console, or sets a new password there; without: make an application that may call everything of the Management API, and print its secret, once',
    )
    .option('--email <address>', 'of the owner of the console')
    .option('--name <name>', 'what the application is called', 'Administration')
    .option('--json', 'print JSON')
    .action((options: { email?: string; name: string; json?: boolean }) =>
      options.email === undefined
        ? createApplication(host, sendOrder, options)
        : invite(host, sendOrder, { ...options, email: options.email }),
    );
}

/** Creates a client with all scopes of the Management API and prints its credentials. */
async function createApplication(
  host: CommandProcess,
  sendOrder: SendOrder,
  { name, json }: { name: string; json?: boolean },
): Promise<void> {
  const admin = (await sendOrder(readSettings(host.env), { command: 'admin', name })) as Admin;
  if (json === true) return print(host, JSON.stringify(admin));
  print(host, `# ${name} may call everything of the Management API. Its secret is not shown again.`);
  print(host, `AUTH0_DOMAIN=${admin.domain}`);
  print(host, `AUTH0_CLIENT_ID=${admin.client_id}`);
  print(host, `AUTH0_CLIENT_SECRET=${admin.client_secret}`);
}

/** Prints a link for an owner of the console. */
async function invite(
  host: CommandProcess,
  sendOrder: SendOrder,
  { email, json }: { email: string; json?: boolean },
): Promise<void> {
  const link = (await sendOrder(readSettings(host.env), { command: 'administrator', email })) as {
    url: string;
    isNew: boolean;
  };
  if (json === true) return print(host, JSON.stringify(link));
  const effect = link.isNew ? 'becomes an owner of the console' : 'sets a new password of the console';
  print(host, `# Whoever opens this ${effect}, as ${email}. It works once, and is not shown again.`);
  print(host, link.url);
}
