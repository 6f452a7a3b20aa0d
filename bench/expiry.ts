// The cost of deleting expired rows in PostgreSQL: by the server's batches of 500 and, for comparison, by dropping
// partitions. The table is the log's as the server creates it; EXPIRED rows have expired, and as many have not.
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { creation } from '../src/store/postgres/postgres-declared.ts';
import { postgresStatements } from '../src/store/postgres/postgres-statements.ts';
import { collectionSpecs } from '../src/store/record.ts';
import { startCluster } from '../test/support/postgres.ts';

const EXPIRED = Number(process.env.EXPIRED ?? 1_000_000);
const AT_ONCE = 500;
const NOW = 2_000_000_000;

const spec = collectionSpecs().find(([name]) => name === 'logs')?.[1];
if (spec === undefined) throw new Error('there is no log');
const cluster = await startCluster({
  durable: true,
  onDisk: true,
  settings: ['max_wal_size=8GB', 'autovacuum=off'],
});
const client = new pg.Client(cluster.url());
await client.connect();

const one = async (sql: string) => Object.values((await client.query(sql)).rows[0] ?? {})[0];
const backend = Number(await one('SELECT pg_backend_pid()'));
/** Returns the processor seconds of the connection's server process. */
const processor = () => Number(readFileSync(`/proc/${backend}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
const megabytes = (bytes: unknown) => Math.round(Number(bytes) / 1e6);

/** Runs something and prints its cost. */
async function measured(name: string, work: () => Promise<void>) {
  await client.query('CHECKPOINT');
  const lsn = await one('SELECT pg_current_wal_insert_lsn()');
  const [began, spent] = [performance.now(), processor()];
  await work();
  return {
    name,
    seconds: Number(((performance.now() - began) / 1000).toFixed(1)),
    'processor s': Number((processor() - spent).toFixed(1)),
    'WAL MB': megabytes(await one(`SELECT pg_current_wal_insert_lsn() - '${lsn}'::pg_lsn`)),
    'MB on disk': megabytes(
      await one(
        `SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'logs%'`,
      ),
    ),
  };
}

const event = `json_build_object('id', n::text, 'type', 's', 'date', '2026-11-22T12:00:00.000Z', 'client_id', 'app',
  'client_name', 'App', 'connection', 'users', 'user_id', 'auth0|' || n, 'user_name', 'user-' || n || '@example.test',
  'ip', '203.0.113.7', 'user_agent', repeat('x', 120), 'details', json_build_object('prompts', repeat('y', 200)))`;
/** Adds rows that expire at a time: id, data, expires_at, fields, keys. */
async function fill(from: number, expiresAt: number): Promise<void> {
  const rows = `FROM generate_series(${from}, ${from + EXPIRED - 1}) n`;
  await client.query(
    `INSERT INTO logs (id, data, expires_at, field_date, field_type, indexes)
      SELECT n::text, ${event}, ${expiresAt}, '2026-11-22T12:00:' || n, 's', ARRAY['user' || E'\\n' || 'auth0|' || n] ${rows}`,
  );
  await client.query(`INSERT INTO logs_index (key, value, id) SELECT 'user', 'auth0|' || n, n::text ${rows}`);
}
const FIRST = 10_000_000;
const fillAll = async () => {
  await fill(FIRST, NOW - 1);
  await fill(FIRST + EXPIRED, NOW + 1e6);
  await client.query('VACUUM ANALYZE');
};

const result = [];
for (const statement of creation('logs', spec)) await client.query(statement);
result.push(await measured('filled', fillAll));
const { text } = postgresStatements('logs', spec).purge;
result.push(
  await measured('deleted in batches', async () => {
    while ((await client.query({ name: 'purge', text, values: [NOW, AT_ONCE] })).rowCount === AT_ONCE);
  }),
);
result.push(await measured('vacuumed', async () => void (await client.query('VACUUM logs, logs_index'))));
result.push(await measured('filled again', () => fill(FIRST, NOW - 1)));

await client.query('DROP TABLE logs, logs_index');
for (const statement of creation('logs', spec)) await client.query(statement);
for (const name of ['logs', 'logs_index']) {
  await client.query(`ALTER TABLE ${name} RENAME TO ${name}_of_before`);
  const parent = `CREATE TABLE ${name} (LIKE ${name}_of_before INCLUDING DEFAULTS INCLUDING INDEXES) PARTITION BY RANGE (id)`;
  await client.query(parent);
  await client.query(`DROP TABLE ${name}_of_before`);
  for (const [part, begin] of [FIRST, FIRST + EXPIRED].entries()) {
    await client.query(
      `CREATE TABLE ${name}_${part} PARTITION OF ${name} FOR VALUES FROM ('${begin}') TO ('${begin + EXPIRED}')`,
    );
  }
}
result.push(await measured('filled, partitioned', fillAll));
result.push(
  await measured('dropped', async () => void (await client.query('DROP TABLE logs_0, logs_index_0'))),
);
console.table(result);
await client.end();
await cluster.stop();
