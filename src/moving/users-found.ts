// Counts the users of an export, and names those whom `move in` would refuse. The files are read once, as streams: what must be
// compared over all of them is kept as numbers in a temporary database of SQLite.
import { hash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { normalizeEmail } from '../records/base/email.ts';
import type { Connection } from '../records/collections.ts';
import {
  connectionSchema,
  DATABASE,
  databaseSchema,
  strategyRecord,
} from '../records/connections/connections.ts';
import { checkBcrypt, checkHash } from '../users/imported-hashes/imported-hashes.ts';
import { idOfSecret, type MoveTarget, readMoved } from '../users/transfer/moved-user.ts';
import { linesOfExport } from './export-lines.ts';

/** How users of a connection log in. */
type Way = 'database' | 'passwordless' | 'social' | 'enterprise' | 'not built in' | 'not in the export';

export interface UsersOfConnection {
  connection: string;
  strategy: string;
  way: Way;
  users: number;
}

export interface UsersFound {
  users: number;
  connections: UsersOfConnection[];
  /** Identities of databases, and how many of them have a password hash. */
  databaseUsers: number;
  withHash: number;
  linked: number;
  blocked: number;
  unverified: number;
  /** Users with a second factor at the old tenant, and those whose enrolments the files have. */
  withFactor: number;
  withEnrolments: number;
  hashes: number;
  /** Hash algorithms that are not taken, with how many users have each. */
  refusedHashes: Record<string, number>;
  /** E-mail addresses that several users of one connection have. */
  duplicates: number;
  /** How many lines are refused; {@link refused} has the first of them. */
  refusedCount: number;
  /** Each with file, line and cause. */
  refused: string[];
  /** The counts as sentences. */
  lines: string[];
}

/** Returns what users are moved to when an export is applied, as far as a check needs it. */
export function targetOf(sections: Readonly<Record<string, unknown>>): MoveTarget {
  const all = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const connections = [
    ...all(sections.databases).flatMap((one) => databaseSchema.safeParse(one).data ?? []),
    ...all(sections.connections).flatMap((one) => connectionSchema.safeParse(one).data ?? []),
  ].map((one) => ({ ...one, id: one.name }));
  const databases = connections.filter(({ strategy }) => strategy === DATABASE);
  const [first, ...others] = databases;
  return {
    connections: new Map(connections.map((one) => [one.name, one as Connection])),
    database: others.length === 0 ? first?.name : undefined,
    roles: new Map(),
    organizations: new Map(),
  };
}

/** The most refused lines that are listed. */
const MAX_REFUSED = 200;
/** Rows that are written in one transaction. */
const ROWS = 50_000;

interface Counter {
  found: UsersFound;
  byConnection: Map<string, UsersOfConnection>;
  refuse(cause: string): void;
  /** Keeps a value to be compared with all others of its kind. */
  keep(kind: number, text: string, line: number): void;
}

const [EMAIL, DATABASE_USER, HASH] = [0, 1, 2];

/** @throws Error for a file that cannot be read, with the cause */
export async function findUsers(
  files: { users: readonly string[]; hashes: readonly string[] },
  target: MoveTarget,
): Promise<UsersFound> {
  // The empty name is a private temporary file that SQLite removes when it opens it.
  const database = new DatabaseSync('');
  try {
    database.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384');
    database.exec('CREATE TABLE kept (kind INTEGER, value INTEGER, line INTEGER); BEGIN');
    const insert = database.prepare('INSERT INTO kept VALUES (?, ?, ?)');
    let rows = 0;
    const found = noUsers();
    const counter: Counter = {
      found,
      byConnection: new Map(),
      refuse: (cause) => {
        found.refusedCount += 1;
        if (found.refused.length < MAX_REFUSED) found.refused.push(cause);
      },
      keep: (kind, text, line) => {
        insert.run(kind, hash('sha256', text, 'buffer').readBigInt64LE(), line);
        rows += 1;
        if (rows % ROWS === 0) database.exec('COMMIT; BEGIN');
      },
    };
    for (const file of files.hashes)
      for await (const { value, number } of linesOfExport(file))
        countHash(value, `${file}:${number}`, number, counter);
    for (const file of files.users)
      for await (const { value, number } of linesOfExport(file))
        countUser(value, `${file}:${number}`, { target, counter, number });
    database.exec('COMMIT');
    compare(database, counter);
    found.connections = [...counter.byConnection.values()].sort((a, b) => b.users - a.users);
    if (found.refusedCount > MAX_REFUSED) found.refused.push(`and ${found.refusedCount - MAX_REFUSED} more`);
    found.lines = linesOf(found, files);
    return found;
  } finally {
    database.close();
  }
}

const noUsers = (): UsersFound => ({
  users: 0,
  connections: [],
  databaseUsers: 0,
  withHash: 0,
  linked: 0,
  blocked: 0,
  unverified: 0,
  withFactor: 0,
  withEnrolments: 0,
  hashes: 0,
  refusedHashes: {},
  duplicates: 0,
  refusedCount: 0,
  refused: [],
  lines: [],
});

type Value = Readonly<Record<string, unknown>> | undefined;

/** Counts a line of the file of hashes, or a user of an import file. */
function countHash(value: Value, at: string, number: number, { found, refuse, keep }: Counter): void {
  const id = value && idOfSecret(value);
  if (value === undefined || id === undefined) {
    const why = value === undefined ? 'it is no JSON object' : 'it names no user (_id, alt_id or user_id)';
    refuse(`${at}: ${why}`);
    return;
  }
  if (Array.isArray(value.mfa_factors) && value.mfa_factors.length > 0) found.withEnrolments += 1;
  const { passwordHash, password_hash: plain, custom_password_hash: custom } = value;
  const bcrypt = passwordHash ?? plain ?? undefined;
  if (bcrypt === undefined && custom === undefined) return;
  const checked = bcrypt === undefined ? checkHash(custom) : checkBcrypt(String(bcrypt));
  if ('hash' in checked) {
    found.hashes += 1;
    keep(HASH, id, number);
    return;
  }
  const algorithm = String((custom as { algorithm?: unknown } | undefined)?.algorithm ?? 'not bcrypt');
  found.refusedHashes[algorithm] = (found.refusedHashes[algorithm] ?? 0) + 1;
  refuse(`${at}: the hash cannot be taken (${algorithm})`);
}

interface UserContext {
  target: MoveTarget;
  counter: Counter;
  number: number;
}

function countUser(value: Value, at: string, { target, counter, number }: UserContext): void {
  const { found, refuse, keep } = counter;
  found.users += 1;
  if (value === undefined) {
    refuse(`${at}: it is no JSON object`);
    return;
  }
  const { identities, email, email_verified, blocked, multifactor, user_id: userId } = value;
  const all = (Array.isArray(identities) ? identities : []) as Readonly<Record<string, unknown>>[];
  const [first] = all;
  const connection = String(first?.connection ?? value.connection ?? target.database ?? 'unknown');
  countConnection(connection, String(first?.provider ?? String(userId).split('|')[0]), target, counter);
  if (all.length > 1) found.linked += 1;
  if (blocked === true) found.blocked += 1;
  if (typeof email === 'string' && email_verified !== true) found.unverified += 1;
  if (Array.isArray(multifactor) && multifactor.length > 0) found.withFactor += 1;
  for (const id of databaseIds(userId, all)) {
    found.databaseUsers += 1;
    keep(DATABASE_USER, id, number);
  }
  const address = typeof email === 'string' ? normalizeEmail(email) : undefined;
  const isDatabase = target.connections.get(connection)?.strategy === DATABASE;
  if (address !== undefined && isDatabase) keep(EMAIL, `${connection}\n${address}`, number);
  const read = readMoved({ user: value }, target, '2026-01-01T00:00:00.000Z');
  if ('errors' in read)
    refuse(
      `${at}: ${read.errors.map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`)).join('; ')}`,
    );
}

function countConnection(
  name: string,
  provider: string,
  target: MoveTarget,
  { byConnection }: Counter,
): void {
  const known = byConnection.get(name);
  if (known !== undefined) {
    known.users += 1;
    return;
  }
  const strategy = target.connections.get(name)?.strategy ?? provider;
  const way = target.connections.has(name) ? wayOf(strategy) : 'not in the export';
  byConnection.set(name, { connection: name, strategy, way, users: 1 });
}

const ENTERPRISE: readonly string[] = [
  'oidc',
  'okta',
  'waad',
  'adfs',
  'google-apps',
  'ad',
  'auth0-adldap',
  'samlp',
  'pingfederate',
];

function wayOf(strategy: string): Way {
  const known = strategyRecord(strategy);
  if (known === undefined) return 'not built in';
  if (known.isDatabase) return 'database';
  if (known.proves !== undefined) return 'passwordless';
  return ENTERPRISE.includes(strategy) ? 'enterprise' : 'social';
}

/** Returns the ids of a user's identities in databases. */
function databaseIds(userId: unknown, identities: readonly Readonly<Record<string, unknown>>[]): string[] {
  const prefix = `${DATABASE}|`;
  const own = typeof userId === 'string' && userId.startsWith(prefix) ? [userId] : [];
  const others = identities
    .filter(({ provider }) => provider === DATABASE)
    .map(({ user_id: id }) => prefix + String(id));
  return [...new Set([...own, ...others])];
}

/** Finds what several users have, and the users who have a hash. */
function compare(database: DatabaseSync, { found }: Counter): void {
  database.exec('CREATE INDEX kept_value ON kept (kind, value)');
  const { n } = database
    .prepare(
      'SELECT count(*) AS n FROM kept AS users WHERE kind = ? AND EXISTS (SELECT 1 FROM kept WHERE kind = ? AND value = users.value)',
    )
    .get(DATABASE_USER, HASH) as { n: number };
  found.withHash = n;
  const same = database.prepare(
    'SELECT group_concat(line) AS lines FROM kept WHERE kind = ? GROUP BY value HAVING count(*) > 1',
  );
  for (const { lines } of same.iterate(EMAIL)) {
    found.duplicates += 1;
    found.refusedCount += 1;
    const places = String(lines).split(',');
    const some = places.slice(0, 10).join(', ');
    if (found.refused.length < MAX_REFUSED)
      found.refused.push(
        `lines ${some}${places.length > 10 ? ' …' : ''}: the same e-mail address in one database: the first that moves in has it`,
      );
  }
}

const counted = (count: number): string => count.toLocaleString('en');

function linesOf(found: UsersFound, files: { hashes: readonly string[] }): string[] {
  const { users, connections, databaseUsers, withHash, hashes } = found;
  const width = Math.max(0, ...connections.map(({ connection }) => connection.length));
  const lacking = databaseUsers - withHash;
  const facts: [number, string][] = [
    [found.linked, 'have linked identities'],
    [found.blocked, 'are blocked'],
    [found.unverified, 'have an unverified e-mail address'],
    [
      found.withFactor,
      'have a second factor; exports do not contain enrolments: those of whom no file has them are not let in, or, with move in --enrol, enrol another one after the password',
    ],
    [found.withEnrolments, 'have enrolments in the files'],
  ];
  return [
    `${counted(users)} users`,
    ...connections.map(
      ({ connection, strategy, way, users: count }) =>
        `  ${counted(count).padStart(10)}  ${connection.padEnd(width)}  ${way}${way === 'database' ? '' : ` (${strategy})`}`,
    ),
    ...(databaseUsers > 0
      ? [
          `  ${counted(withHash).padStart(10)}  have a password hash, and ${counted(lacking)} have none${lacking > 0 ? ': let move trickle ask the old tenant at their first login, or have them set a new password' : ''}`,
        ]
      : []),
    ...(files.hashes.length > 0 && hashes > withHash
      ? [`  ${counted(hashes - withHash).padStart(10)}  hashes are of users whom the export does not have`]
      : []),
    ...facts
      .filter(([count]) => count > 0)
      .map(([count, says]) => `  ${counted(count).padStart(10)}  ${says}`),
    ...Object.entries(found.refusedHashes).map(
      ([name, count]) => `  ${counted(count).padStart(10)}  hashes cannot be taken: ${name}`,
    ),
    ...(found.duplicates > 0
      ? [`  ${counted(found.duplicates).padStart(10)}  e-mail addresses are several users' in one database`]
      : []),
    ...(found.refusedCount > 0
      ? [`  ${counted(found.refusedCount).padStart(10)}  lines cannot be taken (below)`]
      : []),
  ];
}
