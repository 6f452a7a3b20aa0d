// Starts a whole server in this process, on a port that the system chooses, with its own directory.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { parse } from 'yaml';
import { createLog } from '../../src/runtime/log.ts';
import type { Waits } from '../../src/runtime/waits.ts';
import { type Running, startGatehouse } from '../../src/server/start.ts';
import type { openStore } from '../../src/store/open.ts';
import { EXAMPLE_FILE } from '../../src/tenant/examples.ts';
import { readTenant } from '../../src/tenant/load.ts';
import { testClock } from '../../src/testing/clock.ts';
import { createHasher, type HashCost, type Hasher } from '../../src/users/hashing.ts';
import { databaseFor } from './postgres-databases.ts';
import { SCRATCH } from './scratch-directory.ts';
import { SPARE_THREADS } from './spare-threads.ts';
import { fillDataDir } from './template.ts';
import { PATIENCE } from './wait-until.ts';

/** Cheap password hashes, because most tests are not about them. */
export const CHEAP: HashCost = { memoryCost: 64, timeCost: 1 };

/** Settings that decide which certificates a server has. */
const OF_CERTIFICATES = ['BASE_URL', 'HOST', 'TLS'];

export interface TestServer extends Running {
  url: string;
  /** Its `url` with the port on which it listens, if its `BASE_URL` has another one. */
  localUrl: string;
  issuer: string;
  caFile: string;
  /** The CA's certificate, PEM. */
  ca: string;
  dataDir: string;
  /** Returns what was logged so far. */
  logged(): string;
  /** Moves time forward, in milliseconds. */
  tick(ms: number): void;
}

/** Short limits, for tests of scripts that never end. */
export const SHORT_SCRIPTS: Waits = { scriptCpu: 1_000 };

export interface TestServerOptions {
  /** In the tenant file's vocabulary. */
  tenant: object;
  env?: Record<string, string>;
  /** Whether password hashes cost as much as in production. */
  realHashes?: boolean;
  /** A data directory that is kept when the server stops; by default a new one, with ready-made keys. */
  dataDir?: string;
  // docs/understand/decisions/code-tests.md#tests-share-what-they-do-not-test
  /** Whether it creates its keys and certificates itself, as at any first start. */
  ownKeys?: boolean;
  /** By default a cheap one. */
  hasher?: Hasher;
  /** Replaces pauses; by default they take no time. */
  pause?: (ms: number) => Promise<void>;
  /** How long a request waits for the delivery of its message; by default long enough for a busy machine. */
  maxWait?: number;
  /** Time limits for work that a busy machine does late; by default generous. */
  waits?: Waits;
  /** Multiplies the bounds of what is kept for strangers. */
  boundsScale?: number;
  /** Opens another store instead of the embedded one. */
  open?: typeof openStore;
}

/** @see TestServer.localUrl */
function localUrl({ baseUrl, port }: Running['settings']): string {
  const url = new URL(baseUrl);
  url.port = String(port);
  return url.origin;
}

/** Starts a server. `stop` also deletes its data, unless it was given a directory. */
export async function startServer({
  tenant,
  env = {},
  realHashes,
  dataDir,
  ownKeys,
  hasher,
  pause = async () => new Promise((resolve) => setImmediate(resolve)),
  maxWait = PATIENCE,
  waits,
  open,
  boundsScale,
}: TestServerOptions): Promise<TestServer> {
  const directory = dataDir ?? mkdtempSync(join(SCRATCH, 'gatehouse-test-'));
  const fresh = dataDir === undefined && ownKeys !== true;
  const tls = OF_CERTIFICATES.every((name) => env[name] === undefined);
  const { TEST_DATABASE_URL: other } = process.env;
  const database =
    other === undefined || env.DATABASE_URL !== undefined
      ? undefined
      : await databaseFor(other, directory, { ready: fresh, tls });
  if (fresh && database === undefined) await fillDataDir(directory, tls);
  const clock = testClock();
  const cleanUp = async () => {
    clock.restore();
    if (dataDir !== undefined) return;
    await rm(directory, { recursive: true, force: true });
    await database?.drop();
  };
  const lines: string[] = [];
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const running = await startGatehouse({
    env: { PORT: '0', DATA_DIR: directory, ...(database && { DATABASE_URL: database.url }), ...env },
    log: createLog('debug', destination),
    loadTenant: async () => readTenant(tenant),
    clock: clock.now,
    ...(open && { open }),
    ...(boundsScale !== undefined && { boundsScale }),
    spareThreads: SPARE_THREADS,
    hasher: hasher ?? createHasher(realHashes === true ? {} : { cost: CHEAP }),
    // No time passes for retries and pauses; the test controls the time.
    pause,
    maxWait,
    waits: {
      signature: PATIENCE,
      scriptThread: PATIENCE,
      search: PATIENCE,
      oldTenant: PATIENCE,
      ...waits,
    },
  }).catch(async (error: unknown) => {
    await cleanUp();
    throw error;
  });
  const caFile = running.caFile ?? '';
  return {
    ...running,
    url: running.settings.baseUrl,
    localUrl: localUrl(running.settings),
    issuer: running.settings.issuer,
    caFile,
    ca: caFile === '' ? '' : await readFile(caFile, 'utf8'),
    dataDir: directory,
    logged: () => lines.join(''),
    tick: clock.tick,
    stop: async () => {
      await running.stop();
      await cleanUp();
    },
  };
}

/**
 * Starts a server with its tenant file and data in a folder, as `runServer` does, but in this process; for what runs
 * beside a server, or uses the data that one has left.
 */
export async function serveFolder(cwd: string, env: Record<string, string> = {}): Promise<TestServer> {
  const tenantFile = join(cwd, env.TENANT_FILE ?? 'config/tenant.yaml');
  if (!existsSync(tenantFile)) {
    mkdirSync(dirname(tenantFile), { recursive: true });
    copyFileSync(EXAMPLE_FILE, tenantFile);
  }
  const dataDir = join(cwd, env.DATA_DIR ?? 'data');
  if (!existsSync(dataDir)) await fillDataDir(dataDir, true);
  const tenant = parse(readFileSync(tenantFile, 'utf8'));
  // The store is in that folder even if other tests use a database.
  return startServer({ tenant, dataDir, env: { DATABASE_URL: '', ...env, DATA_DIR: dataDir } });
}
