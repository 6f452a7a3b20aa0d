// Expired access tokens of OpenID providers are renewed when they are read, for every strategy.
import { expect } from 'chai';
import { decodeProtectedHeader, exportPKCS8, generateKeyPair } from 'jose';
import { callApi, startManaged } from '../../management/support.ts';
import { tenant } from '../../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import type { TestServer } from '../../support/server.ts';
import { logInUpstream } from '../../support/upstream-login.ts';

/** The options of each strategy, and the additional claims of its ID tokens. */
const STRATEGIES: Record<string, { options?: object; claims?: object }> = {
  oidc: { options: { type: 'back_channel', id_token_session_expiry_supported: true } },
  okta: { options: { domain: 'acme.okta.example.test', token_endpoint_auth_method: 'client_secret_basic' } },
  waad: { options: { tenantId: 'acme' } },
  adfs: { options: { adfs_server: 'sts.example.test' } },
  'google-apps': {
    options: { domain: 'acme.example.test', map_user_id_to_id: true },
    claims: { hd: 'acme.example.test' },
  },
  'google-oauth2': { options: { offline_access: true } },
  apple: { options: { client_secret: '', team_id: 'TEAM', kid: 'KEY' } },
};
const LATER = 3_601_000;

describe('the access tokens of an OpenID provider', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const app_secret = await exportPKCS8(privateKey);
    server = await startManaged({
      ...tenant,
      connections: Object.entries(STRATEGIES).map(([strategy, { options }]) => ({
        name: strategy,
        strategy,
        enabled_clients: ['web'],
        options: {
          client_id: 'gatehouse',
          client_secret: 'upstream-secret',
          discovery_url: `${provider.url}/.well-known/openid-configuration`,
          ...options,
          ...(strategy === 'apple' && { app_secret }),
        },
      })),
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  /** Logs a user in. @returns the user's id. */
  const login = async (strategy: string): Promise<string> => {
    // The test provider uses the real time in ID tokens, and the server's clock is ahead of it.
    const exp = Math.floor(Date.now() / 1000) + 7 * 86_400;
    const sub = `grace-${strategy}`;
    Object.assign(provider, { claims: { sub, exp, ...STRATEGIES[strategy]?.claims }, userInfo: { sub } });
    provider.answer = { refresh_token: `refresh-${strategy}` };
    expect(await logInUpstream(server, { connection: strategy })).to.have.property('code');
    provider.seen.length = 0;
    const [identity] = (await server.store.collection('identities').list({ limit: 100 })).records.filter(
      ({ upstream_id }) => upstream_id.endsWith(sub),
    );
    return identity?.user_id ?? '';
  };
  const identityOf = async (id: string) => {
    const answer = await callApi(server, 'GET', `/users/${encodeURIComponent(id)}`);
    const { identities } = (await answer.json()) as { identities: Record<string, string>[] };
    return identities[0] ?? {};
  };
  const renewals = () => provider.seen.filter(({ form }) => form.grant_type === 'refresh_token');

  for (const strategy of Object.keys(STRATEGIES)) {
    it(`are renewed once when they have expired: ${strategy}`, async () => {
      const id = await login(strategy);
      const before = await identityOf(id);
      expect(before.access_token).to.match(/^access-/);
      expect(renewals()).to.have.length(0);
      server.tick(LATER);
      const [after] = await Promise.all([identityOf(id), identityOf(id), identityOf(id)]);
      expect(after?.access_token).to.match(/^renewed-/);
      expect(after?.refresh_token).to.equal(`refresh-${strategy}`);
      expect(renewals()).to.have.length(1);
      const { form, headers } = renewals()[0] ?? {};
      expect(form).to.include({ refresh_token: `refresh-${strategy}` });
      if (strategy === 'okta') expect(headers?.authorization).to.match(/^Basic /);
      else expect(form).to.include({ client_id: 'gatehouse' });
      if (strategy === 'apple') expect(decodeProtectedHeader(form?.client_secret ?? '').kid).to.equal('KEY');
    });
  }

  it('are renewed with the rotated refresh token', async () => {
    const id = await login('oidc');
    server.tick(LATER);
    provider.answer = { refresh_token: 'refresh-rotated', id_token: undefined };
    expect((await identityOf(id)).refresh_token).to.equal('refresh-rotated');
    server.tick(LATER);
    await identityOf(id);
    expect(renewals().map(({ form }) => form.refresh_token)).to.deep.equal([
      'refresh-oidc',
      'refresh-rotated',
    ]);
  });

  it('are renewed after the session at the provider has ended', async () => {
    const id = await login('oidc');
    server.tick(LATER);
    provider.claims = { ...provider.claims, session_expiry: 1 };
    expect((await identityOf(id)).access_token).to.match(/^renewed-/);
  });

  it('are not returned once they have expired if the connection has changed to DPoP', async () => {
    const id = await login('oidc');
    const connections = server.store.collection('connections');
    const [connection] = await connections.findBy('name', 'oidc');
    const change = (options: object) =>
      connections.update(connection?.id ?? '', (current) => ({ ...current, options }) as never);
    await change({ ...connection?.options, dpop_signing_alg: 'ES256' });
    try {
      server.tick(LATER);
      provider.answer = { token_type: 'DPoP', refresh_token: 'refresh-bound' };
      const { access_token, refresh_token } = await identityOf(id);
      expect([access_token, refresh_token]).to.deep.equal([undefined, 'refresh-bound']);
    } finally {
      await change({ ...connection?.options });
    }
  });

  const hostile: [string, (exp: number) => Record<string, unknown>][] = [
    ['of another user', (exp) => ({ exp, sub: 'mallory' })],
    ['for another client', (exp) => ({ exp, aud: 'someone-else' })],
    ['of another issuer', (exp) => ({ exp, iss: 'https://evil.example.test' })],
    ['for another access token', (exp) => ({ exp, at_hash: Buffer.alloc(16).toString('base64url') })],
    ['that has expired', () => ({ exp: 1 })],
  ];
  for (const [what, claims] of hostile) {
    it(`are not renewed if the response has an ID token ${what}`, async () => {
      const id = await login('oidc');
      const before = await identityOf(id);
      server.tick(LATER);
      provider.claims = { ...provider.claims, ...claims(Number(provider.claims.exp)) };
      expect(await identityOf(id)).to.deep.equal(before);
      expect(renewals()).to.have.length(1);
      expect(server.logged()).to.contain("a provider's access token was not renewed");
      expect(server.logged()).not.to.match(/renewed-\d/);
    });
  }
});
