import { appendFile, cp, mkdtemp, readdir, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openLowdbStore } from '../../src/store/lowdb.ts';
import { aUser, rejection } from './contract.ts';

const clock = () => 1_800_000_000_000;
const firstSegment = 'journal-00000001.log';

describe('lowdb store on disk', () => {
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

  async function openStore(directory = dataDir, options = {}): Promise<Store> {
    const store = await openLowdbStore({ dataDir: directory, clock, ...options });
    open.push(store);
    return store;
  }

  /** What a kill at this moment would leave: a copy of the files of an open store. */
  async function crashImage(name = 'crashed'): Promise<{ dataDir: string; file: (name: string) => string }> {
    const image = join(root, name);
    await cp(dataDir, image, { recursive: true });
    return { dataDir: image, file: (file) => join(image, 'store', file) };
  }

  /** The image of a store that has acknowledged the users 1, 2 and 3 in this order. */
  async function threeUsers(): Promise<Awaited<ReturnType<typeof crashImage>>> {
    const users = (await openStore()).collection('users');
    for (const n of [1, 2, 3]) await users.insert(aUser(`user${n}`, `${n}@a.example`));
    return crashImage();
  }

  async function userIds(directory: string): Promise<string[]> {
    const store = await openStore(directory);
    const { records } = await store.collection('users').list();
    return records.map(({ id }) => id);
  }

  async function refusal(directory: string): Promise<string> {
    return String(await rejection(openStore(directory)));
  }

  describe('files', () => {
    it('are readable by their owner alone, whatever the umask', async () => {
      const before = process.umask(0);
      try {
        const store = await openStore();
        await store.collection('users').insert(aUser('user1'));
        const files = await readdir(join(dataDir, 'store'));
        await store.close();
        files.push(...(await readdir(join(dataDir, 'store'))));
        expect(files).to.include.members([firstSegment, 'users.json', 'lock']);
        await openStore();
        for (const directory of [dataDir, join(dataDir, 'store')]) {
          expect((await stat(directory)).mode & 0o777).to.equal(0o700);
        }
        for (const file of await readdir(join(dataDir, 'store'))) {
          expect((await stat(join(dataDir, 'store', file))).mode & 0o777, file).to.equal(0o600);
        }
      } finally {
        process.umask(before);
      }
    });

    it('are one JSON document a collection once the store is closed, in id order', async () => {
      const store = await openStore();
      await store.collection('users').insert(aUser('b'));
      await store.collection('users').insert(aUser('a'));
      await store.close();
      const document = JSON.parse(await readFile(join(dataDir, 'store', 'users.json'), 'utf8'));
      expect(document).to.include({ format: 'gatehouse-store', version: 1, collection: 'users' });
      expect(document.records).to.deep.equal([aUser('a'), aUser('b')]);
      expect(await readdir(join(dataDir, 'store'))).to.have.members(['users.json', 'lock']);
    });

    it('hold nothing of a collection that need not survive a crash', async () => {
      const store = await openStore();
      await store.collection('limits').insert({ id: 'ip', tokens: 1, at: 0 });
      expect(await readFile(join(dataDir, 'store', firstSegment), 'utf8')).not.to.include('tokens');
      await store.close();
      expect(await readdir(join(dataDir, 'store'))).to.deep.equal(['lock']);
    });

    it('hold no expired record after closing', async () => {
      let now = 1_800_000_000_000;
      const store = await openStore(dataDir, { clock: () => now });
      await store.collection('users').insert({ ...aUser('user1'), expiresAt: 1_800_000_001 });
      await store.collection('users').insert(aUser('user2'));
      now += 1000;
      await store.close();
      const { records } = JSON.parse(await readFile(join(dataDir, 'store', 'users.json'), 'utf8'));
      expect(records).to.deep.equal([aUser('user2')]);
    });
  });

  describe('after a crash', () => {
    it('has all that was acknowledged', async () => {
      const store = await openStore();
      const users = store.collection('users');
      for (const n of [1, 2, 3]) await users.insert(aUser(`user${n}`, `${n}@a.example`));
      await users.update('user2', ({ id }) => ({ ...aUser(id, '2@a.example'), name: 'changed' }));
      await users.take('user3');
      const again = await openStore((await crashImage()).dataDir);
      expect((await again.collection('users').list()).records).to.deep.equal([
        aUser('user1', '1@a.example'),
        { ...aUser('user2', '2@a.example'), name: 'changed' },
      ]);
    });

    it('drops a last line cut at any byte, keeps those before it, and goes on', async () => {
      const image = await threeUsers();
      const journal = await readFile(image.file(firstSegment));
      const lastLine = journal.lastIndexOf('\n', -2) + 1;
      for (let length = lastLine; length < journal.length; length += 7) {
        await writeFile(image.file(firstSegment), journal.subarray(0, length));
        const store = await openStore(image.dataDir);
        expect(await store.collection('users').count(), `cut at ${length}`).to.equal(2);
        await store.collection('users').insert(aUser('user3', '3@a.example'));
        await store.close();
        const again = await openStore(image.dataDir);
        expect(await again.collection('users').count()).to.equal(3);
        await again.close();
        await rm(image.dataDir, { recursive: true });
        await crashImage();
      }
    });

    it('says in the log that it dropped an unfinished line', async () => {
      const image = await threeUsers();
      await appendFile(image.file(firstSegment), '0123abcd {"collection":"us');
      const warnings: unknown[] = [];
      const log = { warn: (details: unknown) => warnings.push(details), error: () => {} };
      const store = await openStore(image.dataDir, { log });
      expect(await store.collection('users').count()).to.equal(3);
      expect(warnings).to.deep.equal([{ path: image.file(firstSegment), bytes: 26 }]);
    });

    it('opens when it was killed while it began a segment', async () => {
      const image = await threeUsers();
      for (const start of ['', '0123', header(1, 2)]) {
        await writeFile(image.file('journal-00000002.log'), start);
        const store = await openStore(image.dataDir);
        expect(await store.collection('users').count()).to.equal(3);
        await store.close();
        await rm(image.dataDir, { recursive: true });
        await crashImage();
      }
    });

    it('opens when it was killed over and over without a write', async () => {
      await openStore();
      let image = await crashImage('1');
      for (let n = 2; n < 5; n++) {
        await openStore(image.dataDir);
        const next = join(root, String(n));
        await cp(image.dataDir, next, { recursive: true });
        image = { dataDir: next, file: (file) => join(next, 'store', file) };
      }
      expect(await userIds(image.dataDir)).to.deep.equal([]);
    });

    it('opens when it was killed between a fold and the deletion of the segment', async () => {
      const store = await openStore();
      const users = store.collection('users');
      await users.insert(aUser('user1', 'ada@a.example'));
      await users.delete('user1');
      await users.insert(aUser('user2', 'ada@a.example'));
      await users.put(aUser('user2', 'bob@a.example'));
      await users.insert(aUser('user3', 'ada@a.example'));
      const image = await crashImage();
      await store.close();
      await cp(join(dataDir, 'store', 'users.json'), image.file('users.json'));
      await writeFile(image.file('users.json.tmp'), '{"half":');
      const again = await openStore(image.dataDir);
      expect((await again.collection('users').list()).records).to.deep.equal([
        aUser('user2', 'bob@a.example'),
        aUser('user3', 'ada@a.example'),
      ]);
      await again.close();
      expect(await readdir(join(image.dataDir, 'store'))).to.have.members(['users.json', 'lock']);
    });

    it('opens under a clock set back, when a key had passed on from an expired record', async () => {
      let now = 1_800_000_000_000;
      const store = await openStore(dataDir, { clock: () => now });
      const users = store.collection('users');
      await users.insert({ ...aUser('old', 'ada@a.example'), expiresAt: 1_800_000_001 });
      now += 1000;
      await users.insert(aUser('new', 'ada@a.example'));
      now -= 1000;
      expect(await userIds((await crashImage()).dataDir)).to.deep.equal(['new']);
    });
  });

  describe('damage', () => {
    it('in a line of the journal is refused with file and line', async () => {
      const image = await threeUsers();
      const lines = (await readFile(image.file(firstSegment), 'utf8')).split('\n');
      for (const line of [1, 2, 3, 4]) {
        const damaged = lines.map((text, n) => (n === line - 1 ? text.replace(/"[a-z]/, '"_') : text));
        await writeFile(image.file(firstSegment), damaged.join('\n'));
        const message = await refusal(image.dataDir);
        expect(message).to.include(`${image.file(firstSegment)} line ${line}: the line is damaged`);
      }
      await writeFile(image.file(firstSegment), lines.join('\n'));
      expect(await userIds(image.dataDir)).to.deep.equal(['user1', 'user2', 'user3']);
    });

    it('in a snapshot is refused with file and line, and without its content', async () => {
      const store = await openStore();
      for (const n of [1, 2]) await store.collection('users').insert(aUser(`user${n}`));
      await store.close();
      const path = join(dataDir, 'store', 'users.json');
      const intact = await readFile(path, 'utf8');
      const faults: [damaged: string, message: RegExp][] = [
        [intact.replace('{"id":"user2"', '{"id":user2'), /users\.json line 3: this is not JSON$/],
        [intact.replace('"id":"user2"', '"id":2'), /users\.json line 3: a record needs an id/],
        [intact.replace('user2', 'user1'), /users\.json line 3: .*again/],
        [intact.replace('gatehouse-store', 'other'), /users\.json line 1: this is not a store file/],
        [intact.replace('"users"', '"logs"'), /users\.json line 1: .*collection/],
        [`${intact}{}\n`, /users\.json line 5: there is more/],
        [intact.slice(0, -4), /users\.json: the file is cut off/],
        ['', /users\.json: the file is cut off/],
      ];
      for (const [damaged, message] of faults) {
        expect(damaged).not.to.equal(intact);
        await writeFile(path, damaged);
        expect(await refusal(dataDir)).to.match(message);
      }
      await writeFile(path, intact);
      expect(await userIds(dataDir)).to.deep.equal(['user1', 'user2']);
    });

    it('is not what a newer release wrote: that is refused as such', async () => {
      const image = await threeUsers();
      await (await openStore(join(root, 'other'))).collection('users').insert(aUser('user1'));
      await open.at(-1)?.close();
      const path = join(root, 'other', 'store', 'users.json');
      await writeFile(path, (await readFile(path, 'utf8')).replace('"version":1', '"version":2'));
      expect(await refusal(join(root, 'other'))).to.match(/store format 2 .* newer release/);
      await writeFile(image.file(firstSegment), header(2, 1));
      expect(await refusal(image.dataDir)).to.match(/journal format 2 .* newer release/);
    });

    it('is a segment that is missing, or cut off with another after it', async () => {
      const image = await threeUsers();
      const lines = (await readFile(image.file(firstSegment), 'utf8')).split('\n');
      const write = async () => {
        for (const n of [1, 2, 3]) {
          await writeFile(image.file(`journal-0000000${n}.log`), `${header(1, n)}${lines[n]}\n`);
        }
      };
      for (const n of [1, 2]) {
        await write();
        await unlink(image.file(`journal-0000000${n}.log`));
        expect(await refusal(image.dataDir)).to.include(`journal-0000000${n}.log is missing`);
      }
      await write();
      await writeFile(image.file('journal-00000002.log'), `${header(1, 2)}${lines[2]}`);
      expect(await refusal(image.dataDir)).to.match(/journal-00000002\.log line 2: the line is cut off/);
      await write();
      expect(await userIds(image.dataDir)).to.deep.equal(['user1', 'user2', 'user3']);
    });

    it('is a journal of a collection that is not known', async () => {
      const image = await threeUsers();
      await appendFile(image.file(firstSegment), line('{"collection":"shoes","put":{"id":"1"}}'));
      expect(await refusal(image.dataDir)).to.match(/line 5: there is no collection "shoes"/);
    });
  });

  describe('in the background', () => {
    it('folds the journal into the snapshots while it is written, and deletes what is folded', async () => {
      const store = await openStore(dataDir, { foldBytes: 2000 });
      const users = store.collection('users');
      const snapshot = join(dataDir, 'store', 'users.json');
      let written = 0;
      while (!(await exists(snapshot))) await users.insert(aUser(`user${++written}`));
      const image = await crashImage();
      expect(JSON.parse(await readFile(image.file('users.json'), 'utf8')).records).not.to.deep.equal([]);
      expect(await exists(image.file(firstSegment))).to.equal(false);
      const again = await openStore(image.dataDir);
      expect(await again.collection('users').count()).to.equal(written);
    });

    it('takes expired records off the disk', async () => {
      let now = 1_800_000_000_000;
      const store = await openStore(dataDir, { clock: () => now });
      const artifact = { id: 'code:1', model: 'AuthorizationCode', payload: {}, expiresAt: 1_800_000_001 };
      await store.collection('artifacts').insert(artifact);
      now += 1000;
      const journal = join(dataDir, 'store', firstSegment);
      while (!(await readFile(journal, 'utf8')).includes('"delete":["code:1"]')) await nextTurn();
      now -= 1000;
      expect(await store.collection('artifacts').get('code:1')).to.equal(undefined);
    });
  });
});

/** A line of a journal, with its checksum. */
function line(json: string): string {
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

function header(version: number, segment: number): string {
  return line(JSON.stringify({ format: 'gatehouse-journal', version, segment }));
}

async function exists(path: string): Promise<boolean> {
  return (await readdir(dirname(path))).includes(basename(path));
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
