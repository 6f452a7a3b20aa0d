// Custom claims that the tenant declares for assertions.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { SP_ISSUER, samlClient, serviceProvider, signOn, startSamlServer } from './support.ts';

const to = ['saml'];

/** The NameID is the user id, so that the address need not be verified. */
const BY_ID = {
  mappings: { user_id: 'id' },
  nameIdentifierProbes: ['id'],
  nameIdentifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
};

/** Returns the attributes that a service provider gets. */
async function attributes(server: TestServer): Promise<Record<string, unknown>> {
  const sp = await serviceProvider(server, 'plain', {
    issuer: SP_ISSUER,
    identifierFormat: BY_ID.nameIdentifierFormat,
  });
  const { profile } = await signOn(createAgent(server), server, sp);
  return profile.attributes as Record<string, unknown>;
}

describe('custom claims in assertions', () => {
  let server: TestServer;
  const start = async (customClaims: object[], user: object) => {
    server = await startSamlServer([samlClient('plain', BY_ID)], {
      customClaims,
      users: [{ ...USER, ...user }],
    });
  };
  afterEach(() => server.stop());

  it('are attributes with the declared name, if they are declared for SAML', async () => {
    await start(
      [
        { claim: 'urn:example:roles', value: 'user.app_metadata.roles', to },
        { claim: 'urn:example:token', value: 'user.app_metadata.roles', to: ['id_token'] },
        { claim: 'urn:example:others', value: 'user.app_metadata.roles', to, clients: ['another'] },
      ],
      { email_verified: true, app_metadata: { roles: ['keeper', 'captain'] } },
    );
    const released = await attributes(server);
    expect(released['urn:example:roles']).to.deep.equal(['keeper', 'captain']);
    expect(released).to.not.have.any.keys('urn:example:token', 'urn:example:others');
  });

  it('contain no unverified address, by any path', async () => {
    await start(
      [
        { claim: 'urn:example:mail', value: 'user.email', to },
        { claim: 'urn:example:chosen', value: 'user.user_metadata.mail', to },
      ],
      { email_verified: false, user_metadata: { mail: 'root@example.test' } },
    );
    expect(await attributes(server)).to.not.have.any.keys('urn:example:mail', 'urn:example:chosen');
  });
});
