// For the tests of applications: a whole server in the process, on a free port, which keeps everything in memory.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOutbox } from '../capabilities/delivery/outbox.ts';
import type { OutboxMessage } from '../capabilities/delivery/outbox-message.ts';
import { managementAudience } from '../features/management/management-audience.ts';
import { collections } from '../records/collections.ts';
import { databaseIdentity } from '../records/new-identity.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import type { UserRecord } from '../records/users/users.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/secrets.ts';
import { startGatehouse as startServer } from '../server/start.ts';
import type { Store } from '../store/contract.ts';
import { collectionByName } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';
import { openMemoryStore } from '../store/memory/store.ts';
import { applyTenant } from '../tenant/apply.ts';
import { type LoadedTenant, loadTenantFile, readTenant } from '../tenant/load.ts';
import { directoryOf } from '../tenant/names.ts';
import { createHasher } from '../users/hashing.ts';
import type { Users } from '../users/users.ts';
import { testClock } from './clock.ts';
import { mintAccessToken } from './token.ts';
import type { TokenRequest } from './token-request.ts';

export interface StartOptions {
  /** The tenant, in the form of a tenant file, or the path of a tenant file. */
  tenant: object | string;
  /** The port; any free one by default. */
  port?: number;
  /** Further settings, by the names of their environment variables. */
  env?: Readonly<Record<string, string>>;
  /** What is logged, to standard error; nothing by default. */
  logLevel?: 'debug' | 'info' | 'warn' | 'error';
}

export interface NewTestUser {
  email: string;
  password: string;
  username?: string;
  /** The name of a database connection; by default the tenant's default directory, or its first database. */
  connection?: string;
  /** Further members of the user's record: `name`, `email_verified`, `app_metadata` … */
  profile?: Partial<Omit<UserRecord, 'id' | 'created_at' | 'updated_at' | 'logins_count'>>;
}

/** A running server. */
export interface TestGatehouse {
  /** Its origin, `https://localhost:<port>`. */
  url: string;
  issuer: string;
  /** What SDKs call the domain: host and port. */
  domain: string;
  /** The CA to trust, PEM. */
  ca: string;
  /** Path of a file with it, for NODE_EXTRA_CA_CERTS. */
  caFile: string;
  clock: {
    /** Epoch milliseconds. */
    now(): number;
    /** Moves time forward, and `Date` of this process with it, until the server stops. @param ms milliseconds. */
    advance(ms: number): void;
  };
  users: {
    /** @returns the user's record, whose `id` is the `sub`. @throws Error when an identifier is taken. */
    create(user: NewTestUser): Promise<{ id: string; email?: string | undefined }>;
  };
  inbox: {
    /** Returns all messages that were sent, newest first. */
    all(): Promise<OutboxMessage[]>;
    /**
     * Returns the newest message to an address or number; waits for one that is on its way.
     * @throws Error when none came within `withinMs` (2,000).
     */
    latest(to: string, withinMs?: number): Promise<OutboxMessage>;
  };
  /**
   * Returns an access token for an API, as if the user had logged in to the application.
   * @throws Error for an unknown API or application.
   */
  tokenFor(request: TokenRequest): Promise<string>;
  /** Restores the state at the start: users, sessions, tokens, settings, messages. */
  reset(): Promise<void>;
  stop(): Promise<void>;
}

/** Parameters of a hash that takes next to no time, because tests are not attacked. */
const CHEAP_HASH = { memoryCost: 64, timeCost: 1 };

/** The collections that a reset keeps: the keys. */
const KEPT_COLLECTIONS: ReadonlySet<string> = new Set(['signingKeys', 'keyChecks', 'marks']);

/**
 * Starts a server; it answers when the promise resolves.
 * @throws Error when the tenant cannot be served, with all its faults.
 */
export async function startGatehouse(options: StartOptions): Promise<TestGatehouse> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-'));
  const clock = testClock();
  const load = () => loadTenant(options);
  const running = await startServer({
    env: { ...options.env, PORT: String(options.port ?? 0), DATA_DIR: dataDir, NODE_ENV: 'test' },
    log: createLog(options.logLevel ?? 'silent', process.stderr),
    loadTenant: load,
    clock: clock.now,
    hasher: createHasher({ cost: CHEAP_HASH }),
    open: async ({ clock: expiry }) => openMemoryStore(expiry),
  }).catch(async (thrown: unknown) => {
    await rm(dataDir, { recursive: true, force: true });
    throw thrown;
  });
  const { settings, store, users, caFile = '' } = running;
  const outbox = createOutbox({ directory: join(dataDir, 'outbox'), clock: clock.now, random: systemRandom });
  const { tenant: file } = await load();
  return {
    url: settings.baseUrl,
    issuer: settings.issuer,
    domain: new URL(settings.baseUrl).host,
    ca: caFile === '' ? '' : await readFile(caFile, 'utf8'),
    caFile,
    clock: { now: clock.now, advance: clock.tick },
    users: { create: (user) => createUser(users, file, user) },
    inbox: {
      all: outbox.list,
      latest: (to, withinMs = 2000) => latestMessage(outbox.list, to, withinMs),
    },
    tokenFor: (request) => mintAccessToken({ store, issuer: settings.issuer, clock: clock.now }, request),
    reset: async () => {
      await empty(store);
      await outbox.clear();
      const audience = managementAudience(settings.issuer);
      const deps = { store, users, random: systemRandom, managementAudience: audience };
      await applyTenant(deps, (await load()).tenant, { mode: 'match', users: true });
    },
    stop: async () => {
      await running.stop();
      clock.restore();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function loadTenant({ tenant, env = {} }: StartOptions): Promise<LoadedTenant> {
  return typeof tenant === 'string' ? loadTenantFile(tenant, env) : Promise.resolve(readTenant(tenant));
}

async function createUser(
  users: Users,
  tenant: TenantFile,
  { email, password, username, connection, profile }: NewTestUser,
): Promise<{ id: string; email?: string | undefined }> {
  const name = directoryOf(tenant, { connection });
  if (name === '') throw new Error('the tenant has no database: say which connection the user is of');
  const result = await users.create({
    identity: databaseIdentity(name, { email, username }),
    password,
    profile,
  });
  if (!('user' in result)) throw new Error(`the ${result.taken} of ${email} is taken in ${name}`);
  return result.user;
}

/** Pause before looking again, milliseconds. */
const POLL_MS = 5;

async function latestMessage(
  list: () => Promise<OutboxMessage[]>,
  to: string,
  withinMs: number,
): Promise<OutboxMessage> {
  // Not by `Date`, which may be moved meanwhile.
  for (const start = performance.now(); performance.now() - start <= withinMs; ) {
    const found = (await list()).find((message) => message.to === to);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`no message to ${to} came within ${withinMs} ms`);
}

async function empty(store: Store): Promise<void> {
  for (const name of Object.keys(collections) as (keyof typeof collections)[]) {
    // The tenant's record is replaced when the file is applied.
    if (KEPT_COLLECTIONS.has(name) || name === 'tenant') continue;
    const collection = collectionByName(store, name);
    for (const { id } of await listAll(collection)) await collection.delete(id);
  }
}
