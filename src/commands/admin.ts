// `gatehouse admin`, which gives access to the Management API and the console.

import { type CommandProcess, print } from '../runtime/command-process.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import { readSettings } from '../settings/index.ts';
import type { CommandDeclaration } from './command.ts';

export const createAdmin: CommandDeclaration = {
  name: 'admin create',
  description:
    'with --email: print a link, once, by which somebody becomes an owner at the console, or sets a new password there; without: make an application that may call everything of the Management API, and print its secret, once',
  options: (command) =>
    void command
      .option('--email <address>', 'of the owner of the console')
      .option('--name <name>', 'what the application is called', 'Administration')
      .option('--json', 'print JSON'),
  run: ({ host, sendOrder }, options: { email?: string; name: string; json?: boolean }) =>
    options.email === undefined
      ? createApplication(host, sendOrder, options)
      : invite(host, sendOrder, { ...options, email: options.email }),
};

/** Creates a client with all scopes of the Management API and prints its credentials. */
async function createApplication(
  host: CommandProcess,
  sendOrder: SendOrder,
  { name, json }: { name: string; json?: boolean },
): Promise<void> {
  const admin = await sendOrder(readSettings(host.env), { command: 'admin', name });
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
  const link = await sendOrder(readSettings(host.env), { command: 'administrator', email });
  if (json === true) return print(host, JSON.stringify(link));
  const effect = link.isNew ? 'becomes an owner of the console' : 'sets a new password of the console';
  print(host, `# Whoever opens this ${effect}, as ${email}. It works once, and is not shown again.`);
  print(host, link.url);
}
