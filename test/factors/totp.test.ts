// The codes of authenticator apps, with the test vectors of RFC 6238 (appendix B; SHA1, the last six of eight
// digits).
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createAuthenticators, createFactorChanges } from '../../src/features/factors/authenticators.ts';
import { startOtpEnrollment, useOtp } from '../../src/features/factors/otp/otp.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';

const SECRET = '12345678901234567890';

describe('a TOTP authenticator', () => {
  let store: Store;
  let directory: string;
  let now = 59_000;
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-totp-'));
    // The store's clock follows the vectors, too, so that what is begun does not expire between their years.
    store = await openStore({ dataDir: directory, clock: () => now });
  });
  after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  let count = 0;
  const dependencies = async () => {
    // The secret of the vectors when a secret is made; random bytes otherwise.
    const random = (bytes: number) =>
      bytes === SECRET.length ? Buffer.from(SECRET) : Buffer.alloc(bytes, `${++count}`.padStart(bytes, '0'));
    const clock = () => now;
    const factorChanges = createFactorChanges({ store, clock, random });
    const authenticators = createAuthenticators({ store, factorChanges, clock, random });
    return { authenticators, wallClock: clock, random };
  };

  for (const [seconds, code] of [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ] as const) {
    it(`accepts ${code.slice(2)} at ${seconds}`, async () => {
      now = seconds * 1000;
      const deps = await dependencies();
      const { authenticator, secret } = await startOtpEnrollment(deps, {
        userId: 'auth0|totp',
        credentialVersion: 0,
      });
      expect(secret).to.equal('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
      expect(await useOtp(deps, authenticator, code.slice(2))).to.equal(true);
      expect(await useOtp(deps, authenticator, code.slice(2)), 'again').to.equal(false);
    });
  }

  for (const code of ['', '94287082', '9428708', 'abcdef', '２８７０８２', ' 287082', '287082\n']) {
    it(`rejects ${JSON.stringify(code)}`, async () => {
      now = 59_000;
      const deps = await dependencies();
      const { authenticator } = await startOtpEnrollment(deps, {
        userId: 'auth0|totp',
        credentialVersion: 0,
      });
      expect(await useOtp(deps, authenticator, code)).to.equal(false);
    });
  }
});
