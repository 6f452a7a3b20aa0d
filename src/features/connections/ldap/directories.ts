// Verifies passwords by a directory: finds the entry that a name stands for, and binds as it with the password.
import { randomUUID } from 'node:crypto';
import { type Client, ResultCodeError, type SearchOptions, SizeLimitExceededError } from 'ldapts';
import { AuthError, serverBusy } from '../../../http/errors.ts';
import type { Outbound } from '../../../http/outbound.ts';
import type { Connection } from '../../../records/collections.ts';
import { type LdapOptions, ldapOptions } from '../../../records/ldap.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { createFairWork, type FairWork } from '../../../runtime/fair-work.ts';
import { connect } from './connect.ts';
import { filterFor } from './filter.ts';
import { groupsOf } from './groups.ts';
import {
  attributesOf,
  BINARY,
  type DirectoryEntry,
  entryOf,
  IDENTIFYING,
  ownIdOf,
  profileOf,
} from './profile.ts';

/** A user of a directory whose password was verified. */
interface DirectoryUser extends Pick<DirectoryEntry, 'id' | 'stable'> {
  profile: Record<string, unknown>;
}

export interface Directories {
  /**
   * Returns the entry that a name stands for; undefined if there is none, or more than one.
   * @throws AuthError 503 `temporarily_unavailable` if the directory cannot be asked.
   */
  find(connection: Connection, name: string): Promise<DirectoryEntry | undefined>;
  /**
   * Verifies a password of an entry. It takes as long if there is no entry.
   * @returns undefined for a wrong password.
   * @throws AuthError as `find`.
   */
  prove(
    connection: Connection,
    entry: DirectoryEntry | undefined,
    password: string,
  ): Promise<DirectoryUser | undefined>;
  /** Connects and binds as the service account. @throws AuthError 503 with the cause if that fails. */
  check(connection: Connection): Promise<void>;
  /**
   * Returns whether the directory gives its entries an id that no other entry ever gets, and the service account may read it.
   * @throws AuthError as `check`.
   */
  hasOwnIds(connection: Connection): Promise<boolean>;
  /** Closes the idle connections. */
  close(): Promise<void>;
}

/** Milliseconds for one request to a directory. */
const TIMEOUT = 10_000;
/** Logins that ask one directory at the same time, and logins that wait for their turn: of known callers, and of others. */
const MAX_CONCURRENT = 8;
const MAX_WAITING = 200;
/** Idle connections that are kept, and for how many milliseconds: firewalls may cut longer idle ones. */
const MAX_IDLE = 4;
const IDLE_LIFETIME = 60_000;

/** The connections to one directory. Those bound as the service account are kept for the next login. */
interface Pool {
  /** JSON of the connection's options that the pool was made with. */
  optionsKey: string;
  queue: FairWork;
  idle: { client: Client; since: number }[];
}

export interface DirectoriesDependencies {
  outbound: Outbound;
  /** Monotonic time, milliseconds. */
  clock: Clock;
}

/** Returns the directories of a tenant. */
export function createDirectories(deps: DirectoriesDependencies): Directories {
  const pools = new Map<string, Pool>();
  const poolOf = ({ id, options }: Connection): Pool => {
    const optionsKey = JSON.stringify(options);
    const existing = pools.get(id);
    if (existing?.optionsKey === optionsKey) return existing;
    // Its connections were bound with the previous options.
    if (existing !== undefined) closeIdle(existing);
    const pool = newPool(optionsKey);
    pools.set(id, pool);
    return pool;
  };
  const enqueue = async <T>(
    connection: Connection,
    work: (pool: Pool, options: LdapOptions) => Promise<T>,
  ): Promise<T> => {
    const options = ldapOptions(connection);
    if (options === undefined) throw unavailable(new Error('the connection has no LDAP_URL'));
    const pool = poolOf(connection);
    try {
      return await pool.queue.run(() => work(pool, options));
    } catch (thrown) {
      throw thrown instanceof AuthError ? thrown : unavailable(thrown);
    }
  };
  return {
    find: async (connection, name) =>
      name === ''
        ? undefined
        : enqueue(connection, (pool, options) =>
            withServiceClient(deps, pool, options, (client) => findEntry(client, name, options)),
          ),
    prove: async (connection, entry, password) => {
      // A bind without a password is an anonymous one, which succeeds (RFC 4513 §5.1.2).
      if (password === '') return undefined;
      return enqueue(connection, (pool, options) => verifyPassword(deps, pool, options, { entry, password }));
    },
    check: (connection) =>
      enqueue(connection, async (_pool, options) =>
        closeClient(await openServiceClient(deps.outbound, options)),
      ),
    hasOwnIds: (connection) =>
      enqueue(connection, (pool, options) =>
        withServiceClient(deps, pool, options, async (client) => {
          const search = {
            scope: 'base',
            attributes: IDENTIFYING,
            explicitBufferAttributes: BINARY,
          } as const;
          const { searchEntries } = await client.search(options.LDAP_BASE, search);
          return searchEntries.some((entry) => ownIdOf(entry, options) !== undefined);
        }),
      ),
    close: async () => {
      for (const pool of pools.values()) closeIdle(pool);
    },
  };
}

