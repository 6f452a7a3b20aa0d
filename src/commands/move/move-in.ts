// `gatehouse move in`: a tenant of the hosted service moves here, as a whole or in parts, as often as is needed.
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { idleVariables } from '../../moving/assess.ts';
import { readExport } from '../../moving/export.ts';
import { type Identifiers, readIdentifiers, withIdentifiers } from '../../moving/identifiers.ts';
import { type Joined, joinFiles, type UnreadLine } from '../../moving/join.ts';
import { oldTenantReader } from '../../moving/old-tenant.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type CommandProcess, print } from '../../runtime/command-process.ts';
import { fileMode } from '../../runtime/files.ts';
import { sendOrRunTransfer } from '../../server/administration/carry-out.ts';
import { outboundAllow, readSettings, type Settings } from '../../settings/index.ts';
import type { MoveCounts } from '../../users/transfer/moved-import.ts';
import { tenantOf } from '../check.ts';
import type { CommandContext, CommandDeclaration } from '../command.ts';

interface Options {
  users?: string[];
  hashes?: string[];
  memberships?: string[];
  identifiers?: string[];
  from?: string;
  connection?: string;
  enrol?: true;
  refused: string;
}

export const moveIn: CommandDeclaration = {
  name: 'move in [export]',
  description:
    'move a tenant of the hosted service here: its configuration and users, with their ids, passwords and memberships; repeat it as often as needed',
  options: (command) =>
    void command
      .option('--users <file...>', 'exports of users: JSON, lines of JSON or CSV, compressed or not')
      .option(
        '--hashes <file...>',
        'password hashes: the file that support sends, or users of import files with custom_password_hash',
      )
      .option(
        '--memberships <file...>',
        'roles, permissions and members of organizations, a JSON object a line',
      )
      .option(
        '--identifiers <file...>',
        'answers of the old Management API (clients, connections, organizations, roles), whose ids and secrets are kept',
      )
      .option(
        '--from <domain>',
        'read ids, secrets, roles and memberships from the old tenant, while a move from it is open',
      )
      .option(
        '-c, --connection <name>',
        'the database connection of users of whom the export does not say it',
      )
      .option(
        '--enrol',
        'users with a second factor that no file has enrol another one after the password; without it they are not let in',
      )
      .option('--refused <prefix>', 'where refused lines are written, with the reasons', 'refused'),
  run: (context, path: string | undefined, options: Options) => moveTenantIn(context, path, options),
};

async function moveTenantIn(
  context: CommandContext,
  path: string | undefined,
  { users = [], hashes = [], memberships = [], identifiers = [], from, connection, enrol, refused }: Options,
): Promise<void> {
  const settings = readSettings(context.host.env);
  const files = { users, hashes, memberships };
  const movesUsers = users.length > 0 || hashes.length > 0;
  if (path === undefined && !movesUsers && memberships.length === 0 && from === undefined)
    throw new Error('there is nothing to move: give an export, --users, --hashes or --memberships');
  requireOthers(refusedNames(refused), [...users, ...memberships]);
  // Everything that can be read is read before anything is written.
  const given = await readIdentifiers(identifiers);
  const old = from === undefined ? undefined : await oldTenantOf(context, settings, from);
  const there = await old?.identifiers();
  // Roles of users who are not moved now would be refused.
  const members =
    there !== undefined && (movesUsers || path === undefined) ? old?.memberships(there) : undefined;
  const joined =
    movesUsers || memberships.length > 0 || members !== undefined
      ? await joinFiles(files, members)
      : undefined;
  try {
    if (path !== undefined) await moveConfiguration(context, settings, path, together(given, there));
    if (joined !== undefined) await moveUsers(context, settings, { joined, connection, enrol, refused });
  } finally {
    joined?.close();
  }
}

/** The files of refused lines are replaced: mended lines must not be lost with them. @throws Error */
function requireOthers(written: Readonly<Record<string, string>>, read: readonly string[]): void {
  const taken = new Set(Object.values(written).map((file) => resolve(file)));
  const both = read.find((file) => taken.has(resolve(file)));
  if (both !== undefined)
    throw new Error(`${both} is where refused lines are written: give the mended file another name`);
}

const refusedNames = (prefix: string) => ({
  user: `${prefix}-users.ndjson`,
  access: `${prefix}-memberships.ndjson`,
});

/** Returns functions that read the old tenant. @throws Error if no move from it is open */
async function oldTenantOf({ sendOrder }: CommandContext, settings: Settings, domain: string) {
  const source = await sendOrder(settings, { command: 'moveSource', domain });
  const { fetch } = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const pause = async (ms: number) => void (await setTimeout(ms));
  return oldTenantReader({ fetch, clock: systemClock, pause }, source);
}

function together(one: Identifiers, other: Identifiers | undefined): Identifiers {
  if (other === undefined) return one;
  return {
    clients: [...one.clients, ...other.clients],
    connections: [...one.connections, ...other.connections],
    organizations: [...one.organizations, ...other.organizations],
    roles: [...one.roles, ...other.roles],
  };
}

