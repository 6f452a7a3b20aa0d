// `gatehouse migrate`: from the embedded store to PostgreSQL and back, with nothing lost or changed.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { serveFolder } from '../support/server.ts';

describe('gatehouse migrate', () => {
  let cwd: string;
  let cluster: Cluster;
  before(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-migrate-'));
    cluster = await startCluster();
  });
  after(async () => {
    await cluster.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const run = (args: string[], env: Record<string, string> = {}) => runCommand({ cwd, env, args });
  const all = async (env: Record<string, string>) => [
    (await run(['users', 'export', '--with-hashes'], env)).stdout,
    (await run(['export'], env)).stdout,
  ];

  it('copies a store to a database, which then serves the same, and back', async () => {
    const server = await serveFolder(cwd);
    const running = await run(['migrate', '--from', 'data', '--to', cluster.url()]);
    expect(running.code).to.equal(1);
    expect(running.stderr).to.contain('the store is in use');
    await server.stop();
    const before = await all({});
    expect(before[0]).to.contain('@');

    // In a process of its own, as operators run it.
    const command = [process.execPath, CLI, 'migrate', '--from', 'data', '--to', cluster.url()];
    const there = await runToEnd({ cwd, command });
    expect(there.code, there.stderr).to.equal(0);
    expect(there.stdout).to.match(/\d+ records, counted and compared/);
    expect(await all({ DATABASE_URL: cluster.url() })).to.deep.equal(before);
    await (await serveFolder(cwd, { DATABASE_URL: cluster.url() })).stop();

    const again = await run(['migrate', '--from', 'data', '--to', cluster.url()]);
    expect(again.code).to.equal(1);
    expect(again.stderr).to.contain('not empty');

    const back = await run(['migrate', '--from', cluster.url(), '--to', 'back']);
    expect(back.code, back.stderr).to.equal(0);
    expect(await all({ DATA_DIR: 'back' })).to.deep.equal(before);
  });

  it('allows a backup of a database while a server uses it, and its restoration to either engine', async () => {
    const env = { DATABASE_URL: cluster.url() };
    const before = await all(env);
    const server = await serveFolder(cwd, env);
    const made = await run(['backup', 'database.backup'], env);
    expect(made.code, made.stderr).to.equal(0);
    await server.stop();
    await cluster.query('CREATE DATABASE second');
    const second = { DATABASE_URL: cluster.url('second') };
    const restored = await run(['restore', 'database.backup'], second);
    expect(restored.code, restored.stderr).to.equal(0);
    expect(await all(second)).to.deep.equal(before);
  });

  it('refuses to copy a store onto itself, and reveals no password', async () => {
    expect((await run(['migrate', '--from', 'data', '--to', 'data'])).stderr).to.contain('same store');
    const gone = await run(['migrate', '--from', 'data', '--to', 'postgres://user:hunter2@127.0.0.1:1/x']);
    expect(gone.code).to.equal(1);
    expect(gone.stderr).not.to.contain('hunter2');
  });
});
