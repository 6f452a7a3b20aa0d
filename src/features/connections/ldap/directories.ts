// Verifies passwords by a directory: finds the entry that a name stands for, and binds as it with the password.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import net, { isIP, type Socket } from 'node:net';
import tls from 'node:tls';
import { Client, type Entry, ResultCodeError, type SearchOptions, SizeLimitExceededError } from 'ldapts';
import { AuthError, serverBusy } from '../../../http/errors.ts';
import type { Outbound } from '../../../http/outbound/outbound.ts';
import { OutboundError } from '../../../http/outbound/outbound-error.ts';
import type { Connection } from '../../../records/collections.ts';
import {
  certificatesOf,
  type LdapOptions,
  ldapOptions,
  PLACEHOLDER,
} from '../../../records/connections/ldap.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { createFairWork, type FairWork } from '../../../runtime/fair-queue.ts';
import {
  attributesOf,
  BINARY,
  type DirectoryEntry,
  entryIdOf,
  entryOf,
  firstValue,
  IDENTIFYING,
  profileOf,
} from './ldap-profile.ts';

// Search filters that contain a user's text.

/**
 * @param template a filter with {@link PLACEHOLDER} where the value goes.
 * @param value untrusted text; it is escaped, so that it is compared and never parsed as filter syntax (RFC 4515 §3).
 */
function filterFor(template: string, value: string): string {
  const escaped = value.replace(
    /[\\*()\0]/g,
    (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return template.replaceAll(PLACEHOLDER, () => escaped);
}

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
          return searchEntries.some((entry) => entryIdOf(entry, options) !== undefined);
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

// The groups of a user: groups that list the user as a member, and groups that list such a group.

/** How deep nested groups are followed, and how many groups are collected. A cycle ends at a group already found. */
const MAX_NESTING = 10;
const MAX_GROUPS = 1000;
const MEMBER_FILTER = '(|(member={0})(uniqueMember={0}))';

/** Returns the names of the groups of an entry, sorted. @param dn of the entry. @throws the error of the client. */
async function groupsOf(client: Client, dn: string, options: LdapOptions): Promise<string[]> {
  const { LDAP_SEARCH_GROUPS: template, LDAP_GROUPS_BASE: base = options.LDAP_BASE } = options;
  const { GROUP_PROPERTY: property, GROUPS_TIMEOUT_SECONDS: timeLimit } = options;
  const groupsListing = async (member: string): Promise<Entry[]> => {
    const filter = filterFor(template ?? MEMBER_FILTER, member);
    const search: SearchOptions = { scope: 'sub', filter, attributes: [property], timeLimit, paged: true };
    return (await client.search(base, search)).searchEntries;
  };
  const found = new Map<string, Entry>();
  let members = [dn];
  for (let depth = 0; members.length > 0 && depth < (template === undefined ? MAX_NESTING : 1); depth++) {
    const nextMembers: string[] = [];
    for (const member of members) {
      for (const group of await groupsListing(member)) {
        if (found.has(group.dn) || found.size === MAX_GROUPS) continue;
        found.set(group.dn, group);
        nextMembers.push(group.dn);
      }
    }
    members = nextMembers;
  }
  const names = [...found.values()].flatMap((group) => firstValue(group, property) ?? []);
  return [...new Set(names)].sort();
}

// Connects to a directory: to an address that the outbound policy allows, and with TLS before any request.

/** Milliseconds to connect, TLS included. */
const CONNECT_TIMEOUT = 5000;
const START_TLS = '1.3.6.1.4.1.1466.20037';

/**
 * Connects to the directory of a connection, with TLS unless the operator allows its host without.
 * @param timeout of each request, milliseconds.
 * @throws OutboundError if the address is not allowed; else the error of the socket.
 */
async function connect(outbound: Outbound, options: LdapOptions, timeout: number): Promise<Client> {
  const url = new URL(options.LDAP_URL);
  const isLdaps = url.protocol === 'ldaps:';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const { isOpened, lookup } = await outbound.resolve(host);
  if (!isLdaps && !options.LDAP_STARTTLS && !isOpened) {
    throw new OutboundError('refused', `${host} is to be asked with TLS`);
  }
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT);
  const port = url.port === '' ? (isLdaps ? 636 : 389) : Number(url.port);
  let socket: Socket = net.connect({ host, port, lookup });
  try {
    await once(socket, 'connect', { signal });
    if (!isLdaps && options.LDAP_STARTTLS) await startTls(socket, timeout);
    if (isLdaps || options.LDAP_STARTTLS) {
      socket = tls.connect({ socket, ...tlsOptions(host, options) });
      await once(socket, 'secureConnect', { signal });
    }
  } catch (thrown) {
    socket.destroy();
    throw thrown;
  }
  return clientOn(socket, timeout);
}

/**
 * Returns a client on a socket. It never reconnects by itself: the new connection would have neither TLS nor a bind, and the
 * next password would be sent over it in the clear.
 */
function clientOn(socket: Socket, timeout: number): Client {
  let isUsed = false;
  const createConnection = () => {
    if (isUsed) throw new Error('the connection to the directory was closed');
    isUsed = true;
    return socket;
  };
  // The URL is required but never used: createConnection returns the socket.
  return new Client({ url: 'ldap://directory', timeout, createConnection });
}

/**
 * Sends StartTLS (RFC 4511 §4.14) by a client that is used for nothing else. Bytes that an attacker appends to the plain
 * response are discarded with that client, so they cannot pass for the response to a request made under TLS.
 */
async function startTls(socket: Socket, timeout: number): Promise<void> {
  await clientOn(socket, timeout).exop(START_TLS);
  socket.removeAllListeners();
}

/** Returns the TLS options: the certificate must be valid for the host, by the system's certificates or the connection's. */
function tlsOptions(host: string, { LDAP_CA: pem }: LdapOptions): tls.ConnectionOptions {
  const ca = pem === undefined ? {} : { ca: [...tls.getCACertificates('default'), ...certificatesOf(pem)] };
  return { host, ...(isIP(host) === 0 && { servername: host }), ...ca };
}
