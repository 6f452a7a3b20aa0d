// Connections to the database: which server they accept, how many there are, and the notifications on them.
import { chmodSync, chownSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { CHANNEL } from '../../src/store/postgres/postgres-schema.ts';
import { rejection } from '../store/contract.ts';
import { type Cluster, queryOnce, startCluster } from '../support/postgres.ts';
import { stopwatch } from '../support/timing.ts';
import { until } from '../support/wait-until.ts';

describe('a TLS connection to PostgreSQL', () => {
  let directory: string;
  let cluster: Cluster;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-database-tls-'));
    chmodSync(directory, 0o755);
    for (const name of ['own', 'other'])
      await localCertificate(join(directory, name), ['localhost'], Date.now);
    const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
    copyFileSync(join(directory, 'own', 'cert.pem'), cert);
    copyFileSync(join(directory, 'own', 'key.pem'), key);
    chmodSync(key, 0o600);
    if (process.getuid?.() === 0) for (const file of [cert, key]) chownSync(file, 65_534, 65_534);
    cluster = await startCluster({ settings: ['ssl=on', `ssl_cert_file=${cert}`, `ssl_key_file=${key}`] });
  });
  after(async () => {
    await cluster.stop();
    rmSync(directory, { recursive: true });
  });

  const open = (mode: string, authority: string, host = 'localhost') => {
    const url = new URL(cluster.url());
    url.hostname = host;
    url.searchParams.set('sslmode', mode);
    if (authority !== '') url.searchParams.set('sslrootcert', join(directory, authority, 'ca.pem'));
    return openStore({ dataDir: join(directory, 'data'), databaseUrl: url.href, clock: Date.now });
  };

  for (const mode of ['verify-full', 'verify-ca', 'require']) {
    it(`is encrypted and only made to a server with a verified name, with sslmode=${mode}`, async () => {
      const store = await open(mode, 'own');
      await store.collection('users').count();
      const { rows } = await cluster.query(
        `SELECT bool_and(ssl) AS all FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'gatehouse'`,
      );
      await store.close();
      expect(rows[0].all).to.equal(true);
      expect(String(await rejection(open(mode, 'other')))).to.match(/certificate|self-signed/);
      expect(String(await rejection(open(mode, '')))).to.match(/certificate|self-signed/);
      expect(String(await rejection(open(mode, 'own', '127.0.0.1')))).to.match(/altnames|IP/);
    });
  }

  it('is refused when the server has no TLS', async () => {
    const plain = await startCluster();
    try {
      const url = `${plain.url()}?sslmode=verify-full`;
      const refused = await rejection(
        openStore({ dataDir: join(directory, 'data'), databaseUrl: url, clock: Date.now }),
      );
      expect(String(refused)).to.match(/does not support SSL/);
    } finally {
      await plain.stop();
    }
  });
});

describe('the connections to PostgreSQL', () => {
  let dataDir: string;
  let cluster: Cluster;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-connections-'));
    cluster = await startCluster({ settings: ['max_connections=30'] });
  });
  after(async () => {
    await cluster.stop();
    rmSync(dataDir, { recursive: true });
  });
  const open = (query: string, user = 'postgres') => {
    const url = new URL(`${cluster.url()}?${query}`);
    url.username = user;
    return openStore({ dataDir, databaseUrl: url.href, clock: Date.now });
  };

  it('are as many as the URL asks for, and no more', async () => {
    const store = await open('connections=4');
    const users = store.collection('users');
    await Promise.all(Array.from({ length: 100 }, (_, i) => users.delete(`nobody-${i}`)));
    const { rows } = await cluster.query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'gatehouse'`,
    );
    await store.close();
    expect(rows[0].n).to.be.within(4, 4 + 2 + 1);
  });

  it('are refused at start when the database grants fewer, to all users or to this one', async () => {
    expect(String(await rejection(open('connections=25')))).to.match(
      /gives 27 connections, and this process has up to 28/,
    );
    await (await open('connections=24')).close();
    await cluster.query(`CREATE ROLE few LOGIN CONNECTION LIMIT 12; GRANT ALL ON SCHEMA public TO few`);
    expect(String(await rejection(open('connections=10', 'few')))).to.match(/gives 12 connections/);
  });
});

describe('the configuration in PostgreSQL', () => {
  let dataDir: string;
  let cluster: Cluster;
  let stores: Store[];
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-heard-'));
    cluster = await startCluster();
    const open = () => openStore({ dataDir, databaseUrl: cluster.url(), clock: Date.now });
    stores = [await open(), await open()];
  });
  after(async () => {
    for (const store of stores) await store.close();
    await cluster.stop();
    rmSync(dataDir, { recursive: true });
  });

  /**
   * Returns how many milliseconds it took until the second store noticed a write of the first; the time in the database
   * counts, too.
   */
  const heard = async (id: string): Promise<number> => {
    const [one, other] = stores as [Store, Store];
    const [own, before] = [one.revision(), other.revision()];
    const { rows } = await cluster.query('SELECT pid FROM pg_stat_activity');
    await one.collection('roles').put({ id, name: id } as never);
    expect(one.revision()).to.be.above(own);
    const time = stopwatch(...rows.map(({ pid }) => Number(pid)));
    await until(() => other.revision() !== before);
    const ms = time();
    expect((await other.collection('roles').get(id))?.id).to.equal(id);
    return ms;
  };

  it('is known to another process within a second of a write', async () => {
    expect(await heard('rol_1')).to.be.below(1000);
  });

  it('is not hidden by a notification that somebody else has forged', async () => {
    await cluster.query(`CREATE ROLE stranger LOGIN; GRANT CONNECT ON DATABASE postgres TO stranger`);
    const other = stores[1] as Store;
    const { rows } = await cluster.query(
      `SELECT value::bigint + 1 AS next FROM gatehouse_meta WHERE name = 'revision'`,
    );
    const before = other.revision();
    const strange = cluster.url().replace('//postgres:', '//stranger:');
    await queryOnce(
      strange,
      `NOTIFY ${CHANNEL}, 'public no number'; NOTIFY ${CHANNEL}, 'public ${rows[0]?.next}'`,
    );
    await until(() => other.revision() >= before + 2);
    await heard('rol_hidden');
  });

  it('is not hidden by a write of the process itself after another one whose notification was lost', async () => {
    const other = stores[1] as Store;
    const before = other.revision();
    await cluster.query(
      `UPDATE gatehouse_meta SET value = (value::bigint + 1)::text WHERE name = 'revision'`,
    );
    await other.collection('roles').put({ id: 'rol_own', name: 'rol_own' } as never);
    await until(() => other.revision() >= before + 2);
  });

  it('is known even when notifications do not arrive, and after connections were lost', async () => {
    await cluster.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse'`,
    );
    await cluster.query(
      `CREATE OR REPLACE FUNCTION gatehouse_configuration_written() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE gatehouse_meta SET value = (value::bigint + 1)::text WHERE name = 'revision'; RETURN NULL; END $$`,
    );
    for (const store of stores) {
      while ((await store.ready().catch((error: unknown) => error)) !== undefined);
    }
    expect(await heard('rol_2')).to.be.below(5000);
  });
});
