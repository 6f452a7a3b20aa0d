// The store behind a real PgBouncer: needs version 1.21 or later on the machine (Debian's package `pgbouncer`), or its
// path in PGBOUNCER.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { openStore } from '../../src/store/open.ts';
import { resealDatabase, resetDatabase } from '../../src/store/postgres/postgres-reseal.ts';
import { rejection } from '../store/contract.ts';
import { postgresContract } from '../store/postgres-contract.ts';
import { createAgent } from '../support/agent.ts';
import { spaTokens, tenant, token } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const PROGRAM = process.env.PGBOUNCER ?? 'pgbouncer';
/** PgBouncer refuses to run as root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

interface Pooler {
  url(database?: string): string;
  stop(): Promise<void>;
}

/** Starts a pooler in front of a cluster. */
async function startPooler(cluster: Cluster, settings: Record<string, string | number>): Promise<Pooler> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-pgbouncer-'));
  const port = await freePort();
  const { port: behind } = new URL(cluster.url());
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    max_client_conn: 1000,
    default_pool_size: 40,
    ...settings,
  };
  const file = join(directory, 'pgbouncer.ini');
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=127.0.0.1 port=${behind} user=postgres`,
      '[pgbouncer]',
      ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
    ].join('\n'),
  );
  if (nobody.uid !== undefined) for (const one of [directory, file]) chownSync(one, nobody.uid, nobody.gid);
  const child: ChildProcess = spawn(PROGRAM, [file], { ...nobody, stdio: ['ignore', 'ignore', 'pipe'] });
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk) => {
      said.push(String(chunk));
      if (said.join('').includes('process up')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`pgbouncer ended: ${said.join('')}`)));
  });
  return {
    url: (database = 'postgres') => `postgres://postgres:test@127.0.0.1:${port}/${database}`,
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const MODES = {
  session: { pool_mode: 'session' },
  transaction: { pool_mode: 'transaction', max_prepared_statements: 500 },
};

for (const [mode, settings] of Object.entries(MODES))
  describe(`PostgreSQL behind PgBouncer with pool_mode ${mode}`, function () {
    this.timeout(600_000);
    let cluster: Cluster;
    let pooler: Pooler;
    before(async () => {
      cluster = await startCluster();
      pooler = await startPooler(cluster, settings);
    });
    after(async () => {
      await pooler?.stop();
      await cluster?.stop();
    });

    postgresContract(`PgBouncer by ${mode}`, {
      cluster: () => cluster,
      urlOf: (database) => pooler.url(database),
    });

    it('serves logins of several processes, which see each other’s changes', async () => {
      const env = { DATABASE_URL: pooler.url(), SECRETS_KEY: '0a1b2c3d'.repeat(8) };
      const [one, other] = [await startServer({ tenant, env }), await startServer({ tenant, env })];
      const tokens = await spaTokens(createAgent(one), one, { scope: 'openid offline_access' });
      const refreshed = await token(createAgent(other), {
        grant_type: 'refresh_token',
        client_id: 'spa',
        refresh_token: tokens.refresh_token,
      });
      expect(refreshed.status, refreshed.text).to.equal(200);
      const before = other.store.revision();
      await one.store.collection('roles').put({ id: 'rol_1', name: 'one' } as never);
      for (const began = performance.now(); other.store.revision() === before; ) {
        expect(performance.now() - began, 'it was not heard').to.be.below(20_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await one.stop();
      await other.stop();
    });

    it('refuses to change the key of the secrets, and asks for the address of the database itself', async () => {
      const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-reseal-'));
      await cluster.query('CREATE DATABASE sealed');
      const opened = async () =>
        (await openStore({ dataDir, databaseUrl: pooler.url('sealed'), clock: Date.now })).close();
      await opened();
      const source = { dataDir, given: undefined, before: undefined, random: systemRandom };
      for (const command of [resealDatabase, resetDatabase]) {
        const refused = await rejection(command({ ...source, url: pooler.url('sealed') }));
        expect(String(refused)).to.match(/a pooler before the database.*DATABASE_URL/);
      }
      const own = { ...source, url: cluster.url('sealed') };
      if (mode === 'transaction') {
        const early = await rejection(resealDatabase({ ...own, patience: 200 }));
        expect(String(early)).to.match(/a server uses.*pooler/);
        await cluster.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'sealed' AND pid <> pg_backend_pid()`,
        );
      }
      await resealDatabase(own);
      await opened();
      rmSync(dataDir, { recursive: true, force: true });
    });

    it('lets a process create an index while it serves, and stop meanwhile', async () => {
      await cluster.query('CREATE DATABASE indexed');
      const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-indexed-'));
      const open = () => openStore({ dataDir, databaseUrl: pooler.url('indexed'), clock: Date.now });
      const count = async (sql: string) => (await cluster.query(sql, 'indexed')).rowCount;
      const waitFor = async (sql: string) => {
        await until(async () => (await count(sql)) !== 0);
        expect(await count(sql), sql).to.equal(1);
      };
      await (await open()).close();
      await cluster.query('DROP INDEX logs_by_ip', 'indexed');
      const writing = new pg.Client(cluster.url('indexed'));
      await writing.connect();
      await writing.query('BEGIN; LOCK TABLE logs IN ROW EXCLUSIVE MODE');
      const first = await open();
      await waitFor(`SELECT FROM pg_stat_activity WHERE query ~ '^CREATE INDEX' AND state = 'active'`);
      await first.close();
      await writing.end();
      const next = await open();
      await waitFor(`SELECT FROM pg_index WHERE indexrelid = to_regclass('logs_by_ip') AND indisvalid`);
      await next.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    it('lets a process start after one that was killed while upgrading the schema', async () => {
      await cluster.query('CREATE DATABASE killed');
      const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-killed-'));
      const open = () => openStore({ dataDir, databaseUrl: pooler.url('killed'), clock: Date.now });
      const first = open().catch(() => undefined);
      await cluster.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'killed' AND pid <> pg_backend_pid()`,
      );
      await (await first)?.close();
      for (let i = 0; i < 3; i++) await (await open()).close();
      rmSync(dataDir, { recursive: true, force: true });
    });
  });

describe('an unsuitable PgBouncer', function () {
  this.timeout(120_000);
  const cases = [
    [
      'keeps no prepared statements',
      { pool_mode: 'transaction', max_prepared_statements: 0 },
      /max_prepared_statements/,
    ],
    [
      'lends for a statement',
      { pool_mode: 'statement', max_prepared_statements: 500 },
      /a transaction or a session/,
    ],
  ] as const;
  for (const [what, settings, message] of cases) {
    it(`is refused at start if it ${what}`, async () => {
      const cluster = await startCluster();
      const pooler = await startPooler(cluster, settings);
      const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-refused-'));
      try {
        const refused = rejection(openStore({ dataDir, databaseUrl: pooler.url(), clock: Date.now }));
        expect(String(await refused)).to.match(message);
      } finally {
        await pooler.stop();
        await cluster.stop();
        rmSync(dataDir, { recursive: true, force: true });
      }
    });
  }
});
