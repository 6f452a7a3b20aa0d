// The tokens of upstream providers are stored sealed, and returned only with the scope that allows it.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { json, type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { keptBy } from '../../support/store.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

const ID = 'oauth2|acme|42';
const SCOPES = ['read:users', 'read:user_idp_tokens'];

describe('the tokens of an upstream provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    const acme = {
      name: 'acme',
      strategy: 'oauth2',
      enabled_clients: ['web'],
      options: optionsFor(provider, { customHeaders: { 'X-Api-Key': 'custom-header-secret' } }),
    };
    const clients = SCOPES.map((_scope, index) => ({
      client_id: `reader-${index}`,
      name: `Reader ${index}`,
      app_type: 'non_interactive',
      client_secret: 'reader-secret',
      grant_types: ['client_credentials'],
    }));
    server = await startServer({
      tenant: { ...tenant, clients: [...tenant.clients, ...clients], connections: [acme] },
    });
    for (const [index] of SCOPES.entries()) {
      await server.store.collection('clientGrants').insert({
        id: `cgr_reader${index}`,
        client_id: `reader-${index}`,
        audience: `${server.issuer}api/v2/`,
        scope: SCOPES.slice(0, index + 1),
      } as never);
    }
    await logInUpstream(server);
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  /** Returns the user's first identity, as read by an application. @param index the number of its scopes, minus one. */
  const identityFor = async (index: number, path = `/api/v2/users/${encodeURIComponent(ID)}`) => {
    const agent = createAgent(server);
    const token = await agent.request('/oauth/token', {
      json: {
        grant_type: 'client_credentials',
        client_id: `reader-${index}`,
        client_secret: 'reader-secret',
        audience: `${server.issuer}api/v2/`,
      },
    });
    const answer = await agent.get(path, { authorization: `Bearer ${token.json().access_token}` });
    expect(answer.status).to.equal(200);
    const body = answer.json();
    return [body].flat().find(({ user_id }) => user_id === ID)?.identities[0];
  };

  it('are returned to a client with read:user_idp_tokens', async () => {
    const identity = await identityFor(1);
    expect(identity).to.include({
      connection: 'acme',
      provider: 'oauth2',
      user_id: 'acme|42',
      isSocial: true,
    });
    expect(identity.access_token).to.match(/^token-/);
    expect(identity.refresh_token).to.match(/^refresh-/);
  });

  it('are not returned without that scope, nor in lists', async () => {
    for (const identity of [
      await identityFor(0),
      await identityFor(1, '/api/v2/users'),
      await identityFor(1, '/api/v2/users-by-email?email=grace%40upstream.test'),
    ]) {
      expect(identity).to.include({ connection: 'acme' });
      expect(identity).not.to.have.any.keys('access_token', 'refresh_token', 'id_token', 'upstream');
    }
  });

  it('keep the refresh token of an earlier login if a later one has none', async () => {
    const before = await identityFor(1);
    provider.tokenAnswer = { refresh_token: undefined };
    await logInUpstream(server);
    const after = await identityFor(1);
    expect(after.access_token).not.to.equal(before.access_token);
    expect(after.refresh_token).to.equal(before.refresh_token);
  });

  it('are not stored unencrypted, nor is the secret of the connection', async () => {
    const { access_token } = await identityFor(1);
    const texts = await keptBy(server);
    const isSomewhere = (text: string) => texts.some((one) => one.includes(text));
    expect(isSomewhere('acme|42')).to.equal(true);
    expect(isSomewhere(provider.url)).to.equal(true);
    expect(isSomewhere(access_token)).to.equal(false);
    expect(isSomewhere('upstream-secret')).to.equal(false);
    expect(isSomewhere('custom-header-secret')).to.equal(false);
  });

  describe('that have expired', () => {
    const refreshes = () =>
      provider.seen.filter(({ path, form }) => path === '/token' && form.grant_type === 'refresh_token');
    beforeEach(async () => {
      provider.tokenAnswer = {};
      await logInUpstream(server);
      provider.seen.length = 0;
    });
    afterEach(() => {
      provider.token = undefined;
    });

    it('are renewed at the provider when they are read, once for several readers', async () => {
      const before = await identityFor(1);
      server.tick(3_601_000);
      const all = await Promise.all(Array.from({ length: 10 }, () => identityFor(1)));
      expect(refreshes()).to.have.length(1);
      expect(refreshes()[0]?.form).to.include({
        refresh_token: before.refresh_token,
        client_id: 'gatehouse',
      });
      for (const one of all) {
        expect(one.access_token).to.match(/^renewed-/);
        expect(one.refresh_token).to.match(/^refresh-again-/);
      }
      server.tick(3_601_000);
      expect((await identityFor(1)).access_token).not.to.equal(all[0]?.access_token);
    });

    it('are not renewed before they expire, nor for a client that may not read them', async () => {
      await identityFor(1);
      server.tick(3_601_000);
      await identityFor(0);
      await identityFor(1, '/api/v2/users');
      expect(refreshes()).to.deep.equal([]);
    });

    it('are returned unchanged when the provider does not renew them', async () => {
      const before = await identityFor(1);
      server.tick(3_601_000);
      provider.token = (response) => json(response, { error: 'invalid_grant' }, 400);
      expect(await identityFor(1)).to.deep.equal(before);
      provider.token = (response) => void response.destroy();
      expect(await identityFor(1)).to.deep.equal(before);
      provider.token = undefined;
      expect((await identityFor(1)).access_token).to.match(/^renewed-/);
    });

    it('are replaced by those of a login that ends during the renewal', async () => {
      server.tick(3_601_000);
      let answer = () => {};
      const asked = new Promise<void>((isAsked) => {
        provider.token = (response) => {
          answer = () => json(response, { access_token: 'overtaken', expires_in: 3600 });
          isAsked();
        };
      });
      const reading = identityFor(1);
      await asked;
      provider.token = undefined;
      await logInUpstream(server);
      answer();
      expect((await reading).access_token).to.match(/^token-/);
    });
  });
});
