// A store with 200,000 users opens in under a second, and a server on it ends in time.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { createStore, databaseFile } from '../../src/store/create.ts';
import { openStore } from '../../src/store/open.ts';
import { fillDatabase } from '../../src/store/sql/fill.ts';
import { createAgent } from '../support/agent.ts';
import { runServer } from '../support/process.ts';
import { aUser } from './contract.ts';

const users = 200_000;
const padding = 'x'.repeat(500);

describe(`a store with ${users} users`, function () {
  this.timeout(900_000);
  let cwd: string;
  let dataDir: string;

  before(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'gatehouse-many-'));
    dataDir = join(cwd, 'data');
    await mkdir(dataDir);
    const texts = Array.from({ length: users }, (_, n): [string, string] => {
      const user = { ...aUser(`auth0|${n}`, `user${n}@example.com`), user_metadata: { padding } };
      return [user.id, JSON.stringify(user)];
    });
    const directory = join(dataDir, 'store');
    await createStore(directory);
    const database = new DatabaseSync(databaseFile(directory));
    fillDatabase(database, new Map([['users', new Map(texts)]]));
    database.close();
    // What is done once is done at the first start.
    await (await openStore({ dataDir, clock: Date.now })).close();
  });
  after(() => rm(cwd, { recursive: true, force: true }));

  it('opens in under a second', async function () {
    const started = performance.now();
    const store = await openStore({ dataDir, clock: Date.now });
    const ms = performance.now() - started;
    expect(await store.collection('users').count()).to.equal(users);
    await store.close();
    if (this.test) this.test.title += `: ${Math.round(ms)} ms`;
    expect(ms).to.be.below(1_000);
  });

  it('lets a server end within ten seconds of SIGTERM, amid requests that write', async function () {
    const starting = performance.now();
    const server = await runServer({ cwd });
    const start = performance.now() - starting;
    let ending = false;
    try {
      const agent = createAgent(server);
      const signUps = Array.from({ length: 8 }, async (_, n) => {
        for (let i = 0; !ending; i++) {
          const json = {
            client_id: 'spa',
            email: `signs-up-${n}-${i}@example.com`,
            password: 'Correct-Horse-7',
            connection: 'Username-Password-Authentication',
          };
          await agent.request('/dbconnections/signup', { json }).catch(() => undefined);
        }
      });
      await agent.get('/readyz');
      const stopping = performance.now();
      const code = await server.end('SIGTERM');
      const ms = performance.now() - stopping;
      ending = true;
      await Promise.all(signUps);
      if (this.test) {
        this.test.title += `: listens after ${Math.round(start)} ms, ended after ${Math.round(ms)} ms`;
      }
      expect(code).to.equal(0);
      expect(ms).to.be.below(10_000);
    } finally {
      ending = true;
      server.child.kill('SIGKILL');
    }
  });
});
