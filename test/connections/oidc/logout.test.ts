// Logout at an OpenID provider: each session here ends the one there that it came from.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { type Agent, createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

describe('logout at an OpenID provider', () => {
  let provider: OpenIdProvider;
  let server: TestServer;

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    provider.document = { end_session_endpoint: `${provider.url}/logout` };
    const options = {
      type: 'back_channel',
      discovery_url: `${provider.url}/.well-known/openid-configuration`,
      client_id: 'gatehouse',
      client_secret: 'upstream-secret-of-thirty-two-bytes!',
    };
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [{ name: 'acme', strategy: 'oidc', enabled_clients: ['web'], options }],
      },
    });
  });
  after(async () => {
    await server.stop();
    await provider.stop();
  });

  /** Somebody of whose login the ID token says so much. */
  const loggedIn = async (claims: object): Promise<Agent> => {
    const agent = createAgent(server);
    provider.claims = { ...claims };
    expect(await logInUpstream(server, {}, agent)).to.have.property('code');
    return agent;
  };
  const hintOf = async (agent: Agent) => {
    const { location } = await agent.get('/v2/logout?federated');
    return decodeJwt(new URL(location).searchParams.get('id_token_hint') ?? '');
  };

  it('says which session, and not that of the last login', async () => {
    const first = await loggedIn({ sid: 'the-first' });
    const second = await loggedIn({ sid: 'the-second' });
    expect(await hintOf(first)).to.include({ sid: 'the-first' });
    expect(await hintOf(second)).to.include({ sid: 'the-second' });
  });

  it('says that of the last login where the ID token is longer than an address may be', async () => {
    const long = await loggedIn({ sid: 'long', groups: 'g'.repeat(8000) });
    await loggedIn({ sid: 'short' });
    expect(await hintOf(long)).to.include({ sid: 'short' });
  });

  it('says that of the last login where the key is gone that a session is sealed with', async () => {
    const before = await loggedIn({ sid: 'before' });
    await server.store.collection('sharedSecrets').delete('provider-sessions');
    await loggedIn({ sid: 'after' });
    expect(await hintOf(before)).to.include({ sid: 'after' });
  });

  it('keeps the ID token where nobody reads it', async () => {
    await loggedIn({ sid: 'unread' });
    const seen: string[] = [];
    for (const name of ['artifacts', 'challenges'] as const) {
      const { records } = await server.store.collection(name).list({ limit: 1000 });
      seen.push(JSON.stringify(records));
    }
    const { upstream } = (await server.store.collection('identities').get('acme|acme|grace')) ?? {};
    expect(upstream?.id_token).to.be.a('string');
    for (const text of seen) expect(text).not.to.include(upstream?.id_token);
  });
});
