// Asks directories who somebody is: finds the entry that a name means, and binds as it with the password.
import { randomUUID } from 'node:crypto';
import { type Client, type Entry, ResultCodeError, type SearchOptions, SizeLimitExceededError } from 'ldapts';
import PQueue from 'p-queue';
import { AuthError } from '../../http/errors.ts';
import type { Outbound } from '../../http/outbound.ts';
import type { Connection } from '../../records/collections.ts';
import { type LdapOptions, ldapOptions } from '../../records/ldap.ts';
import type { Clock } from '../../runtime/clock.ts';
import { connect } from './connect.ts';
import { filterFor } from './filter.ts';
import { groupsOf } from './groups.ts';
import { attributesOf, BINARY, idOf, profileOf } from './profile.ts';

/** A user of a directory, who has just given the right password. */
interface DirectoryUser {
  /** What the directory calls them, for good. */
  id: string;
  profile: Record<string, unknown>;
}

export interface Directories {
  /**
   * Looks at a name and a password.
   * @returns undefined for a name that means nobody, or several, and for a wrong password.
   * @throws AuthError 503 `temporarily_unavailable` when the directory cannot be asked.
   */
  prove(connection: Connection, name: string, password: string): Promise<DirectoryUser | undefined>;
  /** Whether the directory can be asked, by the service account. @throws AuthError 503 with the cause when it cannot. */
  check(connection: Connection): Promise<void>;
  /** Closes the connections that wait for their next use. */
  close(): Promise<void>;
}

/** Time for one question, milliseconds. */
const TIMEOUT = 10_000;
/** Connections that ask at once, of one directory, and logins that wait for one. */
const MOST_AT_ONCE = 8;
const MOST_WAITING = 200;
/** Connections that are kept for the next login, and for how long, milliseconds: what is between may cut idle ones. */
const MOST_KEPT = 4;
const KEPT_FOR = 60_000;

/** The connections of one directory: those of the service account are kept, as they are bound. */
interface Pool {
  /** The options it is for, as text. */
  of: string;
  queue: PQueue;
  kept: { client: Client; since: number }[];
}

export interface DirectoriesDependencies {
  outbound: Outbound;
  /** Elapsed time. */
  clock: Clock;
}

/** The directories of a tenant. */
export function createDirectories(deps: DirectoriesDependencies): Directories {
  const pools = new Map<string, Pool>();
  const poolOf = ({ id, options }: Connection): Pool => {
    const of = JSON.stringify(options);
    const known = pools.get(id);
    if (known?.of === of) return known;
    // Bound as the options before said.
    if (known !== undefined) empty(known);
    const made = { of, queue: new PQueue({ concurrency: MOST_AT_ONCE }), kept: [] };
    pools.set(id, made);
    return made;
  };
  const queued = async <T>(
    connection: Connection,
    ask: (pool: Pool, options: LdapOptions) => Promise<T>,
  ): Promise<T> => {
    const options = ldapOptions(connection);
    if (options === undefined) throw unavailable(new Error('the connection has no LDAP_URL'));
    const pool = poolOf(connection);
    if (pool.queue.size >= MOST_WAITING) throw unavailable();
    try {
      return await pool.queue.add(() => ask(pool, options));
    } catch (thrown) {
      throw thrown instanceof AuthError ? thrown : unavailable(thrown);
    }
  };
  return {
    prove: async (connection, name, password) => {
      // A bind without a password is an anonymous one, which succeeds (RFC 4513 §5.1.2).
      if (name === '' || password === '') return undefined;
      return queued(connection, (pool, options) => look(deps, pool, options, { name, password }));
    },
    check: (connection) =>
      queued(connection, async (_pool, options) => end(await service(deps.outbound, options))),
    close: async () => {
      for (const pool of pools.values()) empty(pool);
    },
  };
}

function unavailable(cause?: unknown): AuthError {
  const description = 'The directory cannot be asked at the moment.';
  return new AuthError(503, 'temporarily_unavailable', description, cause === undefined ? {} : { cause });
}

