// An instance of oidc-provider as the OpenID provider, by a code and every way to authenticate.
import { X509Certificate } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { JWK } from 'jose';
import Provider from 'oidc-provider';
import { callApi, startManaged } from '../../management/support.ts';
import { createAgent } from '../../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../../support/flows.ts';
import type { TestServer } from '../../support/server.ts';

describe('an instance of oidc-provider', () => {
  const http1 = http.createServer();
  let server: TestServer;
  let issuer = '';

  before(async () => {
    await new Promise<void>((resolve) => http1.listen(0, '127.0.0.1', resolve));
    issuer = `http://127.0.0.1:${(http1.address() as AddressInfo).port}`;
    const connection = (name: string, options: object) => ({
      name,
      strategy: 'oidc',
      enabled_clients: ['web'],
      options: { issuer, client_id: name, client_secret: `${name}-secret`, type: 'back_channel', ...options },
    });
    server = await startManaged({
      ...tenant,
      connections: [
        connection('post', {}),
        connection('basic', { token_endpoint_auth_method: 'client_secret_basic' }),
        connection('key', { token_endpoint_auth_method: 'private_key_jwt', client_secret: '' }),
        connection('key-issuer', {
          token_endpoint_auth_method: 'private_key_jwt',
          token_endpoint_jwtca_aud_format: 'issuer',
          client_secret: '',
        }),
      ],
    });
    const keys = Object.fromEntries(
      await Promise.all(['key', 'key-issuer'].map(async (name) => [name, await keyOf(name)] as const)),
    );
    const client = (client_id: string, more: object) => ({
      client_id,
      client_secret: `${client_id}-secret`,
      redirect_uris: [`${server.url}/login/callback`],
      post_logout_redirect_uris: [`${server.url}/logout/callback`],
      ...more,
    });
    const byKey = (name: string) => ({
      client_secret: undefined,
      token_endpoint_auth_method: 'private_key_jwt' as const,
      jwks: { keys: [keys[name] as JWK] },
    });
    const provider = new Provider(issuer, {
      clients: [
        client('post', { token_endpoint_auth_method: 'client_secret_post' }),
        client('basic', { token_endpoint_auth_method: 'client_secret_basic' }),
        client('key', byKey('key')),
        client('key-issuer', byKey('key-issuer')),
      ],
      pkce: { required: () => true },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: true,
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ['a'] },
      findAccount: async (_ctx, accountId) => ({
        accountId,
        claims: async () => ({
          sub: accountId,
          email: 'grace@upstream.test',
          email_verified: true,
          name: 'Grace',
        }),
      }),
      loadExistingGrant: async (ctx) => {
        const { session, client: asking } = ctx.oidc;
        if (asking === undefined || session?.accountId === undefined) return undefined;
        const grant = new ctx.oidc.provider.Grant({
          clientId: asking.clientId,
          accountId: session.accountId,
        });
        grant.addOIDCScope('openid profile email');
        await grant.save();
        return grant;
      },
    });
    const answer = provider.callback();
    http1.on('request', async (request, response) => {
      if (!request.url?.startsWith('/interaction/')) return answer(request, response);
      await provider.interactionFinished(request, response, { login: { accountId: 'grace' } });
    });
  });
  after(async () => {
    await server?.stop();
    http1.closeAllConnections();
    http1.close();
  });

  /** Makes a connection's key, and what the provider is told of it. */
  const keyOf = async (name: string): Promise<JWK> => {
    const { connections } = (await (
      await callApi(server, 'GET', `/connections?name=${name}&take=1`)
    ).json()) as { connections: { id: string }[] };
    const made = (await (
      await callApi(server, 'POST', `/connections/${connections[0]?.id}/keys`, {})
    ).json()) as { kid: string; cert: string; algorithm: string }[];
    const { kid = '', cert = '', algorithm = '' } = made[0] ?? {};
    return { ...(new X509Certificate(cert).publicKey.export({ format: 'jwk' }) as JWK), kid, alg: algorithm };
  };

  /** Goes through the provider's pages. @returns its last answer. */
  const through = async (address: string) => {
    const jar = new Map<string, string>();
    let at = address;
    for (let step = 0; step < 10; step++) {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
      for (const one of response.headers.getSetCookie()) {
        const [name = '', value = ''] = (one.split(';')[0] ?? '').split(/=(.*)/s);
        jar.set(name, value);
      }
      const next = response.headers.get('location');
      if (next === null) return { at, page: await response.text() };
      at = new URL(next, at).href;
      if (at.startsWith(server.url)) return { at, page: '' };
    }
    throw new Error('the provider redirects for ever');
  };

  for (const name of ['post', 'basic', 'key', 'key-issuer']) {
    it(`logs its users in by a code: ${name}`, async () => {
      const agent = createAgent(server);
      const away = await authorize(agent, webRequest({ connection: name }));
      const { at } = await through(away.location);
      expect(new URL(at).searchParams.get('iss')).to.equal(issuer);
      const told = responseOf(await follow(agent, await agent.get(at), server.url));
      expect(told, JSON.stringify(told)).to.have.property('code');
      const user = await server.store.collection('users').get(`oidc|${name}|grace`);
      expect(user).to.include({ email: 'grace@upstream.test', email_verified: true, name: 'Grace' });
    });
  }
});
