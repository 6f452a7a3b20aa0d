// The key that encrypts secrets in the store. A server does not start without the right one.
import { mkdtempSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { applyTenant } from '../../src/tenant/apply.ts';
import { readTenant } from '../../src/tenant/load.ts';
import { runCommand } from '../support/command.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { itInFiles, openStoreOf } from '../support/store.ts';
import { fillDataDir } from '../support/template.ts';
import { callsOf, codeOf, tenant } from './tenant.ts';

const PERSON = 'mfa-1@example.test';

describe('the encryption key of the store', () => {
  let dataDir: string;
  let file: string;
  let server: TestServer | undefined;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-sealing-'));
    file = join(dataDir, 'keys/secrets.key');
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    await rm(dataDir, { recursive: true, force: true });
  });

  const start = async () => {
    server = await startServer({ tenant, dataDir });
    return { server, calls: callsOf(server) };
  };
  const stop = async () => {
    await server?.stop();
    server = undefined;
  };
  /** Returns the message of a start that fails. */
  const refusal = async (): Promise<string> => {
    try {
      await start();
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : String(thrown);
    }
    throw new Error('it started');
  };
  /** Enrols a user with a server on the directory. @returns the secret of their app. */
  const enrolled = async (): Promise<string> => {
    await fillDataDir(dataDir, true);
    const { calls } = await start();
    const { secret } = await calls.enrollOtp(PERSON);
    await stop();
    return secret;
  };
  const logIn = async (secret: string, after = 30_000) => {
    const { server: running, calls } = await start();
    // The code of a later time step, because the one that confirmed the app is used up.
    running.tick(after);
    const mfa_token = await calls.mfaToken(PERSON);
    return calls.verify('otp', { mfa_token, otp: codeOf(secret) });
  };
  /** Removes the value in the store that identifies the key, as a repair does if the record is damaged. */
  const forgetCheck = async () => {
    const store = await openStoreOf({ dataDir, clock: Date.now });
    await store.collection('keyChecks').delete('secrets');
    await store.close();
  };

  /** Runs `gatehouse apply` with the tenant of the tests. */
  const applyAgain = async () => {
    const store = await openStoreOf({ dataDir, clock: Date.now });
    const nobody = { findInConnection: async () => undefined, create: async () => ({}) };
    await applyTenant(
      { store, users: nobody, random: systemRandom, managementAudience: 'https://localhost/api/v2/' },
      readTenant(tenant).tenant,
      {
        mode: 'match',
        users: false,
      },
    );
    await store.close();
  };

  it('is created at the first start, readable by its owner only', async () => {
    await start();
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(Buffer.from(await readFile(file, 'utf8'), 'base64url')).to.have.length(32);
  });

  it('decrypts after a restart what it encrypted', async () => {
    expect((await logIn(await enrolled())).status).to.equal(200);
  });

  for (const [what, spoil, says] of [
    ['missing', (path: string) => rm(path), 'is missing'],
    ['empty', (path: string) => writeFile(path, ''), 'holds no key of 32 bytes'],
    ['cut off', (path: string) => writeFile(path, 'c2hvcnQ'), 'holds no key of 32 bytes'],
    [
      "another server's",
      (path: string) => writeFile(path, Buffer.alloc(32, 7).toString('base64url')),
      'is another key',
    ],
  ] as const) {
    for (const check of ['has', 'has lost'] as const) {
      it(`prevents the start when it is ${what}, in a store that ${check} its check value, and allows it when it is restored`, async () => {
        const secret = await enrolled();
        if (check === 'has lost') await forgetCheck();
        await rename(file, `${file}.kept`);
        await writeFile(file, await readFile(`${file}.kept`));
        await spoil(file);
        expect(await refusal())
          .to.contain(file)
          .and.contain(says)
          .and.contain('backup');
        await rename(`${file}.kept`, file);
        expect((await logIn(secret)).status).to.equal(200);
      });
    }
  }

  it('is not replaced after it was lost', async () => {
    await enrolled();
    await rm(file);
    for (let i = 0; i < 2; i++) expect(await refusal()).to.contain(file);
    expect(await stat(file).catch(() => undefined)).to.equal(undefined);
  });

  it('is created at the next start when it could not be created before', async () => {
    // A file in place of the directory, so that nothing can be written there, as with a full disk.
    await writeFile(join(dataDir, 'keys'), '');
    expect(await refusal()).to.contain(join(dataDir, 'keys'));
    await rm(join(dataDir, 'keys'));
    const { calls } = await start();
    await calls.enrollOtp(PERSON);
    await stop();
    await start();
  });

  it('is used when only its check is missing, and not when it is half written', async () => {
    await mkdir(join(dataDir, 'keys'));
    await writeFile(`${file}.part`, 'half');
    const secret = await enrolled();
    expect((await logIn(secret)).status).to.equal(200);
    await stop();
    await forgetCheck();
    expect((await logIn(secret, 60_000)).status).to.equal(200);
  });

  itInFiles('is replaced by a command after it was lost, which deletes what it encrypted', async () => {
    const secret = await enrolled();
    await rm(file);
    const reset = () =>
      runCommand({ cwd: dataDir, env: { DATA_DIR: dataDir }, args: ['keys', 'reset-authenticators'] });
    expect(await reset()).to.deep.include({ code: 0, stderr: '' });
    // Applications' secrets are taken from the tenant file again.
    expect(await refusal()).to.contain('client_secret');
    await applyAgain();
    const { calls } = await start();
    const anew = await calls.enrollOtp(PERSON);
    expect(anew.secret).not.to.equal(secret);
    await stop();
    // The command leaves secrets that the key can decrypt unchanged.
    expect((await reset()).stdout).to.contain('removed 0 ');
    expect((await logIn(anew.secret)).status).to.equal(200);
  });
});
