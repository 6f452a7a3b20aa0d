// Concurrent additions and changes through the functions that every request uses: none is lost.
import { expect } from 'chai';
import { OIDC_CONSENT_KEY } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { consentId } from '../../src/records/state/engine.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { byCode } from '../support/browser-logins.ts';
import { webRequest } from '../support/flows.ts';
import { seeded, turns } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('concurrent changes', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  for (const seed of [1, 2, 3, 4]) {
    it(`remember ten consents of a user to an application (seed ${seed})`, async () => {
      const random = seeded(seed);
      const user = `auth0|${seed}`;
      const scopes = Array.from({ length: 10 }, (_, i) => `scope:${i}`);
      await Promise.all(
        scopes.map(async (scope, i) => {
          await turns(Math.floor(random() * 2));
          await rememberConsent(server.store, user, 'third', {
            [i % 2 === 0 ? OIDC_CONSENT_KEY : 'urn:api']: [scope],
          });
        }),
      );
      const kept = await server.store.collection('consents').get(consentId(user, 'third'));
      expect(
        [...(kept?.scopes[OIDC_CONSENT_KEY] ?? []), ...(kept?.scopes['urn:api'] ?? [])].sort(),
      ).to.deep.equal(scopes);
    });
  }

  it('give each new password of a user without one a version of its own', async () => {
    const address = 'first-password@example.test';
    await byCode(createAgent(server), server, webRequest(), { connection: 'email', address });
    const user = await server.users.findInConnection({ name: 'email' }, address);
    const before = await server.users.credentialVersion(user!.id);
    await Promise.all(
      Array.from({ length: 5 }, (_, i) => server.users.setPassword(user!.id, `Word-${i}-of-them`)),
    );
    expect(await server.users.credentialVersion(user!.id)).to.equal(before + 5);
    for (let i = 0; i < 5; i++) {
      expect(await server.users.isUsedBefore(user!.id, `Word-${i}-of-them`, 5)).to.equal(true);
    }
  });
});
