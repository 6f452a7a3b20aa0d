// `gatehouse move open`, `trickle`, `status` and `close`: what of a tenant of the hosted service is accepted here, and until when.
import { readFile } from 'node:fs/promises';
import type { BridgeState, MoveState } from '../../features/move/move-state.ts';
import { type CommandProcess, print } from '../../runtime/command-process.ts';
import { readSettings } from '../../settings/index.ts';
import type { CommandDeclaration } from '../command.ts';

/** The variable with the secret of the application at the old tenant, which is never an argument: others see those. */
const SECRET = 'MOVE_CLIENT_SECRET';

export const openMove: CommandDeclaration = {
  name: 'move open',
  description: `begin to accept what a tenant of the hosted service has: nothing yet, until a command such as move trickle says what. The secret of its application is in ${SECRET}, or in a file`,
  options: (command) =>
    void command
      .requiredOption('--tenant <domain>', 'the name that the hosted service gave it: acme.eu.auth0.com')
      .requiredOption(
        '--client-id <id>',
        'an application of that tenant with the grants Client Credentials and Password, and its Management API (read:users, read:authentication_methods)',
      )
      .option(
        '--client-secret-file <file>',
        `a file with the secret of the application, instead of ${SECRET}`,
      )
      .requiredOption('--until <date>', 'the last day, in UTC, on which anything is accepted: 2027-03-31'),
  run: async (
    { host, sendOrder },
    {
      tenant,
      clientId: client_id,
      clientSecretFile: file,
      until,
    }: { tenant: string; clientId: string; clientSecretFile?: string; until: string },
  ) => {
    const client_secret = await secretOf(host, file, SECRET);
    const order = { command: 'moveOpen', tenant, client_id, client_secret, until } as const;
    printState(host, await sendOrder(readSettings(host.env), order));
  },
};

export const trickle: CommandDeclaration = {
  name: 'move trickle <connection>',
  description:
    'ask the old tenant for users of a database connection whose password is not here, at their first login: they are here with their password from then on',
  options: (command) =>
    void command
      .option('--until <date>', 'the last day of it, in UTC (that of the move otherwise)')
      .option(
        '--enrol',
        'users with a second factor that cannot be moved enrol another one after the password; without it they are not let in',
      )
      .option('--end', 'do not ask the old tenant any more'),
  run: async (
    { host, sendOrder },
    connection: string,
    { until, enrol, end }: { until?: string; enrol?: true; end?: true },
  ) => {
    const order = { command: 'movePasswords', connection, until, lets_enrol: enrol, end } as const;
    printState(host, await sendOrder(readSettings(host.env), order));
  },
};

export const moveStatus: CommandDeclaration = {
  name: 'move status',
  description: 'show what of the old tenant is accepted, and how many users have moved',
  options: (command) => void command.option('--json', 'print JSON'),
  run: async ({ host, sendOrder }, { json }: { json?: true }) => {
    const state = await sendOrder(readSettings(host.env), { command: 'moveStatus' });
    if (json === true) print(host, JSON.stringify(state));
    else printState(host, state);
  },
};

export const closeMove: CommandDeclaration = {
  name: 'move close',
  description: 'accept nothing of the old tenant any more, and forget the secrets for it',
  run: async ({ host, sendOrder }) => {
    const last = await sendOrder(readSettings(host.env), { command: 'moveClose' });
    print(host, `The move from ${last.origin} is over; nothing of it is accepted any more. In all:`);
    for (const bridge of last.bridges) print(host, `  ${nameOf(bridge)}: ${bridge.moved} moved`);
  },
};

/** @param variable where the secret is without a file. @throws Error if there is no secret. */
export async function secretOf(
  host: CommandProcess,
  file: string | undefined,
  variable: string,
): Promise<string> {
  const secret = file === undefined ? host.env[variable] : (await readFile(file, 'utf8')).trim();
  if (secret !== undefined && secret !== '') return secret;
  throw new Error(
    file === undefined ? `${variable} is not set, and --client-secret-file is not given` : `${file} is empty`,
  );
}

export function printState(host: CommandProcess, state: MoveState | null): void {
  if (state === null) {
    print(host, 'No move is open. gatehouse move open begins one.');
    return;
  }
  print(host, `Moving in from ${state.origin}, ${stateOf(state)}.`);
  if (state.bridges.length === 0)
    print(host, 'Nothing of it is accepted yet: gatehouse move trickle <connection> accepts its passwords.');
  for (const bridge of state.bridges) {
    print(host, '');
    print(host, `${nameOf(bridge)}, ${stateOf(bridge)}`);
    if (bridge.through !== undefined) print(host, `  those of the custom domain: through ${bridge.through}`);
    for (const line of numbersOf(bridge)) print(host, `  ${line}`);
  }
  if (state.unreachable !== undefined)
    print(host, `\nThe old tenant was not asked how many users it has: ${state.unreachable}.`);
}

const TITLES = {
  passwords: 'Passwords',
  sessions: 'Sessions',
  refresh_tokens: 'Refresh tokens',
} as const;

function nameOf({ kind, connection }: BridgeState): string {
  return connection === undefined ? TITLES[kind] : `${TITLES[kind]} of ${connection}`;
}

function stateOf({
  is_open: isOpen,
  until,
  ended_at,
}: {
  is_open: boolean;
  until: string;
  ended_at?: string;
}): string {
  if (ended_at !== undefined) return `ended at ${minuteOf(ended_at)}`;
  return isOpen ? `open until ${minuteOf(until)}` : `over since ${minuteOf(until)}`;
}

/** Returns a time in the form of the command's output, without seconds. */
const minuteOf = (time: string) => `${time.slice(0, 16).replace('T', ' ')} UTC`;

function numbersOf({ kind, left, users_there: there, last_hour: hour, ...all }: BridgeState): string[] {
  const row = (name: string, total: number | string, last: number | string = '') =>
    `${name.padEnd(24)}${String(total).padStart(8)}${String(last).padStart(12)}`.trimEnd();
  return [
    row('', 'in all', 'last hour'),
    row('moved', all.moved, hour.moved),
    row(kind === 'passwords' ? 'wrong passwords' : 'not accepted there', all.refused, hour.refused),
    row('failed', all.failed, hour.failed),
    ...(there === undefined || left === undefined
      ? []
      : [row('users at the old tenant', there), row('left, about', left)]),
  ];
}
