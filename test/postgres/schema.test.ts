// How a database gets the present schema, and which databases are refused.
import { createSecretKey } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { openStore } from '../../src/store/open.ts';
import { anIdentity, aUser, emailKey, rejection } from '../store/contract.ts';
import { runCommand } from '../support/command.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { until } from '../support/wait-until.ts';

const secretsKey = createSecretKey(Buffer.alloc(32, 7));

describe('the schema of a PostgreSQL database', () => {
  let cluster: Cluster;
  let dataDir: string;
  let databases = 0;
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-schema-'));
  });
  after(async () => {
    await cluster.stop();
    rmSync(dataDir, { recursive: true });
  });

  const emptyDatabase = async () => {
    databases += 1;
    await cluster.query(`CREATE DATABASE d${databases}`);
    return cluster.url(`d${databases}`);
  };
  const open = (databaseUrl: string, warnings: object[] = [], errors: object[] = []) =>
    openStore({
      dataDir,
      databaseUrl,
      secretsKey,
      clock: () => 1_790_000_000_000,
      log: { warn: (one: object) => warnings.push(one), error: (one: object) => errors.push(one) } as never,
    });
  const execute = async (url: string, statements: readonly string[]) => {
    const client = new pg.Client(url);
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  };

  it('is created once when many processes start at the same time', async () => {
    const url = await emptyDatabase();
    const stores = await Promise.all(Array.from({ length: 4 }, () => open(url)));
    await stores[0]?.collection('users').insert(aUser('auth0|1'));
    expect(await stores[3]?.collection('users').count()).to.equal(1);
    for (const store of stores) await store.close();
  });

  it('follows a collection whose keys, fields and sealed members have changed', async () => {
    const url = await emptyDatabase();
    const store = await open(url);
    await store.collection('users').insert(aUser('auth0|1', 'ada@example.com'));
    await store.collection('identities').insert(anIdentity('id|1', 'ada@example.com'));
    await store.collection('clients').insert({ id: 'app', client_id: 'app', name: 'App' } as never);
    await store.close();
    const before = {
      unique: ['email'],
      indexes: ['user', 'connection'],
      fields: [],
      sealed: [],
    };
    await execute(url, [
      `UPDATE gatehouse_meta SET value = (value::jsonb || '${JSON.stringify({ users: { ...before, unique: [], indexes: ['email'] }, identities: before, clients: { unique: [], indexes: [], fields: [], sealed: [] } })}')::text WHERE name = 'declared'`,
      'ALTER TABLE users DROP COLUMN field_email',
      `UPDATE clients SET data = '{"id":"app","client_id":"app","name":"App","client_secret":"open"}'`,
      `DELETE FROM identities_index WHERE key = 'held'`,
    ]);
    const newer = await open(url);
    const where = { of: 'identities' as const, index: 'held', equals: 'provider=auth0' };
    expect((await newer.collection('users').list({ where })).records).to.deep.equal([]);
    expect(
      (await newer.collection('users').list({ where: { field: 'email', prefix: 'ada' } })).records,
    ).to.have.length(1);
    expect(
      await newer.collection('identities').findBy('address', emailKey('ada@example.com')),
    ).to.have.length(1);
    expect((await newer.collection('clients').get('app'))?.client_secret).to.equal('open');
    await newer.close();
    const { rows } = await cluster.query('SELECT data::text AS data FROM clients', `d${databases}`);
    expect(rows[0].data).to.contain('sealed').and.not.contain('"open"');
  });

  it('gets the values of a new index without rewriting existing keys, while others read', async () => {
    const url = await emptyDatabase();
    const store = await open(url);
    const login = { last_login: '2026-11-20T09:00:00.000Z' };
    await store.collection('users').insert({ ...aUser('auth0|1', 'ada@example.com'), ...login });
    await store.collection('users').insert(aUser('auth0|2', 'bob@example.com'));
    await store.close();
    await execute(url, [
      `UPDATE gatehouse_meta SET value = (value::jsonb #- '{users,indexes,3}')::text WHERE name = 'declared'`,
      `DELETE FROM users_index WHERE key = 'lastLoginDay'`,
      `UPDATE users SET indexes = array_remove(indexes, E'lastLoginDay\n2026-11-20')`,
      `UPDATE users_index SET value = 'seen@example.com' WHERE key = 'email' AND id = 'auth0|2'`,
    ]);
    const reader = new pg.Client(url);
    reader.on('error', () => undefined);
    await reader.connect();
    // If the upgrade waited for this reader, the database would end it, and its COMMIT below would fail.
    await reader.query(`SET idle_in_transaction_session_timeout = '20s'`);
    await reader.query('BEGIN; SELECT FROM users');
    const newer = await open(url);
    await reader.query('COMMIT').finally(() => reader.end());
    const users = newer.collection('users');
    const idsOf = async (index: string, equals: string) =>
      (await users.list({ where: { index, equals } })).records.map(({ id }) => id);
    expect(await idsOf('lastLoginDay', '2026-11-20')).to.deep.equal(['auth0|1']);
    expect(await idsOf('email', 'seen@example.com')).to.deep.equal(['auth0|2']);
    await users.update('auth0|1', (one) => ({ ...one, last_login: '2026-11-21T09:00:00.000Z' }));
    await newer.close();
    const { rows } = await cluster.query(
      `SELECT value FROM users_index WHERE key = 'lastLoginDay'`,
      `d${databases}`,
    );
    expect(rows).to.deep.equal([{ value: '2026-11-21' }]);
  });

  it('gets an index from one process while others write, and again where its creation was interrupted', async () => {
    const url = await emptyDatabase();
    const first = await open(url);
    const event = (id: string, ip: string) => ({ id, type: 's', date: '2026-11-22T00:00:00.000Z', ip });
    await first.collection('logs').insert(event('1', '203.0.113.1'));
    await first.close();
    await execute(url, [
      'DROP INDEX logs_by_ip',
      `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'logs_by_client_id'::regclass`,
    ]);
    const warnings: object[] = [];
    const stores = await Promise.all([open(url, warnings), open(url, warnings)]);
    const client = new pg.Client(url);
    await client.connect();
    const valid = async () =>
      (
        await client.query(
          `SELECT relname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_stats s ON s.tablename = relname WHERE relname ~ '^logs_by_(ip|client_id)$' AND indisvalid`,
        )
      ).rowCount;
    let last = 1;
    const write = async () => {
      last += 1;
      await stores[0]?.collection('logs').insert(event(String(last), '203.0.113.2'));
    };
    await until(async () => (await valid()) === 2, write);
    await client.end();
    const where = { field: 'ip', equals: '203.0.113.1' };
    const { records } = (await stores[1]?.collection('logs').list({ where, limit: 10 })) ?? { records: [] };
    expect(records.map(({ id }) => id)).to.deep.equal(['1']);
    await Promise.all(stores.map((store) => store.close()));
    expect(warnings).to.have.deep.members([{ index: 'logs_by_ip' }, { index: 'logs_by_client_id' }]);
    const again: object[] = [];
    await (await open(url, again)).close();
    expect(again).to.deep.equal([]);
  });

  it('lets a server stop while it creates an index, which another then creates, whatever delays or ends the creation', async () => {
    const url = await emptyDatabase();
    await (await open(url)).close();
    const client = new pg.Client(url);
    await client.connect();
    await client.query('DROP INDEX logs_by_ip');
    // As with poolers, which do not accept time limits for a connection.
    for (const limit of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'])
      await client.query(`ALTER DATABASE d${databases} SET ${limit} = '250ms'`);
    // A transaction that writes to the table blocks the index as long as it likes.
    await client.query('BEGIN; LOCK TABLE logs IN ROW EXCLUSIVE MODE');
    const errors: object[] = [];
    const maker = await open(url, [], errors);
    // On another connection, because a transaction sees statements under way as they were at its start.
    const other = new pg.Client(url);
    await other.connect();
    await other.query('SET statement_timeout = 0');
    const making = async (): Promise<number[]> => {
      const { rows } = await other.query(
        `SELECT pid FROM pg_stat_activity WHERE query ~ '^(CREATE|DROP) INDEX' AND state = 'active' AND datname = current_database()`,
      );
      return rows.map(({ pid }) => pid);
    };
    const begun = async () => {
      let processes: number[] = [];
      await until(async () => {
        processes = await making();
        return processes.length > 0;
      });
      return processes;
    };
    const first = await begun();
    expect(first).to.have.length(1);
    await (await open(url, [], errors)).close();
    const next = await open(url, [], errors);
    expect(errors).to.deep.equal([]);
    expect(await making()).to.deep.equal(first);
    await maker.close();
    // The other server may have begun by now.
    expect(await making()).to.not.include(first[0]);
    // Creation is started again after the database ended it, as in a failover.
    await other.query('SELECT pg_terminate_backend($1)', await begun());
    await client.query('ROLLBACK');
    await client.end();
    const made = async () =>
      (await other.query(`SELECT FROM pg_index WHERE indexrelid = to_regclass('logs_by_ip') AND indisvalid`))
        .rowCount;
    await until(async () => (await made()) === 1);
    await other.end();
    await next.close();
    expect(errors).to.deep.equal([]);
  });

  it('gets its indexes beside another schema of the database, without waiting for it or cancelling its statements', async () => {
    const url = await emptyDatabase();
    await execute(url, ['CREATE SCHEMA one', 'CREATE SCHEMA "Two"']);
    const one = `${url}?options=-csearch_path%3Done`;
    const two = `${url}?options=-csearch_path%3D%22Two%22`;
    for (const address of [one, two]) await (await open(address)).close();
    const [holder, watcher] = [new pg.Client(url), new pg.Client(url)];
    await Promise.all([holder.connect(), watcher.connect()]);
    await holder.query('DROP INDEX one.logs_by_ip, "Two".logs_by_ip');
    await holder.query('BEGIN; LOCK TABLE one.logs, "Two".logs IN ROW EXCLUSIVE MODE');
    const making = async (schema: string): Promise<number[]> => {
      const { rows } = await watcher.query(
        `SELECT pid FROM pg_stat_activity WHERE query ~ '^CREATE INDEX' AND strpos(query, $1) > 0 AND state = 'active'`,
        [`${schema}."logs"`],
      );
      return rows.map(({ pid }) => pid);
    };
    const errors: object[] = [];
    const stores = [await open(one, [], errors), await open(two, [], errors)];
    await until(async () => (await making('one')).length === 1 && (await making('"Two"')).length === 1);
    const first = await making('one');
    await stores[1]?.close();
    expect(await making('"Two"')).to.deep.equal([]);
    expect(await making('one')).to.deep.equal(first);
    await holder.query('ROLLBACK');
    const valid = async (schema: string) =>
      (
        await watcher.query('SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid', [
          `${schema}.logs_by_ip`,
        ])
      ).rowCount === 1;
    await until(() => valid('one'));
    await stores[0]?.close();
    expect(await valid('"Two"')).to.equal(false);
    const again = await open(two, [], errors);
    await until(() => valid('"Two"'));
    await again.close();
    await Promise.all([holder.end(), watcher.end()]);
    expect(errors).to.deep.equal([]);
  });

  it('is refused when it is of a newer release, with a clear message', async () => {
    const url = await emptyDatabase();
    await (await open(url)).close();
    const cases = [
      [`UPDATE gatehouse_meta SET value = '99' WHERE name = 'version'`, /has schema 99, .* newer release/],
      [
        `UPDATE gatehouse_meta SET value = (value::jsonb || '{"inventions":{"unique":[],"indexes":[],"fields":[],"sealed":[]}}')::text WHERE name = 'declared'`,
        /has inventions, .* newer release/,
      ],
      [
        `UPDATE gatehouse_meta SET value = jsonb_set(value::jsonb, '{users,indexes,9}', '"shoe"')::text WHERE name = 'declared'`,
        /has users\.shoe, .* newer release/,
      ],
    ] as const;
    for (const [change, message] of cases) {
      const kept = await cluster.query('SELECT name, value FROM gatehouse_meta', `d${databases}`);
      await execute(url, [change]);
      expect(String(await rejection(open(url)))).to.match(message);
      for (const { name, value } of kept.rows) {
        await execute(url, [`UPDATE gatehouse_meta SET value = '${value}' WHERE name = '${name}'`]);
      }
    }
    await (await open(url)).close();
  });

  it('is refused when it belongs to another program', async () => {
    const url = await emptyDatabase();
    await execute(url, ['CREATE TABLE users (id int)']);
    expect(String(await rejection(open(url)))).to.match(/tables of another program/);
  });

  it('is refused when it is read-only, with a message that says what to do, whether it was used before or not', async () => {
    const url = await emptyDatabase();
    const readOnly = `${url}?options=${encodeURIComponent('-c default_transaction_read_only=on')}`;
    const expected = /takes no writes: it is a standby.*primary.*pg_dump/;
    expect(String(await rejection(open(readOnly)))).to.match(expected);
    await (await open(url)).close();
    expect(String(await rejection(open(readOnly)))).to.match(expected);
    const env = { DATABASE_URL: readOnly, SECRETS_KEY: secretsKey.export().toString('base64') };
    for (const args of [['backup', 'a-backup'], ['doctor']]) {
      const { code, stdout, stderr } = await runCommand({ cwd: dataDir, args, env });
      expect(code).to.equal(1);
      expect(stdout + stderr)
        .to.match(expected)
        .and.not.contain('CREATE TABLE');
    }
    expect(readdirSync(dataDir).filter((name) => name.startsWith('a-backup'))).to.deep.equal([]);
  });

  it('is unchanged when an upgrade fails halfway', async () => {
    const url = await emptyDatabase();
    const first = await open(url);
    const login = { last_login: '2026-11-20T09:00:00.000Z' };
    await first.collection('users').insert({ ...aUser('auth0|1', 'ada@example.com'), ...login });
    await first.close();
    await execute(url, [
      `UPDATE gatehouse_meta SET value = jsonb_set(value::jsonb #- '{users,indexes,3}', '{logs,fields}', '[]')::text WHERE name = 'declared'`,
      `DELETE FROM users_index WHERE key = 'lastLoginDay'`,
      // A record that cannot be read stops the rewriting of the collections.
      `INSERT INTO logs (id, data, indexes) VALUES ('x', '{"id":7}', '{}')`,
    ]);
    const days = async () => {
      const { rows } = await cluster.query(
        `SELECT count(*)::int AS n FROM users_index WHERE key = 'lastLoginDay'`,
        `d${databases}`,
      );
      return rows[0].n;
    };
    expect(await rejection(open(url))).to.be.instanceOf(Error);
    expect(await days()).to.equal(0);
    await execute(url, [`DELETE FROM logs WHERE id = 'x'`]);
    await (await open(url)).close();
    expect(await days()).to.equal(1);
  });
});
