// `resource` (RFC 8707): how clients of the standard, such as those of MCP servers, name the API that a token is for.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  redeem,
  responseOf,
  THIRD_CALLBACK,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

/** APIs whose identifiers are URLs of a server: one without a slash, one with. */
const BARE = 'https://mcp.example.test';
const SLASHED = 'https://tools.example.test/';
const ofTools = (name: string, identifier: string) => ({
  name,
  identifier,
  scopes: [{ value: 'tools:read' }, { value: 'tools:write' }],
  allow_offline_access: true,
});

const ownTenant = {
  ...tenant,
  clients: tenant.clients.map((client) =>
    client.client_id === 'web'
      ? {
          ...client,
          grant_types: [...client.grant_types, 'urn:ietf:params:oauth:grant-type:device_code'],
        }
      : client,
  ),
  resourceServers: [...tenant.resourceServers, ofTools('MCP server', BARE), ofTools('Tools', SLASHED)],
  clientGrants: [...tenant.clientGrants, { client_id: 'm2m', audience: BARE, scope: ['tools:read'] }],
};

describe('a resource indicator', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(ownTenant);
  });
  after(() => server.stop());

  const audienceOf = (jwt: string) => [payload(jwt).aud].flat()[0];
  const codeFor = async (over: Record<string, string | undefined>) =>
    responseOf(await logIn(createAgent(server), server, webRequest(over)));
  const tokensFor = async (over: Record<string, string | undefined>) =>
    (await redeem(createAgent(server), (await codeFor(over)).code)).json();
  const machine = (fields: Record<string, string>) =>
    token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      ...fields,
    });
  const device = (fields: Record<string, string>) =>
    createAgent(server).request('/oauth/device/code', {
      form: { client_id: 'web', client_secret: 'web-secret', ...fields },
    });

  it('means the API with exactly that identifier, but for the slash of an empty path', async () => {
    for (const [resource, audience] of [
      [API, API],
      [BARE, BARE],
      [`${BARE}/`, BARE],
      [SLASHED, SLASHED],
      [SLASHED.slice(0, -1), SLASHED],
    ] as const) {
      const { access_token } = await tokensFor({ resource, scope: 'openid tools:read' });
      expect(audienceOf(access_token), resource).to.equal(audience);
    }
    expect(audienceOf((await machine({ resource: `${BARE}/` })).json().access_token)).to.equal(BARE);
    expect((await device({ resource: `${BARE}/` })).status).to.equal(200);
  });

  it('that is no API is invalid_target, at every endpoint', async () => {
    for (const resource of [
      'https://nowhere.test/',
      BARE.toUpperCase(),
      `${BARE}/mcp`,
      `${BARE}/?`,
      `${BARE}//`,
      `${BARE}:443`,
      `${BARE}#x`,
      'guarded-api/',
      'http://mcp.example.test',
    ]) {
      const answer = await authorize(createAgent(server), webRequest({ resource }));
      expect(responseOf(answer), resource).to.include({ error: 'invalid_target', state: 'the-state' });
      const refused = await machine({ resource });
      expect([refused.status, refused.json().error], resource).to.deep.equal([400, 'invalid_target']);
      expect((await device({ resource })).json(), resource).to.include({ error: 'invalid_target' });
    }
    const pushed = await createAgent(server).request('/oauth/par', {
      form: { ...webRequest({ resource: `${BARE}/mcp` }), client_secret: 'web-secret' },
    });
    expect([pushed.status, pushed.json().error]).to.deep.equal([400, 'invalid_target']);
  });

  it('leaves `audience` to be compared to the letter, and an unknown one access_denied', async () => {
    const answer = await authorize(createAgent(server), webRequest({ audience: `${BARE}/` }));
    expect(responseOf(answer)).to.include({ error: 'access_denied' });
    const refused = await machine({ audience: `${BARE}/` });
    expect([refused.status, refused.json().error]).to.deep.equal([403, 'access_denied']);
  });

  it('is that of the login for a code and its refresh token, with or without the slash', async () => {
    const begin = { resource: `${BARE}/`, scope: 'openid offline_access tools:read' };
    const { code } = await codeFor(begin);
    const exchange = (more: Record<string, string>) =>
      token(createAgent(server), {
        grant_type: 'authorization_code',
        client_id: 'web',
        client_secret: 'web-secret',
        redirect_uri: WEB_CALLBACK,
        ...more,
      });
    const tokens = (await exchange({ code: code ?? '', resource: `${BARE}/` })).json();
    expect(audienceOf(tokens.access_token)).to.equal(BARE);
    const refresh = (resource: string) =>
      token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: 'web',
        client_secret: 'web-secret',
        refresh_token: tokens.refresh_token,
        resource,
      });
    expect(audienceOf((await refresh(`${BARE}/`)).json().access_token)).to.equal(BARE);
    for (const other of [SLASHED, 'https://nowhere.test/'])
      expect((await refresh(other)).json(), other).to.include({ error: 'invalid_target' });
    const { code: second } = await codeFor(begin);
    expect((await exchange({ code: second ?? '', resource: SLASHED })).json()).to.include({
      error: 'invalid_target',
    });
  });

  it('may stand beside an `audience` that names the same API, and no other', async () => {
    const both = { audience: BARE, resource: `${BARE}/`, scope: 'openid' };
    expect(audienceOf((await tokensFor(both)).access_token)).to.equal(BARE);
    const answer = await authorize(createAgent(server), webRequest({ audience: API, resource: BARE }));
    expect(responseOf(answer)).to.include({ error: 'invalid_target' });
  });

  describe('with the tenant’s resource_parameter_profile', () => {
    const set = async (resource_parameter_profile: string | null) => {
      const answer = await managed(server, 'PATCH', '/tenants/settings', { resource_parameter_profile });
      return answer.status;
    };
    after(() => set(null));

    it('`compatibility` chooses the API where there is no `audience`, which counts otherwise', async () => {
      expect(await set('compatibility')).to.equal(200);
      expect(audienceOf((await tokensFor({ resource: BARE, scope: 'openid' })).access_token)).to.equal(BARE);
      const both = { audience: API, resource: BARE, scope: 'openid' };
      expect(audienceOf((await tokensFor(both)).access_token)).to.equal(API);
      const answer = await authorize(createAgent(server), webRequest({ resource: 'https://nowhere.test/' }));
      expect(responseOf(answer)).to.include({ error: 'invalid_target' });
    });

    it('`audience` is ignored', async () => {
      expect(await set('audience')).to.equal(200);
      const { access_token } = await tokensFor({ resource: BARE, scope: 'openid' });
      expect(access_token.split('.'), 'an opaque token for /userinfo').to.have.length(1);
      const both = { audience: API, resource: 'https://nowhere.test/', scope: 'openid' };
      expect(audienceOf((await tokensFor(both)).access_token)).to.equal(API);
      expect((await machine({ resource: BARE })).json()).to.include({ error: 'access_denied' });
    });

    it('of another value is refused', async () => {
      expect(await set('both')).to.equal(400);
    });
  });

  it('asks for wider scopes alone when an application steps up, and keeps what was allowed', async () => {
    const browser = createAgent(server);
    const request = (scope: string, over = {}) => ({
      ...webRequest({ redirect_uri: THIRD_CALLBACK, resource: BARE, scope, ...over }),
      client_id: 'third',
    });
    const allow = async (page: Awaited<ReturnType<typeof follow>>) => {
      const { action, fields } = readForm(page, '_csrf');
      const given = await browser.request(action, { form: { ...fields, decision: 'accept' } });
      return responseOf(await follow(browser, given, server.url));
    };
    const first = await logIn(browser, server, request('tools:read'));
    expect(first.text).to.contain('tools:read').and.not.contain('tools:write');
    expect(await allow(first)).to.have.property('code');
    // What a protected resource names in its 403 `insufficient_scope`, alone or with what the application has.
    const second = await follow(browser, await authorize(browser, request('tools:write')), server.url);
    const [, added = '', allowed = ''] =
      /<section class="added".*?>(.*)<\/section>.*<section class="allowed"(.*)<\/section>/s.exec(
        second.text,
      ) ?? [];
    expect(added).to.contain('tools:write').and.not.contain('tools:read');
    expect(allowed).to.contain('tools:read').and.not.contain('tools:write');
    expect(await allow(second)).to.have.property('code');
    const both = await authorize(browser, request('tools:read tools:write', { prompt: 'none' }));
    const { code } = responseOf(both);
    const answer = await token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id: 'third',
      client_secret: 'third-secret',
      code: code ?? '',
      redirect_uri: THIRD_CALLBACK,
    });
    expect(payload(answer.json().access_token).scope.split(' ')).to.have.members([
      'tools:read',
      'tools:write',
    ]);
  });

  it('is used with metadata at the address of RFC 8414, which are those of OpenID Connect', async () => {
    const read = async (name: string) => (await createAgent(server).get(`/.well-known/${name}`)).json();
    const metadata = await read('oauth-authorization-server');
    expect(metadata).to.deep.equal(await read('openid-configuration'));
    // As clients insert the path of an issuer that ends with a slash.
    expect(metadata).to.deep.equal(await read('oauth-authorization-server/'));
    expect(metadata).to.include({
      issuer: server.issuer,
      authorization_response_iss_parameter_supported: true,
    });
    expect(metadata.code_challenge_methods_supported).to.deep.equal(['S256']);
    expect(metadata.token_endpoint_auth_methods_supported).to.include('none');
  });
});