function newPool(optionsKey: string): Pool {
  const bounds = { concurrency: MAX_CONCURRENT, maxWaiting: MAX_WAITING };
  return {
    optionsKey,
    queue: createFairWork({ ...bounds, refusal: () => serverBusy(UNAVAILABLE) }),
    idle: [],
  };
}

const UNAVAILABLE = 'The directory cannot be asked at the moment.';

const unavailable = (cause?: unknown) =>
  new AuthError(503, 'temporarily_unavailable', UNAVAILABLE, { cause });

function closeIdle(pool: Pool): void {
  for (const { client } of pool.idle.splice(0)) closeClient(client);
}

/** Closes a connection. An error while it closes does not matter. */
function closeClient(client: Client): void {
  client.unbind().catch(() => undefined);
}

async function verifyPassword(
  deps: DirectoriesDependencies,
  pool: Pool,
  options: LdapOptions,
  { entry, password }: { entry: DirectoryEntry | undefined; password: string },
): Promise<DirectoryUser | undefined> {
  // Without an entry a made-up DN is tried, so that an unknown name takes as long as a wrong password.
  const dn = entry?.dn ?? `cn=${randomUUID()},${options.LDAP_BASE}`;
  const isRight = await canBind(deps, options, dn, password);
  if (!isRight || entry === undefined) return undefined;
  const groups = options.GROUPS
    ? await withServiceClient(deps, pool, options, (client) => groupsOf(client, entry.dn, options))
    : undefined;
  const { id, stable, attributes } = entry;
  return { id, ...(stable && { stable }), profile: profileOf(attributes, options, groups) };
}

/** Returns the entry that a name stands for; undefined if there is none, or more than one. */
async function findEntry(
  client: Client,
  name: string,
  options: LdapOptions,
): Promise<DirectoryEntry | undefined> {
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
    return entry !== undefined && another === undefined ? entryOf(entry, options) : undefined;
  } catch (thrown) {
    if (thrown instanceof SizeLimitExceededError) return undefined;
    throw thrown;
  }
}

/** Returns whether a bind as an entry succeeds. It uses a connection of its own, which is closed afterwards. */
async function canBind(
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
    closeClient(client);
  }
}

/** Makes requests on a connection bound as the service account: an idle one, else a new one. */
async function withServiceClient<T>(
  { outbound, clock }: DirectoriesDependencies,
  pool: Pool,
  options: LdapOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const run = async (client: Client): Promise<T> => {
    try {
      const answer = await work(client);
      if (pool.idle.length < MAX_IDLE && client.isConnected) pool.idle.push({ client, since: clock() });
      else closeClient(client);
      return answer;
    } catch (thrown) {
      closeClient(client);
      throw thrown;
    }
  };
  const oldest = clock() - IDLE_LIFETIME;
  for (const { client } of pool.idle.filter(({ since }) => since < oldest)) closeClient(client);
  pool.idle = pool.idle.filter(({ since }) => since >= oldest);
  const idleClient = pool.idle.pop()?.client;
  if (idleClient?.isConnected) {
    try {
      return await run(idleClient);
    } catch (thrown) {
      // An error response is final. If the directory had closed the idle connection, a new one is tried.
      if (thrown instanceof ResultCodeError) throw thrown;
    }
  }
  return run(await openServiceClient(outbound, options));
}

/** Opens a connection and binds it as the service account, or leaves it anonymous if there is none. */
async function openServiceClient(outbound: Outbound, options: LdapOptions): Promise<Client> {
  const client = await connect(outbound, options, TIMEOUT);
  const { LDAP_BIND_USER: user, LDAP_BIND_PASSWORD: password } = options;
  try {
    if (user !== '') await client.bind(user, password);
    return client;
  } catch (thrown) {
    closeClient(client);
    throw thrown;
  }
}

/** Result codes that refuse a bind (RFC 4511 appendix A.2). Other codes mean that the directory could not try it. */
const REFUSALS = new Set([32, 34, 48, 49, 50, 53]);

function isRefusal(thrown: unknown): boolean {
  return thrown instanceof ResultCodeError && REFUSALS.has(thrown.code);
}
