// `gatehouse admin`: the way to an application of the Management API, and to the console.
import type { Command } from 'commander';
import type { Settings } from '../settings.ts';
import { readSettings } from '../settings.ts';
import type { Admin } from './admin.ts';
import type { Order } from './orders.ts';

type Ordered = (settings: Settings, order: Order) => Promise<unknown>;

/** Adds the commands. @param ordered has an order carried out. */
export function addAdministratorCommands(program: Command, ordered: Ordered): void {
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
        ? createApplication(ordered, options)
        : invite(ordered, { ...options, email: options.email }),
    );
}

/** Makes an application that may call everything of the Management API. */
async function createApplication(
  ordered: Ordered,
  { name, json }: { name: string; json?: boolean },
): Promise<void> {
  const admin = (await ordered(readSettings(process.env), { command: 'admin', name })) as Admin;
  if (json === true) return say(JSON.stringify(admin));
  say(`# ${name} may call everything of the Management API. Its secret is not shown again.`);
  say(`AUTH0_DOMAIN=${admin.domain}`);
  say(`AUTH0_CLIENT_ID=${admin.client_id}`);
  say(`AUTH0_CLIENT_SECRET=${admin.client_secret}`);
}

/** Prints the link of an owner. */
async function invite(ordered: Ordered, { email, json }: { email: string; json?: boolean }): Promise<void> {
  const made = (await ordered(readSettings(process.env), { command: 'administrator', email })) as {
    url: string;
    isNew: boolean;
  };
  if (json === true) return say(JSON.stringify(made));
  const what = made.isNew ? 'becomes an owner of the console' : 'sets a new password of the console';
  say(`# Whoever opens this ${what}, as ${email}. It works once, and is not shown again.`);
  say(made.url);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
