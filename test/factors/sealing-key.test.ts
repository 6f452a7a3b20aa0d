// The key that the secrets in the store are sealed with: a server does not start without the right one.
import { mkdtempSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemRandom } from '../../src/runtime/random.ts';
import { applyTenant } from '../../src/tenant/apply.ts';
import { readTenant } from '../../src/tenant/load.ts';
import { runCommand } from '../support/command.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { itInFiles, openStoreOf } from '../support/store.ts';
import { fillDataDir } from '../support/template.ts';
import { callsOf, codeOf, tenant } from './tenant.ts';

const PERSON = 'mfa-1@example.test';

describe('the key of the store', () => {
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
  /** What a start says that is refused. */
  const refusal = async (): Promise<string> => {
    try {
      await start();
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : String(thrown);
    }
    throw new Error('it started');
  };
  /** A directory whose server has enrolled somebody. @returns the secret of their app. */
  const enrolled = async (): Promise<string> => {
    await fillDataDir(dataDir, true);
    const { calls } = await start();
    const { secret } = await calls.enrollOtp(PERSON);
    await stop();
    return secret;
  };
  const logIn = async (secret: string, after = 30_000) => {
    const { server: running, calls } = await start();
    // The code of a later step: the one that confirmed is used up.
    running.tick(after);
    const mfa_token = await calls.mfaToken(PERSON);
    return calls.verify('otp', { mfa_token, otp: codeOf(secret) });
  };
  /** As releases before had it: no value in the store that tells the key. */
  const forgetCheck = async () => {
    const store = await openStoreOf({ dataDir, clock: Date.now });
    await store.collection('keyChecks').delete('secrets');
    await store.close();
  };

  /** `gatehouse apply`, of the tenant that the tests serve. */
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

  it('is made at the first start, for its owner alone', async () => {
    await start();
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(Buffer.from(await readFile(file, 'utf8'), 'base64url')).to.have.length(32);
  });

  it('opens what it sealed after a restart', async () => {
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
    for (const release of ['this release', 'one before']) {
      it(`stops the start when it is ${what}, in a store of ${release}, and starts when it is back`, async () => {
        const secret = await enrolled();
        if (release === 'one before') await forgetCheck();
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

  it('that was lost is not replaced, whatever is done at the server', async () => {
    await enrolled();
    await rm(file);
    for (let i = 0; i < 2; i++) expect(await refusal()).to.contain(file);
    expect(await stat(file).catch(() => undefined)).to.equal(undefined);
  });

  it('that could not be made is made at the next start', async () => {
    // A file where the directory would be: as with a full disk, nothing can be written below.
    await writeFile(join(dataDir, 'keys'), '');
    expect(await refusal()).to.contain(join(dataDir, 'keys'));
    await rm(join(dataDir, 'keys'));
    const { calls } = await start();
    await calls.enrollOtp(PERSON);
    await stop();
    await start();
  });

  it('that was written and no further is taken, and one half written is none', async () => {
    await mkdir(join(dataDir, 'keys'));
    await writeFile(`${file}.part`, 'half');
    const secret = await enrolled();
    expect((await logIn(secret)).status).to.equal(200);
    await stop();
    await forgetCheck();
    expect((await logIn(secret, 60_000)).status).to.equal(200);
  });

  itInFiles('that is lost for good is given up by a command, and with it what it sealed', async () => {
    const secret = await enrolled();
    await rm(file);
    const reset = () =>
      runCommand({ cwd: dataDir, env: { DATA_DIR: dataDir }, args: ['keys', 'reset-authenticators'] });
    expect(await reset()).to.deep.include({ code: 0, stderr: '' });
    // Applications' secrets come from the tenant file again.
    expect(await refusal()).to.contain('client_secret');
    await applyAgain();
    const { calls } = await start();
    const anew = await calls.enrollOtp(PERSON);
    expect(anew.secret).not.to.equal(secret);
    await stop();
    // What the key opens stays: the command takes nothing from a server that has its key.
    expect((await reset()).stdout).to.contain('removed 0 ');
    expect((await logIn(anew.secret)).status).to.equal(200);
  });
});
