import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { collectionSpecs } from '../../src/store/record.ts';
import { repairStore } from '../../src/store/repair.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';
import { aUser, rejection } from './contract.ts';

const clock = () => 1_800_000_000_000;
const HOUR = 3_600_000;
const configuration = [
  'clientGrants',
  'clients',
  'connections',
  'documents',
  'organizations',
  'resourceServers',
  'roles',
  'tenant',
];
const application = { client_id: 'app', name: 'App', id: 'app' } as never;

describe('the embedded store on disk', () => {
  let root: string;
  let dataDir: string;
  const open: Store[] = [];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'gatehouse-files-'));
    dataDir = join(root, 'data');
  });

  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
    await rm(root, { recursive: true });
  });

  const file = (name: string, directory = dataDir) => join(directory, 'store', name);

  async function begin(directory = dataDir, options: Partial<StoreOptions> = {}): Promise<Store> {
    const store = await openStore({ dataDir: directory, clock, ...options });
    open.push(store);
    return store;
  }

  /** Copies the files of an open store, as a kill at this moment would leave them. */
  async function crashImage(): Promise<string> {
    const image = join(root, 'crashed');
    await cp(dataDir, image, { recursive: true });
    return image;
  }

  /** Creates and closes a store with an application and this many users. */
  async function filled(users = 3): Promise<void> {
    const store = await begin();
    await store.collection('clients').insert(application);
    const padding = 'x'.repeat(700);
    const all = Array.from({ length: users }, (_, n) => n);
    await Promise.all(
      all.map((n) =>
        store
          .collection('users')
          .insert({ ...aUser(`user${n}`, `${n}@a.example`), user_metadata: { padding } }),
      ),
    );
    await store.close();
  }

  const refusal = async (directory = dataDir) => String(await rejection(begin(directory)));
  const userCount = async (directory = dataDir) => (await begin(directory)).collection('users').count();

  it('can only be read by its owner, whatever the umask', async () => {
    const before = process.umask(0);
    try {
      const store = await begin();
      await store.collection('users').insert(aUser('user1'));
      await store.collection('clients').insert(application);
      const files = await readdir(join(dataDir, 'store'));
      expect(files).to.include.members(['gatehouse.db', 'gatehouse.db-wal', 'clients.json']);
      for (const name of files) expect((await stat(file(name))).mode & 0o777, name).to.equal(0o600);
      for (const directory of [dataDir, join(dataDir, 'store')]) {
        expect((await stat(directory)).mode & 0o777).to.equal(0o700);
      }
    } finally {
      process.umask(before);
    }
  });

  it('consists of a database and a readable file for each collection of the configuration', async () => {
    await filled();
    const files = ['gatehouse.db', ...configuration.map((name) => `${name}.json`)];
    expect(await readdir(join(dataDir, 'store'))).to.have.members(files);
    const document = JSON.parse(await readFile(file('clients.json'), 'utf8'));
    expect(document).to.include({ format: 'gatehouse-configuration', version: 1, collection: 'clients' });
    expect(document.records).to.deep.equal([application]);
  });

  it('keeps only counters and the configuration in memory, and log events and everything that grows in the database', () => {
    const kept = (where: string) =>
      collectionSpecs().flatMap(([name, spec]) => (spec.kept === where ? [name] : []));
    expect(kept('memory')).to.deep.equal(['tries', 'limits']);
    expect(kept('configuration').sort()).to.deep.equal(configuration);
  });

  it('contains no counters and no deleted or expired records', async () => {
    let now = clock();
    const store = await begin(dataDir, { clock: () => now, elapsed: () => now });
    await store.collection('limits').insert({ id: 'ip', tokens: 4711, at: 0 });
    await store.collection('users').insert(aUser('deleted-one'));
    await store.collection('users').delete('deleted-one');
    await store.collection('users').insert({ ...aUser('expired-one'), expiresAt: now / 1000 + 1 });
    now += HOUR;
    // The purge, once a second, deletes it.
    while (existsIn(file('gatehouse.db'), 'expired-one'))
      await new Promise((resolve) => setTimeout(resolve, 50));
    await store.close();
    const bytes = await readFile(file('gatehouse.db'), 'latin1');
    for (const gone of ['4711', 'deleted-one', 'expired-one'])
      expect(bytes.includes(gone), gone).to.equal(false);
  });

  it('contains after a crash everything that was acknowledged', async () => {
    const store = await begin();
    const users = store.collection('users');
    for (const n of [1, 2, 3]) await users.insert(aUser(`user${n}`, `${n}@a.example`));
    await users.update('user2', ({ id }) => ({ ...aUser(id, '2@a.example'), name: 'changed' }));
    await users.take('user3');
    await store.collection('clients').insert(application);
    const again = await begin(await crashImage());
    expect((await again.collection('users').list()).records).to.deep.equal([
      aUser('user1', '1@a.example'),
      { ...aUser('user2', '2@a.example'), name: 'changed' },
    ]);
    expect((await again.collection('clients').list()).records).to.deep.equal([application]);
  });

  it('opens after it was killed while writing a file of the configuration or creating a store', async () => {
    await filled();
    await writeFile(file('clients.json.tmp'), '{"half":');
    await mkdir(join(dataDir, 'store.new'));
    await writeFile(join(dataDir, 'store.new', 'gatehouse.db'), 'half');
    expect(await userCount()).to.equal(3);
    const empty = join(root, 'empty');
    await mkdir(join(empty, 'store.new'), { recursive: true });
    await writeFile(join(empty, 'store.new', 'gatehouse.db'), 'half');
    expect(await userCount(empty)).to.equal(0);
  });

  it('creates the files of collections that the release before did not have', async () => {
    await filled();
    for (const name of ['documents.json', 'roles.json']) await unlink(file(name));
    const database = new DatabaseSync(file('gatehouse.db'));
    const had = configuration.filter((name) => name !== 'documents' && name !== 'roles');
    database.prepare("UPDATE meta SET value = ? WHERE name = 'configuration'").run(JSON.stringify(had));
    database.close();
    const store = await begin();
    await store.collection('roles').insert({ id: 'admin', name: 'Admin', permissions: [] });
    await store.close();
    expect(await (await begin()).collection('roles').count()).to.equal(1);
  });

  it('opens from a copy that SQLite made while the store was in use', async () => {
    const store = await begin();
    await store.collection('users').insert(aUser('user1'));
    const image = join(root, 'backup');
    await mkdir(join(image, 'store'), { recursive: true });
    for (const name of configuration) await cp(file(`${name}.json`), file(`${name}.json`, image));
    await cp(join(dataDir, 'keys'), join(image, 'keys'), { recursive: true });
    const database = new DatabaseSync(file('gatehouse.db'));
    database.prepare('VACUUM INTO ?').run(file('gatehouse.db', image));
    database.close();
    expect(await userCount(image)).to.equal(1);
  });

  it('is compacted without leaving deleted data in its files, while it is read and written', async () => {
    const store = await begin();
    const users = store.collection('users');
    const ids = Array.from({ length: 300 }, (_, i) => `auth0|${i}`);
    await Promise.all(ids.map((id) => users.put({ ...aUser(id), name: `never-to-be-kept-${id}` })));
    // Some records stay, so that pages are merged and their content is moved.
    const gone = ids.filter((_, i) => i % 7 !== 0);
    await Promise.all(ids.map((id) => users.put({ ...aUser(id), name: 'Kept' })));
    await Promise.all(gone.map((id) => users.delete(id)));
    const [kept] = await Promise.all([users.get('auth0|0'), store.compact(), users.put(aUser('auth0|new'))]);
    expect(kept?.name).to.equal('Kept');
    expect((await users.get('auth0|new'))?.id).to.equal('auth0|new');
    expect(await users.count()).to.equal(ids.length - gone.length + 1);
    for (const name of await readdir(file('.'))) {
      const bytes = await readFile(file(name), 'latin1');
      expect(bytes.includes('never-to-be-kept'), name).to.equal(false);
    }
  });

  describe('with damage', () => {
    it('names the file of the configuration and refuses to open, without quoting its content', async () => {
      await filled();
      const intact = await readFile(file('clients.json'), 'utf8');
      const faults: [damaged: string, message: RegExp][] = [
        [intact.replace('"App"', '"Eve"'), /clients\.json: the file is damaged, or was changed by hand/],
        [intact.replace('"App"', 'App'), /clients\.json: this is not JSON$/],
        [intact.replace('gatehouse-configuration', 'other'), /clients\.json: this is not a store file/],
        [intact.replace('"version":1', '"version":2'), /clients\.json: store format 2 .* newer release/],
        [intact.replace('"clients"', '"tenant"'), /clients\.json: the file is not of the collection clients/],
        [intact.slice(0, -4), /clients\.json: the file is cut off/],
        ['', /clients\.json: the file is cut off/],
      ];
      for (const [damaged, message] of faults) {
        expect(damaged).not.to.equal(intact);
        await writeFile(file('clients.json'), damaged);
        expect(await refusal()).to.match(message);
      }
      await writeFile(file('clients.json'), intact);
      expect(await userCount()).to.equal(3);
    });

    it('names a database whose structure is damaged anywhere, or that is cut off, and refuses to open', async () => {
      await filled(300);
      const intact = await readFile(file('gatehouse.db'));
      for (const [at, message] of [
        [0, /gatehouse\.db: .*not a database/],
        [4096 * 20, /gatehouse\.db: /],
        [intact.length - 4096, /gatehouse\.db: /],
      ] as const) {
        const damaged = Buffer.from(intact);
        damaged.fill(0xa5, at, at + 4096);
        await writeFile(file('gatehouse.db'), damaged);
        expect(await refusal(), String(at)).to.match(message);
      }
      await writeFile(file('gatehouse.db'), intact);
      await truncate(file('gatehouse.db'), intact.length - 8192);
      expect(await refusal()).to.match(/gatehouse\.db: the file is cut off|malformed/);
      await writeFile(file('gatehouse.db'), intact);
      expect(await userCount()).to.equal(300);
    });

    it('finds damage in a large database while it is in use: it is not ready, and refuses writes', async () => {
      await filled(300);
      const bytes = await readFile(file('gatehouse.db'));
      bytes.fill(0xa5, bytes.length - 4096);
      await writeFile(file('gatehouse.db'), bytes);
      const errors: unknown[] = [];
      const log = { warn: () => {}, error: (details: unknown) => errors.push(details) };
      const store = await begin(dataDir, { checkBytes: 0, log });
      while (errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      expect(String(await rejection(store.ready()))).to.match(/gatehouse\.db: /);
      expect(
        String(await rejection(store.collection('logs').put({ id: '1', type: 's', date: '' }))),
      ).to.match(/gatehouse\.db: /);
    });

    it('finds and names a damaged record when any method reads it, and serves the others', async () => {
      await filled(3);
      const bytes = await readFile(file('gatehouse.db'));
      const at = bytes.indexOf('"created_at":"2026', bytes.indexOf('"id":"user1"'));
      for (const bit of [1, 2, 4]) {
        const damaged = Buffer.from(bytes);
        damaged.writeUInt8(damaged.readUInt8(at + 17) ^ bit, at + 17);
        await writeFile(file('gatehouse.db'), damaged);
        const users = (await begin()).collection('users');
        const reads = [
          () => users.get('user1'),
          () => users.findBy('email', '1@a.example'),
          () => users.list(),
          () => users.list({ where: { field: 'logins_count', equals: 0 } }),
          () => users.update('user1', (user) => user),
          () => users.take('user1'),
        ];
        for (const read of reads) {
          expect(String(await rejection(read()))).to.match(
            /gatehouse\.db: the record "user1" of users is damaged/,
          );
        }
        expect(await users.get('user2')).to.include({ id: 'user2' });
        expect(await users.count()).to.equal(3);
        for (const store of open.splice(0)) await store.close();
      }
      const said = await repairStore(dataDir);
      expect(said.join('\n')).to.match(
        /the record "user1" of users is damaged.*\n.*1 records are given up; kept \d/,
      );
      const users = (await begin()).collection('users');
      expect((await users.list()).records.map(({ id }) => id)).to.deep.equal(['user0', 'user2']);
    });

    it('deletes no record whose expiry column is damaged before its own expiry', async () => {
      const store = await begin();
      const later = clock() / 1000 + 7200;
      for (const id of ['damaged', 'expired']) {
        await store.collection('users').insert({ ...aUser(id), expiresAt: later });
      }
      await store.collection('users').update('expired', (one) => ({ ...one, expiresAt: clock() / 1000 + 1 }));
      await store.close();
      const database = new DatabaseSync(file('gatehouse.db'));
      database.exec("UPDATE users SET expires_at = 1 WHERE id = 'damaged'");
      database.close();
      let passed = 0;
      const again = await begin(dataDir, { clock: () => clock() + 1000 + passed, elapsed: () => passed });
      passed = HOUR;
      // The purge, once a second, deletes the other one.
      while (existsIn(file('gatehouse.db'), 'expired'))
        await new Promise((resolve) => setTimeout(resolve, 50));
      expect(await again.collection('users').get('damaged')).to.include({ id: 'damaged' });
    });

    it('refuses to open without one of its files', async () => {
      await filled();
      for (const name of ['gatehouse.db', 'tenant.json', 'clients.json', 'roles.json']) {
        const intact = await readFile(file(name));
        await unlink(file(name));
        expect(await refusal()).to.include(`${name} is missing`);
        await writeFile(file(name), intact);
      }
      expect(await userCount()).to.equal(3);
    });

    it('refuses to open after a crash without its write-ahead log', async () => {
      await (await begin()).collection('users').insert(aUser('user1'));
      const image = await crashImage();
      await unlink(file('gatehouse.db-wal', image));
      expect(await refusal(image)).to.include('gatehouse.db-wal is missing');
      expect(await repairStore(image)).to.have.length(1);
      expect(await userCount(image)).to.equal(0);
    });

    it('refuses to open a write-ahead log with intact changes behind damage, but opens one cut off by a crash', async () => {
      const users = (await begin()).collection('users');
      for (const n of [1, 2, 3, 4]) await users.insert(aUser(`user${n}`));
      const image = await crashImage();
      const log = await readFile(file('gatehouse.db-wal', image));
      for (const at of [20, log.indexOf('"id":"user1"')]) {
        const damaged = Buffer.from(log);
        damaged.writeUInt8(damaged.readUInt8(at) ^ 0xff, at);
        await writeFile(file('gatehouse.db-wal', image), damaged);
        for (const _again of [1, 2]) {
          expect(await refusal(image), String(at)).to.match(/gatehouse\.db-wal is damaged at frame \d/);
        }
      }
      await writeFile(file('gatehouse.db-wal', image), log.subarray(0, log.length - 1000));
      expect(await userCount(image)).to.equal(3);
    });

    it('refuses a database of a newer release, and one of another program', async () => {
      await filled();
      for (const [pragma, message] of [
        ['user_version = 4', /gatehouse\.db: store format 4 .* newer release/],
        ['application_id = 1', /gatehouse\.db: this is not a store/],
      ] as const) {
        const database = new DatabaseSync(file('gatehouse.db'));
        database.exec(`PRAGMA ${pragma}`);
        database.close();
        expect(await refusal()).to.match(message);
        expect(String(await rejection(repairStore(dataDir)))).to.match(message);
      }
    });
  });

  describe('after a repair', () => {
    it('contains what could be read, and keeps the damaged files', async () => {
      await filled(300);
      const bytes = await readFile(file('gatehouse.db'));
      const page = Math.floor(bytes.indexOf('"id":"user150"') / 4096);
      bytes.fill(0xa5, page * 4096, (page + 1) * 4096);
      await writeFile(file('gatehouse.db'), bytes);
      await writeFile(
        file('clients.json'),
        (await readFile(file('clients.json'), 'utf8')).replace('App', 'Eve'),
      );
      await unlink(file('tenant.json'));
      const said = await repairStore(dataDir);
      expect(said.join('\n'))
        .to.match(/clients\.json: .*digest.*kept 1 records/)
        .and.match(/tenant\.json is missing; kept 0 records/)
        .and.match(/gatehouse\.db: .*kept (29|30)\d records; what its damaged pages held is lost/);
      expect(await readdir(join(dataDir, 'store'))).to.include.members([
        'gatehouse.db.damaged',
        'clients.json.damaged',
      ]);
      const store = await begin();
      expect(await store.collection('users').count()).to.be.within(285, 299);
      expect(await store.collection('users').findBy('email', '299@a.example')).to.have.length(1);
      expect((await store.collection('clients').list()).records).to.have.length(1);
    });

    it('is unchanged if it was intact; the repair refuses while a server is running', async () => {
      await filled();
      expect(await repairStore(dataDir)).to.deep.equal([]);
      await begin();
      expect(String(await rejection(repairStore(dataDir)))).to.match(/in use/);
    });
  });
});

/** Returns whether the row of a record exists, as another connection sees it. */
function existsIn(path: string, id: string): boolean {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database.prepare('SELECT 1 FROM users WHERE id = ?').get(id) !== undefined;
  } finally {
    database.close();
  }
}
