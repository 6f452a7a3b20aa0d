import { appendFile, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { aUser, rejection } from './contract.ts';

const clock = () => 1_800_000_000_000;
const application = { client_id: 'app', name: 'App', id: 'app' };

/** A line of a journal with its checksum. */
function line(value: unknown): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

/** A user as stored in that format. */
const identities = [{ provider: 'auth0', user_id: '3', connection: 'users', isSocial: false }];

const header = (segment: number) => line({ format: 'gatehouse-journal', version: 1, segment });

function snapshot(collection: string, through: number, records: object[]): string {
  const head = JSON.stringify({ format: 'gatehouse-store', version: 1, collection, through }).slice(0, -1);
  return `${head},"records":[\n${records.map((one) => JSON.stringify(one)).join(',\n')}\n]}\n`;
}

describe('a store of the legacy format', () => {
  let dataDir: string;
  const open: Store[] = [];
  const file = (name: string) => join(dataDir, 'store', name);

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-old-'));
    await mkdir(join(dataDir, 'store'));
    await writeFile(file('lock'), '');
    await writeFile(file('users.json'), snapshot('users', 2, [aUser('1', 'ada@a.example'), aUser('2')]));
    await writeFile(file('clients.json'), snapshot('clients', 2, [application]));
    // A segment that the snapshots already contain, left by an interrupted compaction.
    await writeFile(file('journal-00000002.log'), header(2) + line({ collection: 'users', delete: ['1'] }));
    await writeFile(
      file('journal-00000003.log'),
      header(3) +
        line({ collection: 'users', delete: ['2'], put: { ...aUser('3', 'bob@a.example'), identities } }) +
        line({
          collection: 'artifacts',
          put: { id: 'a', model: 'm', payload: {}, expiresAt: 1_800_000_000 },
        }) +
        line({ collection: 'artifacts', put: { id: 'b', model: 'm', payload: { grantId: 'g' } } }) +
        // A collection of earlier releases that no longer exists.
        line({ collection: 'oobChallenges', put: { id: 'o', user_id: '3' } }),
    );
    await appendFile(file('journal-00000003.log'), '0123abcd {"collection":"us');
  });

  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
    await rm(dataDir, { recursive: true });
  });

  async function begin(): Promise<Store> {
    const store = await openStore({ dataDir, clock });
    open.push(store);
    return store;
  }

  async function expectTaken(store: Store): Promise<void> {
    const { records } = await store.collection('users').list();
    expect(records).to.deep.equal([aUser('1', 'ada@a.example'), aUser('3', 'bob@a.example')]);
    expect(await store.collection('users').findBy('email', 'bob@a.example')).to.have.length(1);
    expect(
      await store.collection('identities').findBy('email', 'users\nemail\nbob@a.example'),
    ).to.have.length(1);
    expect((await store.collection('clients').list()).records).to.deep.equal([application]);
    expect((await store.collection('artifacts').findBy('grantId', 'g')).map(({ id }) => id)).to.deep.equal([
      'b',
    ]);
    expect(await store.collection('artifacts').count()).to.equal(1);
  }

  it('is converted at the first start, once, and kept aside', async () => {
    const store = await begin();
    await expectTaken(store);
    expect(await readdir(join(dataDir, 'store.old'))).to.include.members([
      'users.json',
      'journal-00000003.log',
    ]);
    await store.collection('users').delete('1');
    await store.close();
    expect(await (await begin()).collection('users').count()).to.equal(1);
  });

  it('is converted without collections that no longer exist, which are also dropped from a newer database', async () => {
    await (await begin()).close();
    const tables = () => {
      const database = new DatabaseSync(file('gatehouse.db'));
      const rows = database.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'oob%'").all();
      database.close();
      return rows;
    };
    expect(tables()).to.deep.equal([]);
    const earlier = new DatabaseSync(file('gatehouse.db'));
    for (const name of ['oobChallenges', 'oobChallenges_index']) {
      earlier.exec(`CREATE TABLE "${name}" (id TEXT PRIMARY KEY)`);
    }
    earlier.close();
    await expectTaken(await begin());
    expect(tables()).to.deep.equal([]);
  });

  it('is converted even if an earlier start was killed before, between or after the two renames', async () => {
    await mkdir(join(dataDir, 'store.new'));
    await writeFile(join(dataDir, 'store.new', 'gatehouse.db'), 'half');
    await (await begin()).close();
    await rename(join(dataDir, 'store'), join(dataDir, 'store.new'));
    await expectTaken(await begin());
  });

  it('is refused and left unchanged when it is damaged', async () => {
    for (const [name, content, message] of [
      [
        'journal-00000003.log',
        `${header(3)}0000${line({ collection: 'users' })}`,
        /journal-00000003\.log line 2: .*damaged/,
      ],
      ['journal-00000005.log', header(5), /journal-00000003\.log is missing/],
      ['users.json', '{"format":"gatehouse-store"', /users\.json: the file is cut off/],
    ] as const) {
      await writeFile(file(name), content);
      expect(String(await rejection(begin()))).to.match(message);
      await rm(file(name));
    }
    expect(await readdir(dataDir)).to.not.include('store.old');
  });
});
