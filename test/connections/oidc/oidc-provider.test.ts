// The library oidc-provider as the OpenID provider, with every method of client authentication.
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

const SECRET = 'a-secret-that-signs-of-32-characters';

describe('oidc-provider as the OpenID provider', () => {
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
        connection('front', { type: 'front_channel' }),
        connection('hmac', {
          type: 'front_channel',
          client_secret: SECRET,
          id_token_signed_response_algs: ['HS256'],
        }),
        connection('hmac-back', { client_secret: SECRET, id_token_signed_response_algs: ['HS256', 'RS256'] }),
        // The provider signs with the client secret, which the connection does not allow.
        connection('hmac-unnamed', { type: 'front_channel', client_secret: SECRET }),
        connection('hmac-expected', { type: 'front_channel', id_token_signed_response_algs: ['HS256'] }),
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
    const posting = (name: string, alg: 'RS256' | 'HS256') =>
      client(name, {
        client_secret: alg === 'HS256' ? SECRET : `${name}-secret`,
        id_token_signed_response_alg: alg,
        grant_types: ['implicit'],
        response_types: ['id_token'],
        // oidc-provider requires https here for clients without a code; the real URL is allowed below.
        redirect_uris: ['https://gatehouse.example.test/login/callback'],
        post_logout_redirect_uris: [],
      });
    const provider = new Provider(issuer, {
      clients: [
        client('post', { token_endpoint_auth_method: 'client_secret_post' }),
        client('basic', { token_endpoint_auth_method: 'client_secret_basic' }),
        client('key', byKey('key')),
        client('key-issuer', byKey('key-issuer')),
        client('hmac-back', {
          client_secret: SECRET,
          token_endpoint_auth_method: 'client_secret_post',
          id_token_signed_response_alg: 'HS256',
        }),
        posting('front', 'RS256'),
        posting('hmac', 'HS256'),
        posting('hmac-unnamed', 'HS256'),
        posting('hmac-expected', 'RS256'),
      ],
      responseTypes: ['code', 'id_token'],
      enabledJWA: { idTokenSigningAlgValues: ['RS256', 'HS256'] },
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
    provider.Client.prototype.redirectUriAllowed = (uri) => uri === `${server.url}/login/callback`;
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

  /** Creates a connection's key. @returns its public part, for the provider. */
  const keyOf = async (name: string): Promise<JWK> => {
    const { connections } = (await (
      await callApi(server, 'GET', `/connections?name=${name}&take=1`)
    ).json()) as { connections: { id: string }[] };
    const keys = (await (
      await callApi(server, 'POST', `/connections/${connections[0]?.id}/keys`, {})
    ).json()) as { kid: string; cert: string; algorithm: string }[];
    const { kid = '', cert = '', algorithm = '' } = keys[0] ?? {};
    return { ...(new X509Certificate(cert).publicKey.export({ format: 'jwk' }) as JWK), kid, alg: algorithm };
  };

  /** Follows the provider's redirects. @returns its last response. */
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
    it(`logs its users in with a code: ${name}`, async () => {
      const agent = createAgent(server);
      const away = await authorize(agent, webRequest({ connection: name }));
      const { at } = await through(away.location);
      expect(new URL(at).searchParams.get('iss')).to.equal(issuer);
      const outcome = responseOf(await follow(agent, await agent.get(at), server.url));
      expect(outcome, JSON.stringify(outcome)).to.have.property('code');
      const user = await server.store.collection('users').get(`oidc|${name}|grace`);
      expect(user).to.include({ email: 'grace@upstream.test', email_verified: true, name: 'Grace' });
    });
  }

  /** Runs a login whose ID token is posted by the provider's page. @returns the response to the application. */
  const logInByForm = async (name: string) => {
    const agent = createAgent(server);
    const away = await authorize(agent, webRequest({ connection: name }));
    const requestParameters = new URL(away.location).searchParams;
    expect(requestParameters.get('response_type')).to.equal('id_token');
    expect(requestParameters.get('response_mode')).to.equal('form_post');
    const { page } = await through(away.location);
    expect(page).to.contain(`action="${server.url}/login/callback"`);
    const form = Object.fromEntries(
      [...page.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, field = '', value = '']) => [field, value]),
    );
    expect(form).to.include.keys('id_token', 'state');
    return responseOf(await follow(agent, await agent.request('/login/callback', { form }), server.url));
  };

  for (const [name, what] of [
    ['front', 'signed by its key'],
    ['hmac', 'signed by the client secret, if the connection allows it'],
  ]) {
    it(`logs its users in with a posted ID token ${what}`, async () => {
      expect(await logInByForm(name ?? '')).to.have.property('code');
      const user = await server.store.collection('users').get(`oidc|${name}|grace`);
      expect(user).to.include({ email: 'grace@upstream.test', email_verified: true });
    });
  }

  it('logs its users in with a code whose ID token is signed by the client secret, if the connection allows it', async () => {
    const agent = createAgent(server);
    const away = await authorize(agent, webRequest({ connection: 'hmac-back' }));
    const { at } = await through(away.location);
    expect(responseOf(await follow(agent, await agent.get(at), server.url))).to.have.property('code');
  });

  for (const name of ['hmac-unnamed', 'hmac-expected']) {
    it(`rejects an ID token signed with an algorithm that the connection does not allow: ${name}`, async () => {
      const outcome = await logInByForm(name);
      expect(outcome).to.include({ error: 'access_denied' });
      expect(outcome.error_description).to.contain('algorithm');
    });
  }
});
