// Deletion of expired records by processes with different clocks.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { every, until } from '../support/wait-until.ts';

const DAY = 86_400_000;

describe('expired records in PostgreSQL', () => {
  let cluster: Cluster;
  let dataDir: string;
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-expiry-'));
  });
  after(async () => {
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  /** How long the processes have run, in milliseconds. */
  let passed = 0;
  const open = (ahead: number) => {
    const clock = () => Date.now() + ahead + passed;
    return openStore({
      dataDir,
      databaseUrl: cluster.url(),
      clock,
      machineClock: clock,
      elapsed: () => passed,
    });
  };

  it("are not deleted by a process whose clock is ahead before they have expired by the database's clock", async () => {
    const behind = await open(-DAY);
    const seconds = Math.floor(Date.now() / 1000);
    for (const [id, expiresAt] of Object.entries({ over: seconds - 600, good: seconds + 3600 }))
      await behind.collection('artifacts').put({ id, model: 'AccessToken', payload: {}, expiresAt });
    await behind.close();
    const ahead = await open(DAY);
    passed = DAY;
    const ids = async () => (await cluster.query('SELECT id FROM artifacts')).rows.map(({ id }) => id);
    await until(async () => !(await ids()).includes('over'), every(50));
    expect(await ids()).to.deep.equal(['good']);
    const hasNoted = async () =>
      (await cluster.query(`SELECT FROM gatehouse_meta WHERE name = 'deletion'`)).rowCount === 1;
    await until(hasNoted, every(50));
    await ahead.close();
  });

  it("are deleted at once by a process that starts soon after another, and no time later than the database's is stored for it", async () => {
    const noted = async () =>
      JSON.parse(
        (await cluster.query(`SELECT value FROM gatehouse_meta WHERE name = 'deletion'`)).rows[0]?.value ??
          '{}',
      );
    const isNow = async () => Math.abs((await noted()).believed - Date.now()) < 20_000;
    await until(isNow, every(50));
    passed = 0;
    const next = await open(0);
    const expiresAt = Date.now() / 1000 - 1;
    await next.collection('artifacts').put({ id: 'over', model: 'AccessToken', payload: {}, expiresAt });
    const ids = async () => (await cluster.query('SELECT id FROM artifacts')).rows.map(({ id }) => id);
    await until(async () => !(await ids()).includes('over'), every(50));
    await next.close();
  });
});
