// Hostile providers, and providers with hostile users: ids that look like another user's, manipulated metadata, and
// connections that a request names.
import { expect } from 'chai';
import type { JWK } from 'jose';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../support/flows.ts';
import { json } from '../support/oauth2-provider.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { failedLogins, fromProvider, logInUpstream, toProvider } from '../support/upstream-login.ts';

describe('a hostile provider', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  let documents = 0;

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const connection = (name: string, options: object = {}, enabled_clients = ['web', 'members']) => ({
      name,
      strategy: 'oidc',
      enabled_clients,
      options: {
        type: 'back_channel',
        issuer: provider.url,
        discovery_url: `${provider.url}/${name}/.well-known/openid-configuration`,
        client_id: 'gatehouse',
        client_secret: 'upstream-secret',
        ...options,
      },
    });
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          {
            client_id: 'members',
            name: 'For members',
            app_type: 'regular_web',
            organization_usage: 'allow',
            client_secret: 'their-secret',
            callbacks: ['http://localhost:3001/callback'],
            grant_types: ['authorization_code'],
          },
        ],
        organizations: [
          { id: 'org_a', name: 'a', connections: [{ name: 'acme', assign_membership_on_login: true }] },
          { id: 'org_b', name: 'b', connections: [{ name: 'twin', assign_membership_on_login: true }] },
        ],
        connections: [
          connection('acme'),
          connection('twin'),
          connection('stranger', { client_id: 'another' }),
          ...Array.from({ length: 8 }, (_, i) => connection(`document-${i}`)),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    Object.assign(provider, { document: {}, claims: {}, userInfo: {}, answer: {}, instead: {} });
  });

  const told = (connection: string, claims: Record<string, unknown> = {}, more = {}) => {
    provider.claims = claims;
    provider.userInfo = { sub: claims.sub ?? 'grace' };
    return logInUpstream(server, { connection, ...more });
  };
  /** Makes a connection whose metadata was not read yet. */
  const fresh = () => `document-${documents++}`;

  describe('in the ids of its users', () => {
    const alike: [string, string, string][] = [
      ['case', 'Grace', 'grace'],
      ['compatibility', '\uff47race', 'grace'],
      ['normalization', 'Gr\u00e5ce', 'Gra\u030ace'],
      ['invisible characters', 'grace\u200b', 'grace'],
      ['spaces', 'grace ', 'grace'],
      ['bars', 'grace|x', 'grace'],
      ['another alphabet', 'gr\u0430ce', 'grace'],
      ['the name of a connection', 'twin|grace', 'grace'],
    ];
    for (const [what, one, other] of alike) {
      it(`has two users for ids that differ by ${what}`, async () => {
        expect(await told('acme', { sub: one })).to.have.property('code');
        expect(await told('acme', { sub: other })).to.have.property('code');
        const ids = await Promise.all(
          [one, other].map(async (sub) => (await server.users.get(`oidc|acme|${sub}`))?.id),
        );
        expect(ids).to.deep.equal([`oidc|acme|${one}`, `oidc|acme|${other}`]);
      });
    }

    it('has no user for half of a surrogate pair, since all of these are stored alike', async () => {
      for (const sub of ['grace\ud800', 'grace\udfff'])
        expect(await told('acme', { sub })).to.include({ error: 'access_denied' });
    });

    it('may send a profile with text that should not exist', async () => {
      const claims = {
        sub: 'odd',
        name: 'Gr\ud800ace',
        city: 'Gr\u0000az',
        'a\ud800b': 'c',
        team: ['\udfff'],
      };
      expect(await told('acme', claims)).to.have.property('code');
      expect((await server.users.identitiesOf('oidc|acme|odd'))[0]?.attributes).to.include({
        city: 'Gr\u0000az',
      });
    });
  });

  describe('with two connections', () => {
    it('logs nobody in at one with what was issued for the other', async () => {
      const [first, second] = [await toProvider(server), await toProvider(server, { connection: 'twin' })];
      const code = new URL(second.back).searchParams.get('code') ?? '';
      const mixed = new URL(first.back);
      mixed.searchParams.set('code', code);
      const answer = await fromProvider(server, { ...first, back: mixed.href });
      expect(responseOf(answer)).to.include({ error: 'invalid_request' });
    });

    it('has no ID token accepted that is for the client of the other', async () => {
      expect(await told('stranger')).to.include({ error: 'access_denied' });
      expect(await told('stranger', { aud: ['gatehouse', 'another'] })).to.include({
        error: 'access_denied',
      });
      expect(await told('stranger', { aud: 'another' })).to.have.property('code');
    });
  });

  describe('in its keys', () => {
    /** Keys at an address of their own, because those of the provider are cached. */
    const publish = (keys: JWK[]) => {
      const path = `/keys-${documents}`;
      provider.document = { jwks_uri: `${provider.url}${path}` };
      provider.instead[path] = (response) => json(response, { keys });
    };
    afterEach(() => {
      provider.signer = undefined;
    });

    it('has no token verified by a secret that it publishes', async () => {
      const secret = Buffer.from('a secret that everybody can read'.repeat(2));
      const jwk = { kty: 'oct', kid: 'k2', alg: 'HS256', k: secret.toString('base64url') };
      publish([...provider.keys.map((one) => one.jwk), jwk]);
      expect(await told(`document-${documents}`)).to.have.property('code');
      provider.signer = { kid: 'k2', alg: 'HS256', privateKey: secret, jwk };
      expect((await told(fresh())).error_description).to.contain('algorithm');
    });

    it('has no token verified by two keys with the same id', async () => {
      const [one, other] = [await signingKey('k3'), await signingKey('k3')];
      publish([one.jwk, other.jwk]);
      provider.signer = one;
      expect(await told(fresh())).to.include({ error: 'access_denied' });
    });
  });

  describe('in its metadata', () => {
    const INSIDE = 'http://169.254.169.254/latest/meta-data';

    for (const name of ['token_endpoint', 'jwks_uri', 'userinfo_endpoint']) {
      it(`cannot cause requests to internal addresses by its ${name}`, async () => {
        provider.document = { [name]: INSIDE };
        const answer = await told(fresh());
        expect(answer).to.include({ error: 'invalid_request' });
        expect(answer.error_description).to.match(/may not be called|that can be used/);
      });
    }

    it('cannot redirect a browser to an invalid address at the end of a session', async () => {
      for (const end_session_endpoint of ['javascript:alert(1)', 'no address', 7]) {
        provider.document = { end_session_endpoint };
        const agent = createAgent(server);
        provider.claims = {};
        provider.userInfo = { sub: 'grace' };
        expect(await logInUpstream(server, { connection: fresh() }, agent)).to.have.property('code');
        const { status, location } = await agent.get('/v2/logout?federated');
        // The page of a session that has ended here.
        expect([status, location]).to.deep.equal([200, '']);
      }
    });
  });

  describe('with a connection of another organization', () => {
    const ask = async (connection: string, organization: string) => {
      const agent = createAgent(server);
      const request = webRequest({
        client_id: 'members',
        redirect_uri: 'http://localhost:3001/callback',
        connection,
        organization,
      });
      return follow(agent, await authorize(agent, request), server.url);
    };

    it('is not asked for a user of that organization', async () => {
      const asked = provider.seen.length;
      const answer = await ask('twin', 'org_a');
      expect(responseOf(answer).error, answer.text).to.be.a('string');
      expect(responseOf(answer)).to.not.have.property('code');
      expect(provider.seen).to.have.length(asked);
    });

    it('makes nobody a member who uses it for the application alone', async () => {
      const asked = { client_id: 'members', redirect_uri: 'http://localhost:3001/callback' };
      const answer = await told('twin', { sub: 'outsider' }, asked);
      expect(answer, answer.error_description).to.have.property('code');
      const members = await server.store.collection('memberships').list({ limit: 100 });
      expect(JSON.stringify(members.records)).to.not.contain('oidc|twin|outsider');
    });
  });

  it('is logged with what was wrong, and nothing that it sent', async () => {
    expect((await failedLogins(server)).join('\n')).to.not.contain('access-code-');
  });
});
