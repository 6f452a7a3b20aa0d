// Federated logout at an OpenID provider: each session here ends the provider's session that it came from.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { type Agent, createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

describe('federated logout at an OpenID provider', () => {
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

  /** Logs a user in. @param claims those of the ID token. */
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

  it('sends the ID token of the session’s own login, not of the user’s last one', async () => {
    const first = await loggedIn({ sid: 'the-first' });
    const second = await loggedIn({ sid: 'the-second' });
    expect(await hintOf(first)).to.include({ sid: 'the-first' });
    expect(await hintOf(second)).to.include({ sid: 'the-second' });
  });

  it('sends the ID token of the last login if the session’s own is too long for a URL', async () => {
    const long = await loggedIn({ sid: 'long', groups: 'g'.repeat(8000) });
    await loggedIn({ sid: 'short' });
    expect(await hintOf(long)).to.include({ sid: 'short' });
  });

  it('sends the ID token of the last login if the key that sealed the session’s own is lost', async () => {
    const before = await loggedIn({ sid: 'before' });
    await server.store.collection('sharedSecrets').delete('provider-sessions');
    await loggedIn({ sid: 'after' });
    expect(await hintOf(before)).to.include({ sid: 'after' });
  });

  it('does not store the ID token unencrypted with sessions and challenges', async () => {
    await loggedIn({ sid: 'unread' });
    const hints: string[] = [];
    for (const name of ['artifacts', 'challenges'] as const) {
      const { records } = await server.store.collection(name).list({ limit: 1000 });
      hints.push(JSON.stringify(records));
    }
    const { upstream } = (await server.store.collection('identities').get('acme|acme|grace')) ?? {};
    expect(upstream?.id_token).to.be.a('string');
    for (const text of hints) expect(text).not.to.include(upstream?.id_token);
  });
});
