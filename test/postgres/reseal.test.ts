// The commands for the key of a store in PostgreSQL.
import { createSecretKey } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ensureSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { repairEmbedded } from '../../src/commands/repair.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { openStore } from '../../src/store/open.ts';
import { resealDatabase, resetDatabase } from '../../src/store/postgres/postgres-reseal.ts';
import { keyFile } from '../../src/store/sealing/key.ts';
import { newFile } from '../../src/store/sealing/reseal.ts';
import { rejection } from '../store/contract.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';

const [one, other] = [1, 2].map((n) => createSecretKey(Buffer.alloc(32, n)));
const DELTA = 'app-\u0001\u0000';

describe('the key of a store in PostgreSQL', () => {
  let cluster: Cluster;
  let dataDir: string;
  let url: string;
  let databases = 0;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());
  beforeEach(async () => {
    databases += 1;
    await cluster.query(`CREATE DATABASE d${databases}`);
    url = cluster.url(`d${databases}`);
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-reseal-'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  const open = (secretsKey?: typeof one) =>
    openStore({ dataDir, databaseUrl: url, clock: Date.now, secretsKey });
  const source = (given?: typeof one, before?: typeof one) => ({
    url,
    dataDir,
    given,
    before,
    random: systemRandom,
  });
  const fill = async (secretsKey?: typeof one) => {
    const store = await open(secretsKey);
    await ensureSigningKeys(store, Date.now, 'localhost');
    await store
      .collection('clients')
      .insert({ id: DELTA, client_id: DELTA, name: 'App', client_secret: 'app-secret' } as never);
    const keys = (await store.collection('signingKeys').list()).records;
    await store.close();
    return keys;
  };
  const expectAll = async (keys: readonly unknown[], secretsKey?: typeof one) => {
    const store = await open(secretsKey);
    expect((await store.collection('signingKeys').list()).records).to.deep.equal(keys);
    expect((await store.collection('clients').get(DELTA))?.client_secret).to.equal('app-secret');
    await store.close();
  };

  it('changes from one setting to another, and the former key opens nothing any more', async () => {
    const keys = await fill(one);
    await resealDatabase(source(other, one));
    await expectAll(keys, other);
    expect(String(await rejection(open(one)))).to.match(/SECRETS_KEY is another key/);
    expect(String(await rejection(resealDatabase(source(other, one))))).to.match(/is the key already/);
    expect(String(await rejection(resealDatabase(source(one))))).to.match(/none of SECRETS_KEY/);
  });

  it('is replaced in its file, and moves from the file to a setting', async () => {
    const keys = await fill();
    await resealDatabase(source());
    await expectAll(keys);
    await resealDatabase(source(one));
    await expectAll(keys, one);
    expect(String(await rejection(open()))).to.match(/secrets.key is missing/);
  });

  it('moves to a setting even if an interrupted command had not moved the new key to its place', async () => {
    const keys = await fill();
    const file = keyFile(dataDir);
    renameSync(file, newFile(file));
    await resealDatabase(source(one));
    await expectAll(keys, one);
    expect(String(await rejection(open()))).to.match(/secrets.key is missing/);
  });

  it('does not change while a server uses the database, or when a record cannot be opened', async () => {
    const keys = await fill(one);
    const store = await open(one);
    await store.collection('users').count();
    expect(String(await rejection(resealDatabase(source(other, one))))).to.match(
      /a server uses the database/,
    );
    expect(String(await rejection(resetDatabase({ ...source(other), patience: 100 })))).to.match(
      /a server uses the database/,
    );
    await store.close();
    const { rows } = await cluster.query(
      'SELECT id, data::text AS data FROM "signingKeys" LIMIT 1',
      `d${databases}`,
    );
    const { id, data } = rows[0];
    const damage = (text: string) =>
      cluster.query(
        `UPDATE "signingKeys" SET data = '${text.replaceAll("'", "''")}' WHERE id = '${id}'`,
        `d${databases}`,
      );
    await damage(data.replace(/"sealed":"....../, '"sealed":"AAAAAA'));
    expect(await rejection(resealDatabase(source(other, one)))).to.be.instanceOf(Error);
    await damage(data);
    await expectAll(keys, one);
  });

  it('can be given up when it is lost, with what it sealed and nothing else', async () => {
    const keys = await fill(one);
    const { records, members } = await resetDatabase(source(other));
    expect(records).to.equal(keys.length);
    expect(members).to.be.above(0);
    const store = await open(other);
    expect(await store.collection('signingKeys').count()).to.equal(0);
    expect(await store.collection('clients').get(DELTA))
      .to.include({ name: 'App' })
      .and.not.have.property('client_secret');
    await ensureSigningKeys(store, Date.now, 'localhost');
    await store.close();
    expect(await resetDatabase(source(other))).to.deep.equal({ records: 0, members: 0 });
  });

  it('cannot be repaired by `gatehouse repair`, which says that it repairs files and that a database needs a backup', async () => {
    const host = { env: { DATABASE_URL: url, DATA_DIR: dataDir } } as unknown as Parameters<
      typeof repairEmbedded
    >[0];
    const refused = String(await rejection(repairEmbedded(host)));
    expect(refused).to.match(/works on the files of the embedded store.*restored from its backup/);
  });
});
