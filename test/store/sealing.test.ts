// Secrets at rest (src/store/sealing). The tests search the stored bytes for them.
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { collections } from '../../src/records/collections.ts';
import { sha256, systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { parseKey } from '../../src/store/sealing/key.ts';
import { resealStore, resetSealed } from '../../src/store/sealing/reseal.ts';
import { checksum } from '../../src/store/sql/row.ts';
import type { StoreOptions } from '../../src/store/store-options.ts';
import { rejection } from './contract.ts';

const secret = (name: string) => `very-secret-${name}`;
const tenant = {
  id: 'tenant',
  tenant: { friendly_name: 'Readable' },
  webPush: { subject: 'mailto:a@a.example', public_key: 'Readable', private_key: secret('vapid') },
  emailProvider: { name: 'smtp', credentials: { smtp_host: 'Readable', smtp_pass: secret('smtp') } },
  guardianFactorProviders: [{ name: 'sms', provider: 'twilio', auth_token: secret('twilio') }],
};
const client = {
  id: 'app',
  client_id: 'app',
  name: 'Readable',
  client_secret: secret('client'),
  addons: { samlp: { audience: 'Readable' }, firebase: { private_key: secret('addon') } },
};
const connection = {
  id: 'con_1',
  name: 'upstream',
  strategy: 'oidc',
  options: { client_id: 'Readable', client_secret: secret('upstream') },
};
const signingKey = {
  id: 'kid',
  state: 'current',
  jwk: { kty: 'RSA', d: secret('signing') },
  x5c: [],
  createdAt: 0,
};
const app = {
  id: 'totp|dev_1',
  user_id: 'auth0|1',
  kind: 'otp',
  active: true,
  created_at: '',
  secret: secret('totp'),
};
const records = [
  ['tenant', tenant],
  ['clients', client],
  ['connections', connection],
  ['signingKeys', signingKey],
  ['authenticators', app],
] as const;

describe('secrets in the embedded store', () => {
  let root: string;
  let dataDir: string;
  const open: Store[] = [];
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'gatehouse-sealed-'));
    dataDir = join(root, 'data');
  });
  afterEach(async () => {
    await close();
    await rm(root, { recursive: true });
  });

  const file = (name: string) => join(dataDir, 'store', name);
  async function begin(options: Partial<StoreOptions> = {}): Promise<Store> {
    const store = await openStore({ dataDir, clock: () => 1_800_000_000_000, ...options });
    open.push(store);
    return store;
  }
  async function close(): Promise<void> {
    for (const store of open.splice(0)) await store.close();
  }
  async function filled(options: Partial<StoreOptions> = {}): Promise<Store> {
    const store = await begin(options);
    for (const [name, record] of records) await store.collection(name).insert(record as never);
    return store;
  }
  const refusal = async (options: Partial<StoreOptions> = {}) => String(await rejection(begin(options)));

  async function expectNoSecrets(): Promise<void> {
    for (const name of await readdir(dataDir, { recursive: true })) {
      if (!(await stat(join(dataDir, name))).isFile()) continue;
      expect((await readFile(join(dataDir, name), 'latin1')).includes('very-secret'), name).to.equal(false);
    }
  }
  async function expectRecords(store: Store): Promise<void> {
    for (const [name, record] of records) {
      expect(await store.collection(name).get(record.id)).to.deep.equal(record);
    }
  }
  /** Changes rows bypassing the store. */
  function inDatabase(work: (database: DatabaseSync) => void): void {
    const database = new DatabaseSync(file('gatehouse.db'));
    work(database);
    database.close();
  }
  /** Changes a file of the configuration as someone who can write to the disk could. */
  async function editConfiguration(
    name: string,
    edit: (records: Record<string, never>[]) => void,
  ): Promise<void> {
    const document = JSON.parse(await readFile(file(name), 'utf8'));
    edit(document.records);
    const { format, version, collection, records: all } = document;
    const lines = all.map((one: unknown) => `\n${JSON.stringify(one)}`).join(',');
    const body = `${JSON.stringify({ format, version, collection }).slice(0, -1)},"records":[${lines}\n]`;
    await writeFile(file(name), `${body},"digest":"${sha256(body)}"}\n`);
  }

  it('are nowhere on disk in plain text, while the store runs, after changes and after it is closed; other data stays readable', async () => {
    const store = await filled();
    await expectNoSecrets();
    await store.collection('clients').update('app', (one) => ({ ...one, client_secret: secret('changed') }));
    await store.collection('authenticators').update(app.id, (one) => ({ ...one, lastStep: 7 }));
    await store.collection('authenticators').update(app.id, ({ lastStep: _step, ...one }) => one);
    await store.collection('clients').put(client as never);
    await expectNoSecrets();
    await expectRecords(store);
    await close();
    await expectNoSecrets();
    for (const name of ['tenant.json', 'clients.json', 'connections.json']) {
      expect(await readFile(file(name), 'utf8')).to.contain('Readable');
    }
    await expectRecords(await begin());
  });

  it('are not part of any key or of any field that can be filtered by', () => {
    for (const [name, { sealed = [], fields = {} }] of Object.entries(collections)) {
      const within = (field: string) =>
        (sealed as string[]).some(
          (one) => `${field}.`.startsWith(`${one}.`) || `${one}.`.startsWith(`${field}.`),
        );
      expect(Object.keys(fields).filter(within), name).to.deep.equal([]);
    }
  });

  it('are encrypted anew at each write, even if they have not changed', async () => {
    const store = await filled();
    const stored = async () =>
      JSON.parse(await readFile(file('clients.json'), 'utf8')).records[0].client_secret;
    const before = await stored();
    expect(before.sealed).to.be.a('string');
    await store.collection('clients').put({ ...client, id: 'other', client_id: 'other' } as never);
    expect(await stored()).to.deep.equal(before);
    await store.collection('clients').put({ ...client, name: 'Other' } as never);
    expect(await stored()).not.to.deep.equal(before);
  });

  it('may themselves have the form of a sealed value', async () => {
    const options = { client_secret: { sealed: 'c2VhbGVk' } };
    await (await begin()).collection('connections').insert({ ...connection, options } as never);
    await close();
    expect((await (await begin()).collection('connections').get('con_1'))?.options).to.deep.equal(options);
  });

  it('that were moved to another record or member are refused by name', async () => {
    const store = await filled();
    await store.collection('signingKeys').insert({ ...signingKey, id: 'other', state: 'next' } as never);
    await store.collection('clients').insert({ ...client, id: 'other', client_id: 'other' } as never);
    await close();
    const row = (database: DatabaseSync, id: string) =>
      JSON.parse(String(database.prepare('SELECT data FROM "signingKeys" WHERE id = ?').get(id)?.data));
    inDatabase((database) => {
      const text = JSON.stringify({ ...row(database, 'kid'), jwk: row(database, 'other').jwk });
      const sum = checksum('signingKeys', text);
      database.prepare('UPDATE "signingKeys" SET data = ?, sum = ? WHERE id = ?').run(text, sum, 'kid');
    });
    const again = await begin();
    expect(String(await rejection(again.collection('signingKeys').get('kid')))).to.match(
      /gatehouse\.db: jwk of "kid" in signingKeys cannot be opened/,
    );
    await close();
    await editConfiguration('clients.json', (all) => {
      const [first, second] = all as unknown as { client_secret: unknown }[];
      if (first && second) first.client_secret = second.client_secret;
    });
    expect(await refusal()).to.match(/client_secret of "app" in clients cannot be opened/);
  });

  it('that somebody wrote to the database unsealed are refused', async () => {
    await filled();
    await close();
    inDatabase((database) => {
      const text = JSON.stringify(signingKey);
      const sum = checksum('signingKeys', text);
      database.prepare('UPDATE "signingKeys" SET data = ?, sum = ? WHERE id = ?').run(text, sum, 'kid');
    });
    const fault = await rejection((await begin()).collection('signingKeys').get('kid'));
    expect(String(fault)).to.match(/jwk of "kid" in signingKeys is not sealed/);
  });

  describe('that a release declares to be sealed later', () => {
    /** Returns the store to the state before: unsealed. */
    async function older(): Promise<void> {
      await filled();
      await close();
      inDatabase((database) => {
        database.exec(
          "DELETE FROM meta WHERE name = 'sealed'; DELETE FROM \"keyChecks\" WHERE id = 'secrets'",
        );
        for (const [name, record] of records.slice(3)) {
          database
            .prepare(`UPDATE "${name}" SET data = ?, sum = ? WHERE id = ?`)
            .run(JSON.stringify(record), checksum(name, JSON.stringify(record)), record.id);
        }
      });
      for (const [name, record] of records.slice(0, 3)) {
        await editConfiguration(`${name}.json`, (all) => all.splice(0, 1, record as never));
      }
      await rm(join(dataDir, 'keys'), { recursive: true });
      expect(await readFile(file('gatehouse.db'), 'latin1')).to.contain('very-secret-signing');
    }

    it('are sealed at the first start, and nothing of the plain text is left', async () => {
      await older();
      const store = await begin();
      await expectNoSecrets();
      await expectRecords(store);
    });

    it('are sealed even if that was interrupted after the database', async () => {
      await older();
      const open = await readFile(file('clients.json'));
      await begin();
      await close();
      await writeFile(file('clients.json'), open);
      await expectRecords(await begin());
      await expectNoSecrets();
    });
  });

  describe('with SECRETS_KEY', () => {
    const keyOf = (bytes: Buffer) => parseKey(bytes.toString('base64'));
    const one = keyOf(randomBytes(32));
    const other = keyOf(randomBytes(32));

    it('need no key file, and open only with that key', async () => {
      await filled({ secretsKey: one });
      await close();
      expect(await readdir(dataDir)).not.to.include('keys');
      expect(await refusal({ secretsKey: other })).to.match(/SECRETS_KEY is another key/);
      expect(await refusal()).to.match(/secrets\.key is missing/);
      await expectRecords(await begin({ secretsKey: one }));
    });

    it('accept a key of 32 bytes in hexadecimal digits and in either base64', () => {
      const bytes = Buffer.alloc(32, 0xfb);
      for (const encoding of ['hex', 'base64', 'base64url'] as const) {
        expect(parseKey(bytes.toString(encoding))?.export(), encoding).to.deep.equal(bytes);
        expect(parseKey(bytes.subarray(1).toString(encoding)), encoding).to.equal(undefined);
      }
    });

    it('are sealed with another key by a command: from file to setting, to another setting, and back', async () => {
      await filled();
      const random = systemRandom;
      const running = resealStore({ dataDir, given: one, before: undefined, random });
      expect(String(await rejection(running)), 'while it runs').to.match(/in use/);
      await close();
      await resealStore({ dataDir, given: one, before: undefined, random });
      expect(await readdir(join(dataDir, 'keys'))).to.deep.equal([]);
      await expectRecords(await begin({ secretsKey: one }));
      await close();
      const unknown = resealStore({ dataDir, given: other, before: undefined, random });
      expect(String(await rejection(unknown))).to.match(/none of SECRETS_KEY/);
      await resealStore({ dataDir, given: other, before: one, random });
      expect(await refusal({ secretsKey: one })).to.match(/another key/);
      await expectRecords(await begin({ secretsKey: other }));
      await close();
      await resealStore({ dataDir, given: undefined, before: other, random });
      await expectRecords(await begin());
      await expectNoSecrets();
    });

    it('refuse to open after an interrupted change of keys, until the command is run again with both keys', async () => {
      await filled({ secretsKey: one });
      await close();
      const clients = await readFile(file('clients.json'));
      await cp(file('gatehouse.db'), join(root, 'before.db'));
      await resealStore({ dataDir, given: other, before: one, random: systemRandom });
      // What a kill in between leaves: some files with one key, some with the other, and the check values of both in
      // the database.
      await writeFile(file('clients.json'), clients);
      const checkOf = (path: string) => {
        const database = new DatabaseSync(path);
        const row = database.prepare('SELECT data FROM "keyChecks" WHERE id = ?').get('secrets');
        database.close();
        return String(JSON.parse(String(row?.data)).value);
      };
      const before = checkOf(join(root, 'before.db'));
      inDatabase((database) => {
        const text = JSON.stringify({ id: 'secrets-before', value: before });
        database
          .prepare('INSERT INTO "keyChecks" (id, data, sum) VALUES (?, ?, ?)')
          .run('secrets-before', text, checksum('keyChecks', text));
      });
      expect(await refusal({ secretsKey: other })).to.match(/run `gatehouse keys reseal` again/);
      await resealStore({ dataDir, given: other, before: one, random: systemRandom });
      await expectRecords(await begin({ secretsKey: other }));
    });
  });

  it('whose key is lost are removed by a command, and nothing else', async () => {
    await filled();
    await close();
    await rename(join(dataDir, 'keys'), join(root, 'lost'));
    expect(await resetSealed({ dataDir, given: undefined })).to.deep.equal({ records: 2, members: 6 });
    const store = await begin();
    expect(await store.collection('signingKeys').count()).to.equal(0);
    expect(await store.collection('clients').get('app'))
      .to.include({ name: 'Readable' })
      .and.not.have.property('client_secret');
    await close();
    expect(await resetSealed({ dataDir, given: undefined })).to.deep.equal({ records: 0, members: 0 });
  });
});