/** Adds and changes what the export has; what only this tenant has stays. */
async function moveConfiguration(
  { host, sendOrder }: CommandContext,
  settings: Settings,
  path: string,
  identifiers: Identifiers,
): Promise<void> {
  // Variables are replaced in the text, before it is parsed: where one stands that is not set, only a reading with marks in
  // their place says, and what is applied has no marks.
  const idle = idleVariables(await readExport(path, host.env));
  for (const { says } of idle) print(host, `warning: ${says}`);
  const env = { ...host.env, ...Object.fromEntries(idle.map(({ name }) => [name, ''])) };
  const loaded = await tenantOf({ ...settings, tenantFile: path }, host, env);
  const { tenant, report } = withIdentifiers(loaded.tenant, identifiers);
  for (const line of report) print(host, line);
  const { changes, notes } = await sendOrder(settings, { command: 'moveConfiguration', tenant });
  for (const line of [...changes, ...notes]) print(host, line);
  print(host, `configuration: ${changes.length} ${changes.length === 1 ? 'change' : 'changes'}`);
}

/** How often the progress is told, in milliseconds: on a terminal in one line, otherwise line by line. */
const [TERMINAL_MS, LINES_MS] = [500, 10_000];

async function moveUsers(
  { host, log }: CommandContext,
  settings: Settings,
  {
    joined,
    connection,
    enrol,
    refused,
  }: { joined: Joined; connection: string | undefined; enrol: true | undefined; refused: string },
): Promise<void> {
  const writer = refusedFiles(refused);
  await writer.clear();
  const progress = progressOf(host, joined);
  let counts: MoveCounts | undefined;
  let unread = 0;
  const onUnread = ({ of, text, message }: UnreadLine) => {
    unread += 1;
    const error = { code: 'NOT_PASSED', message };
    writer.write(of, { text, refused: [error] });
  };
  const transfer = {
    command: 'move',
    ...(connection !== undefined && { connection }),
    ...(enrol && { enrol }),
  } as const;
  try {
    const news = sendOrRunTransfer(settings, transfer, { file: () => joined.lines(onUnread), log });
    for await (const one of news) {
      if ('refused' in one) writer.write(one.refused, { ...Object(one.value), refused: one.errors });
      if (!('moved' in one)) continue;
      counts = one.moved;
      progress.tell(counts.read);
    }
  } finally {
    progress.end();
    await writer.close();
  }
  print(host, summaryOf(counts, unread, enrol === true));
  for (const file of writer.written()) print(host, `refused lines, with the reasons: ${file}`);
  if (writer.written().length > 0) host.exitCode = 1;
}

function summaryOf(counts: MoveCounts | undefined, unread: number, letsEnrol: boolean): string {
  const {
    read = 0,
    inserted = 0,
    updated = 0,
    unchanged = 0,
    refused = 0,
    refusedAccess = 0,
    lacksFactor = 0,
  } = counts ?? {};
  const lines = [
    `${read} users: ${inserted} new, ${updated} changed, ${unchanged} as they were, ${refused} refused`,
    ...(refusedAccess > 0 ? [`refused lines about roles and memberships: ${refusedAccess}`] : []),
    ...(unread > 0 ? [`lines that could not be read: ${unread}`] : []),
    ...(lacksFactor > 0
      ? [
          `users with a second factor that no file has: ${lacksFactor}; ${
            letsEnrol
              ? 'where one is asked for, they enrol another one after the password'
              : 'they are not let in unless they have one here, or support removes it in the console; with --enrol they enrol another one after the password'
          }`,
        ]
      : []),
  ];
  return lines.join('\n');
}

/** Tells how many users were moved, how fast, and how long the rest takes. */
function progressOf(host: CommandProcess, joined: Pick<Joined, 'progress'>) {
  const isTerminal = (host.stderr as { isTTY?: boolean }).isTTY === true;
  const startedAt = performance.now();
  let toldAt = startedAt;
  return {
    tell: (done: number) => {
      const now = performance.now();
      if (now - toldAt < (isTerminal ? TERMINAL_MS : LINES_MS)) return;
      toldAt = now;
      const seconds = (now - startedAt) / 1000;
      const part = joined.progress();
      const rest = part === 0 ? '' : `, ${durationOf((seconds / part) * (1 - part))} left`;
      const text = `${done} users, ${Math.round(done / seconds)} a second${rest}`;
      host.stderr.write(isTerminal ? `\r${text.padEnd(60)}` : `${text}\n`);
    },
    end: () => {
      if (isTerminal && toldAt !== startedAt) host.stderr.write('\n');
    },
  };
}

function durationOf(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/**
 * The files of refused lines. A line is as it was, with a member `refused` that is not read again, so that the file can be
 * mended and moved in.
 */
function refusedFiles(prefix: string) {
  const names = refusedNames(prefix);
  const open = new Map<keyof typeof names, ReturnType<typeof createWriteStream>>();
  return {
    /** Files of an earlier run would be taken for those of this one. */
    clear: async () => {
      for (const file of Object.values(names)) await rm(file, { force: true });
    },
    write: (of: keyof typeof names, line: object) => {
      const stream = open.get(of) ?? createWriteStream(names[of], { mode: fileMode, flags: 'wx' });
      open.set(of, stream);
      stream.write(`${JSON.stringify(line)}\n`);
    },
    close: async () => {
      for (const stream of open.values()) await finished(stream.end());
    },
    written: () => [...open.keys()].map((of) => names[of]),
  };
}