function empty(pool: Pool): void {
  for (const { client } of pool.kept.splice(0)) end(client);
}

/** Nothing is to be learnt of how it ends. */
function end(client: Client): void {
  client.unbind().catch(() => undefined);
}

async function look(
  deps: DirectoriesDependencies,
  pool: Pool,
  options: LdapOptions,
  { name, password }: { name: string; password: string },
): Promise<DirectoryUser | undefined> {
  const entry = await withService(deps, pool, options, (client) => find(client, name, options));
  // For a name that means nobody, too, so that it takes as long as a wrong password.
  const dn = entry?.dn ?? `cn=${randomUUID()},${options.LDAP_BASE}`;
  const isRight = await binds(deps, options, dn, password);
  if (!isRight || entry === undefined) return undefined;
  const groups = options.GROUPS
    ? await withService(deps, pool, options, (client) => groupsOf(client, entry.dn, options))
    : undefined;
  return { id: idOf(entry), profile: profileOf(entry, options, groups) };
}

/** The one entry that a name means; undefined when there is none, or more. */
async function find(client: Client, name: string, options: LdapOptions): Promise<Entry | undefined> {
  const search: SearchOptions = {
    scope: 'sub',
    derefAliases: 'never',
    filter: filterFor(options.LDAP_USER_BY_NAME, name),
    attributes: attributesOf(options),
    explicitBufferAttributes: BINARY,
    sizeLimit: 2,
    timeLimit: TIMEOUT / 1000,
  };
  try {
    const [entry, another] = (await client.search(options.LDAP_BASE, search)).searchEntries;
    return another === undefined ? entry : undefined;
  } catch (thrown) {
    if (thrown instanceof SizeLimitExceededError) return undefined;
    throw thrown;
  }
}

/** Whether a password is that of an entry, by a connection that is used for nothing else. */
async function binds(
  { outbound }: DirectoriesDependencies,
  options: LdapOptions,
  dn: string,
  password: string,
): Promise<boolean> {
  const client = await connect(outbound, options, TIMEOUT);
  try {
    await client.bind(dn, password);
    return true;
  } catch (thrown) {
    if (isRefusal(thrown)) return false;
    throw thrown;
  } finally {
    end(client);
  }
}

/** Asks by a connection of the service account: one that was kept, else a new one. */
async function withService<T>(
  { outbound, clock }: DirectoriesDependencies,
  pool: Pool,
  options: LdapOptions,
  ask: (client: Client) => Promise<T>,
): Promise<T> {
  const asked = async (client: Client): Promise<T> => {
    try {
      const answer = await ask(client);
      if (pool.kept.length < MOST_KEPT && client.isConnected) pool.kept.push({ client, since: clock() });
      else end(client);
      return answer;
    } catch (thrown) {
      end(client);
      throw thrown;
    }
  };
  const old = clock() - KEPT_FOR;
  for (const { client } of pool.kept.filter(({ since }) => since < old)) end(client);
  pool.kept = pool.kept.filter(({ since }) => since >= old);
  const kept = pool.kept.pop()?.client;
  if (kept?.isConnected) {
    try {
      return await asked(kept);
    } catch (thrown) {
      // An answer of the directory is one; a connection that it closed meanwhile is not.
      if (thrown instanceof ResultCodeError) throw thrown;
    }
  }
  return asked(await service(outbound, options));
}

/** A connection that is bound as the service account. */
async function service(outbound: Outbound, options: LdapOptions): Promise<Client> {
  const client = await connect(outbound, options, TIMEOUT);
  const { LDAP_BIND_USER: user, LDAP_BIND_PASSWORD: password } = options;
  try {
    if (user !== '') await client.bind(user, password);
    return client;
  } catch (thrown) {
    end(client);
    throw thrown;
  }
}

/** Result codes of a bind that say that it may not be (RFC 4511 appendix A.2); others say that it could not be tried. */
const REFUSALS = new Set([32, 34, 48, 49, 50, 53]);

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof ResultCodeError && REFUSALS.has(thrown.code);
}
