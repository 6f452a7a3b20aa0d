// Applications that a document at their client_id describes (OAuth Client ID Metadata Document), as clients of MCP servers are.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/client';
import { expect } from 'chai';
import { exportJWK, SignJWT } from 'jose';
import type { Context } from 'koa';
import { clientDocuments } from '../../src/engine/client/client-documents.ts';
import { AuthError } from '../../src/http/errors.ts';
import { createOutbound, outboundRules } from '../../src/http/outbound/outbound.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { openAccount } from '../account/support.ts';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { type ClientKeyPair, clientKey } from '../support/client-key.ts';
import { authorize, follow, logIn, payload, pkce, responseOf, tenant, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const CALLBACK = 'http://127.0.0.1/callback';
const MINUTE = 60_000;
const UNUSABLE = 'The metadata document at the client_id cannot be used.';

/** What a path answers. */
type Served = (response: http.ServerResponse) => void;

const json =
  (body: unknown, headers: Record<string, string> = {}): Served =>
  (response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

const openTenant = (mcp: string) => ({
  ...tenant,
  tenant: {
    ...tenant.tenant,
    friendly_name: 'Harbour',
    account_page: { client_id: 'web' },
    client_id_metadata_document_supported: true,
    flags: { enable_dynamic_client_registration: true },
  },
  attackProtection: {
    rateLimits: {
      ...tenant.attackProtection.rateLimits,
      clientDocuments: { capacity: 10_000, perMinute: 10_000 },
      clientDocumentHosts: { capacity: 10_000, perMinute: 10_000 },
      registration: { capacity: 10_000, perMinute: 10_000 },
    },
  },
  databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: one.name === 'users' })),
  resourceServers: [
    ...tenant.resourceServers,
    { name: 'Tools', identifier: mcp, scopes: [{ value: 'tools:read' }], allow_offline_access: true },
  ],
  clientGrants: [
    ...tenant.clientGrants,
    { default_for: 'third_party_clients', audience: mcp, subject_type: 'user', scope: ['tools:read'] },
  ],
});

describe('an application that a document describes', () => {
  let server: TestServer;
  /** A host of documents, on loopback, with a certificate that this process trusts. */
  let documents: https.Server;
  let origin: string;
  const served = new Map<string, Served>();
  let asked: string[] = [];
  /** The server of the Model Context Protocol that the tokens are for: only its metadata is asked for. */
  let resource: http.Server;
  let mcp: string;

  before(async () => {
    resource = http.createServer((request, response) => {
      if (!request.url?.startsWith('/.well-known/oauth-protected-resource')) response.writeHead(401).end();
      else
        json({ resource: mcp, authorization_servers: [server.issuer], scopes_supported: ['tools:read'] })(
          response,
        );
    });
    await once(resource.listen(0, '127.0.0.1'), 'listening');
    mcp = `http://127.0.0.1:${(resource.address() as AddressInfo).port}/mcp`;
    server = await startManaged(openTenant(mcp));
    const file = (name: string) => readFileSync(join(server.dataDir, 'tls', name));
    documents = https.createServer({ cert: file('cert.pem'), key: file('key.pem') }, (request, response) => {
      const path = request.url ?? '';
      asked.push(path);
      const found = served.get(path);
      if (found === undefined) response.writeHead(404).end();
      else found(response);
    });
    await once(documents.listen(0, '127.0.0.1'), 'listening');
    origin = `https://localhost:${(documents.address() as AddressInfo).port}`;
  });
  after(async () => {
    resource.close();
    documents.close();
    documents.closeAllConnections();
    await server.stop();
  });
  beforeEach(() => {
    asked = [];
  });

  let made = 0;
  /** Serves a document. @returns its URL. */
  const publish = (
    over: object = {},
    headers: Record<string, string> = {},
    path = `/client-${++made}.json`,
  ) => {
    const client_id = `${origin}${path}`;
    served.set(path, json({ ...DESCRIBED, client_id, ...over }, headers));
    return client_id;
  };
  const DESCRIBED = {
    client_name: 'Some agent',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    logo_uri: 'https://tracker.example.test/pixel.png',
    software_id: 'ignored',
  };
  const { verifier, challenge } = pkce();
  const request = (client_id: string, over: Record<string, string> = {}) => ({
    client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    resource: mcp,
    scope: 'tools:read offline_access',
    state: 'the-state',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...over,
  });
  const ask = (client_id: string, over: Record<string, string> = {}, at = server) =>
    authorize(createAgent(at), request(client_id, over));
  const isLetIn = async (client_id: string, at = server) => (await ask(client_id, {}, at)).status === 302;
  const accept = async (agent: Agent, page: Answer) => {
    const { action, fields } = readForm(page, '_csrf');
    const answer = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    return responseOf(await follow(agent, answer, server.url));
  };
  const codeFor = async (client_id: string, over: Record<string, string> = {}) => {
    const agent = createAgent(server);
    return (await accept(agent, await logIn(agent, server, request(client_id, over)))).code;
  };
  const exchange = (client_id: string, code: string | undefined, more: Record<string, string> = {}) =>
    token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id,
      code,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      ...more,
    });
  const refresh = (client_id: string, refresh_token: string, more: Record<string, string> = {}) =>
    token(createAgent(server), { grant_type: 'refresh_token', client_id, refresh_token, ...more });
  const setTenant = async (body: object) =>
    expect((await managed(server, 'PATCH', '/tenants/settings', body)).status).to.equal(200);

  it('is what the metadata documents offer while the tenant reads documents', async () => {
    const offered = async () =>
      Promise.all(
        ['openid-configuration', 'oauth-authorization-server'].map(
          async (name) =>
            (await createAgent(server).get(`/.well-known/${name}`)).json()
              .client_id_metadata_document_supported,
        ),
      );
    expect(await offered()).to.deep.equal([true, true]);
    await setTenant({ client_id_metadata_document_supported: false });
    try {
      expect(await offered()).to.deep.equal([undefined, undefined]);
      const url = publish();
      expect((await ask(url)).status).to.equal(400);
      expect(asked).to.deep.equal([]);
    } finally {
      await setTenant({ client_id_metadata_document_supported: true });
    }
  });

  it('logs users in by the SDK of the Model Context Protocol, who consent, and gets and renews tokens', async () => {
    const url = publish({ redirect_uris: ['http://127.0.0.1:33418/callback'] });
    const kept: Record<string, any> = {}; // any: the SDK's own records
    const save = (one: object) => void Object.assign(kept, one);
    const provider: OAuthClientProvider = {
      redirectUrl: 'http://127.0.0.1:5599/callback',
      clientMetadataUrl: url,
      clientMetadata: {
        client_name: 'Not what the document says',
        redirect_uris: ['http://127.0.0.1:5599/callback'],
      },
      clientInformation: () => kept.client,
      saveClientInformation: (client) => save({ client: client }),
      tokens: () => kept.tokens,
      saveTokens: (tokens) => save({ tokens: tokens }),
      redirectToAuthorization: (to) => save({ url: to }),
      saveCodeVerifier: (value) => save({ verifier: value }),
      codeVerifier: () => kept.verifier,
      discoveryState: () => kept.discovery,
      saveDiscoveryState: (state) => save({ discovery: state }),
    };
    const scope = 'tools:read offline_access';
    expect(await auth(provider, { serverUrl: mcp, scope })).to.equal('REDIRECT');
    expect(kept.client.client_id).to.equal(url);
    const agent = createAgent(server);
    const page = await logIn(agent, server, Object.fromEntries(kept.url.searchParams));
    expect(page.text)
      .to.contain('Some agent')
      .and.to.contain(`details come from the website <strong><bdi dir="ltr">${new URL(origin).host}</bdi>`)
      .and.to.contain('Not verified')
      .and.not.to.contain('Not what the document says')
      .and.not.to.contain('tracker.example.test');
    const { code = '', iss = '' } = await accept(agent, page);
    expect(await auth(provider, { serverUrl: mcp, authorizationCode: code, iss, scope })).to.equal(
      'AUTHORIZED',
    );
    const first = kept.tokens;
    expect(payload(first.access_token)).to.deep.include({ azp: url, scope });
    expect(payload(first.access_token).aud).to.deep.equal(mcp);
    expect(await auth(provider, { serverUrl: mcp, scope })).to.equal('AUTHORIZED');
    expect(kept.tokens.refresh_token).to.be.a('string').and.not.equal(first.refresh_token);
    expect(payload(kept.tokens.access_token)).to.include({ azp: url });
    expect(asked).to.have.length(1);
  });

  it('is a strict third party that is in the lists of those that the Management API is asked for, and in the log', async () => {
    const url = publish({
      is_first_party: true,
      third_party_security_mode: 'permissive',
      addons: { samlp: {} },
    });
    expect(await isLetIn(url)).to.equal(true);
    const path = `/clients/${encodeURIComponent(url)}`;
    expect((await managed(server, 'GET', path)).body).to.deep.include({
      client_id: url,
      external_client_id: url,
      external_metadata_type: 'cimd',
      external_metadata_created_by: 'client',
      is_first_party: false,
      third_party_security_mode: 'strict',
      app_type: 'native',
    });
    const ids = async (query: string) =>
      (await managed(server, 'GET', `/clients?per_page=100&${query}`)).body.map(
        (one: { client_id: string }) => one.client_id,
      );
    expect(await ids('external_metadata_type=cimd')).to.include(url);
    const pages = await managed(server, 'GET', '/clients?external_metadata_type=cimd&take=1');
    expect(pages.body.clients).to.have.length(1);
    expect(pages.body.clients[0]).to.include({ external_metadata_type: 'cimd' });
    expect(await ids('is_first_party=false')).to.include(url);
    expect(await ids('external_metadata_type=dcr')).not.to.include(url);
    expect(await ids('')).not.to.include(url);
    expect((await managed(server, 'PATCH', path, { name: 'Other' })).status).to.equal(400);
    const seen = async (type: string) =>
      (await managed(server, 'GET', `/logs?per_page=50&q=type:${type}`)).body.filter(
        (one: { client_id?: string }) => one.client_id === url,
      ).length;
    expect(await isLetIn(url)).to.equal(true);
    expect(await seen('scimd')).to.equal(1);
    for (const over of [
      { response_type: 'token' },
      { code_challenge_method: 'plain' },
      { resource: `${server.issuer}api/v2/` },
    ])
      expect((await ask(url, over)).status, JSON.stringify(over)).to.equal(400);
    expect((await managed(server, 'DELETE', path)).status).to.equal(204);
    expect((await managed(server, 'GET', path)).status).to.equal(404);
  });

  it('has exactly the callbacks of its document, and any port of a loopback address', async () => {
    const url = publish({
      redirect_uris: ['http://127.0.0.1:1/callback', 'https://agent.example.test/callback'],
    });
    for (const [redirect_uri, status] of [
      ['http://127.0.0.1:4711/callback', 302],
      ['https://agent.example.test/callback', 302],
      ['http://127.0.0.1:4711/other', 400],
      ['http://127.0.0.2:1/callback', 400],
      ['https://agent.example.test:444/callback', 400],
      ['https://agent.example.test/callback?x', 400],
      ['https://thief.example.test/callback', 400],
    ] as const)
      expect((await ask(url, { redirect_uri })).status, redirect_uri).to.equal(status);
  });

  it('is unknown at the other endpoints before its document was read for a login', async () => {
    const url = publish();
    const answers = await Promise.all([
      exchange(url, 'x'),
      refresh(url, 'x'),
      createAgent(server).request('/oauth/revoke', { form: { client_id: url, token: 'x' } }),
      createAgent(server).request('/oauth/device/code', { form: { client_id: url } }),
      createAgent(server).request('/dbconnections/signup', {
        json: { client_id: url, connection: 'users', email: 'x@example.test', password: 'Correct-Horse-1' },
      }),
      createAgent(server).get(`/v2/logout?${new URLSearchParams({ client_id: url, returnTo: CALLBACK })}`),
    ]);
    for (const [at, { status }] of answers.entries()) expect(status, String(at)).to.be.within(400, 499);
    expect(asked).to.deep.equal([]);
  });

  it('is read again when its document is old, as its server says within bounds', async () => {
    for (const [headers, minutes] of [
      [{}, 60],
      [{ 'cache-control': 'max-age=1200' }, 20],
      [{ 'cache-control': 'max-age=1200', age: '600' }, 10],
      [{ 'cache-control': 'no-store' }, 5],
      [{ 'cache-control': 'max-age=0' }, 5],
      [{ 'cache-control': 'max-age=9999999999999999' }, 60],
      [{ 'cache-control': 'public, max-age=31536000' }, 24 * 60],
      [{ expires: 'never' }, 5],
    ] as const) {
      const url = publish({}, headers as Record<string, string>);
      const times = () => asked.filter((path) => url.endsWith(path)).length;
      expect(await isLetIn(url)).to.equal(true);
      server.tick(minutes * MINUTE - 2_000);
      expect(await isLetIn(url)).to.equal(true);
      expect(times(), JSON.stringify(headers)).to.equal(minutes >= 24 * 60 ? times() : 1);
      server.tick(4_000);
      expect(await isLetIn(url)).to.equal(true);
      expect(times(), JSON.stringify(headers)).to.equal(2);
    }
  });

  it('is let in by no document that is not its own or cannot be used, whatever it was before, and by the next that can', async () => {
    const url = publish({}, { 'cache-control': 'max-age=300' });
    const path = new URL(url).pathname;
    const code = await codeFor(url);
    const { refresh_token } = (await exchange(url, code)).json();
    server.tick(6 * MINUTE);
    served.set(path, (response) => response.writeHead(500).end());
    const failed = await ask(url);
    expect([failed.status, failed.text.includes(UNUSABLE)]).to.deep.equal([400, true]);
    // Its users' tokens are renewed, and nothing that was read is kept.
    expect((await refresh(url, refresh_token)).status).to.equal(200);
    served.set(path, json({ ...DESCRIBED, client_id: `${url}x` }));
    expect((await ask(url)).status).to.equal(400);
    served.set(
      path,
      json({
        ...DESCRIBED,
        client_id: url,
        redirect_uris: ['https://thief.example.test/'],
        client_secret: 'x',
      }),
    );
    expect((await ask(url, { redirect_uri: 'https://thief.example.test/' })).status).to.equal(400);
    publish({ redirect_uris: ['https://agent.example.test/new'] }, {}, path);
    expect((await ask(url)).status).to.equal(400);
    expect((await ask(url, { redirect_uri: 'https://agent.example.test/new' })).status).to.equal(302);
  });

  it('is answered at no callback that its document has lost while a request waited', async () => {
    const elsewhere = 'https://agent.example.test/new';
    const short = { 'cache-control': 'max-age=300' };
    for (const begin of [
      async (url: string) => {
        const pushed = await createAgent(server).request('/oauth/par', {
          form: { ...request(url), ...(await assertion(url)) },
        });
        expect(pushed.status, pushed.text).to.equal(201);
        const { request_uri } = pushed.json();
        return () => authorize(createAgent(server), { client_id: url, request_uri });
      },
      async (url: string) => {
        const agent = createAgent(server);
        const page = await logIn(agent, server, request(url));
        const { action, fields } = readForm(page, '_csrf');
        return async () =>
          follow(agent, await agent.request(action, { form: { ...fields, decision: 'accept' } }), server.url);
      },
    ]) {
      const keyed = { token_endpoint_auth_method: 'private_key_jwt', jwks: await setOf(key) };
      const url = publish(keyed, short);
      expect(await isLetIn(url)).to.equal(true);
      server.tick(5 * MINUTE - 10_000);
      const goOn = await begin(url);
      publish({ ...keyed, redirect_uris: [elsewhere] }, short, new URL(url).pathname);
      server.tick(20_000);
      // Somebody else's login has the document read anew.
      expect((await ask(url, { redirect_uri: elsewhere })).status).to.equal(302);
      const answer = await goOn();
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.headers.location ?? '').to.equal('');
    }
  });

  it('is not let in by documents of others, secrets, callbacks of this server, or names that pose as another', async () => {
    for (const over of [
      { client_id: `${origin}/other.json` },
      { client_id: undefined },
      { client_name: undefined },
      { client_name: 'Harb0ur' },
      { client_name: 'Single page' },
      { client_name: 'agent.example.com', redirect_uris: [CALLBACK, 'https://agent.example.com/callback'] },
      { client_name: 'Ada\u202egnp' },
      { client_secret: 'x' },
      { client_secret_expires_at: 0 },
      { token_endpoint_auth_method: 'client_secret_basic' },
      { token_endpoint_auth_method: 'tls_client_auth' },
      { token_endpoint_auth_method: 'private_key_jwt' },
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } },
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } },
      { redirect_uris: [] },
      { redirect_uris: [CALLBACK, 'javascript:alert(1)'] },
      { redirect_uris: [CALLBACK, 'http://agent.example.test/callback'] },
      { redirect_uris: [CALLBACK, `${server.url}/callback`] },
      { redirect_uris: [CALLBACK, 'https://*.example.test/'] },
      { grant_types: ['client_credentials'] },
      { logo_uri: 'javascript:alert(1)' },
    ]) {
      const answer = await ask(publish(over));
      expect(answer.status, JSON.stringify(over)).to.equal(400);
    }
    const told = await ask(publish({ redirect_uris: [] }));
    expect(told.text).to.contain('redirect_uris');
  });

  it('is looked for at no URL that cannot be a client_id', async () => {
    const path = '/plain.json';
    publish({}, {}, path);
    const { host } = new URL(origin);
    for (const url of [
      origin,
      `${origin}/`,
      `${origin}/a/..${path}`,
      `${origin}/%2e%2e${path}`,
      `${origin}${path}#a`,
      `https://user:secret@${host}${path}`,
      `https://user@${host}${path}`,
      `HTTPS://${host}${path}`,
      `https://LOCALHOST:${host.split(':')[1]}${path}`,
      `https://localhost.:${host.split(':')[1]}/plain`,
      `https:\\\\${host}${path}`,
      `ftp://${host}${path}`,
      `file://${path}`,
      `${origin}${path} `,
      `${origin}/${'a'.repeat(300)}`,
      'https://example.test:8443/client.json',
      'https://93.184.216.34/client.json',
      'https://[2606:2800:220:1::1]/client.json',
      `http://${host}${path}\r\nx: y`,
    ])
      expect((await ask(url)).status, url).to.equal(400);
    expect(asked).to.deep.equal([]);
  });

  it('gets the same answer whatever a host does: refuse, redirect, be silent, send too much or something else', async () => {
    const target = publish();
    const faults: Record<string, Served> = {
      missing: (response) => response.writeHead(404).end(),
      redirect: (response) => response.writeHead(302, { location: target }).end(),
      created: (response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{}'),
      html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{}'),
      untyped: (response) => response.writeHead(200).end('{}'),
      text: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('<html>'),
      array: json([1]),
      number: json(1),
      big: json({ padding: 'x'.repeat(6_000) }),
      cut: (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{');
        response.destroy();
      },
      slow: () => undefined,
      trickle: (response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{');
      },
    };
    const fault = ({ status, text }: Answer) => ({ status, isSame: text.includes(UNUSABLE) });
    const answers = await Promise.all(
      Object.entries(faults).map(async ([name, answer]) => {
        served.set(`/fault-${name}`, answer);
        return [name, fault(await ask(`${origin}/fault-${name}`))] as const;
      }),
    );
    for (const [name, answer] of answers) expect(answer, name).to.deep.equal({ status: 400, isSame: true });
    for (const url of ['https://localhost:1/client.json', 'https://10.0.0.1.nip.test/client.json'])
      expect(fault(await ask(url)), url).to.deep.equal({ status: 400, isSame: true });
    expect(asked).to.have.length(Object.keys(faults).length);
    const { body } = await managed(server, 'GET', '/logs?per_page=20&q=type:fcimd');
    expect(body).to.have.length.above(0);
  }).timeout(20_000);

  it('is fetched once for many requests at the same time', async () => {
    const url = publish();
    const answers = await Promise.all(Array.from({ length: 10 }, () => isLetIn(url)));
    expect(answers).to.deep.equal(Array(10).fill(true));
    expect(asked).to.have.length(1);
  });

  it('is let in by the lists of hosts alone, and ends with all its tokens when its host is denied', async () => {
    const url = publish();
    const { refresh_token } = (await exchange(url, await codeFor(url))).json();
    const rejected = async (hosts: object) => {
      await setTenant({ client_id_metadata_documents: hosts });
      try {
        const { status, text } = await ask(url);
        return [status, text.includes('not let in')];
      } finally {
        await setTenant({ client_id_metadata_documents: null });
      }
    };
    expect(await rejected({ denied_hosts: ['localhost'] })).to.deep.equal([400, true]);
    expect(await rejected({ allowed_hosts: ['agent.example.test', '*.localhost'] })).to.deep.equal([
      400,
      true,
    ]);
    expect(await rejected({ allowed_hosts: [] })).to.deep.equal([400, true]);
    expect(await rejected({ allowed_hosts: ['localhost'], denied_hosts: ['localhost'] })).to.deep.equal([
      400,
      true,
    ]);
    expect((await rejected({ allowed_hosts: ['localhost'], denied_hosts: ['*.localhost'] }))[0]).to.equal(
      302,
    );
    await setTenant({ client_id_metadata_documents: { denied_hosts: ['localhost'] } });
    try {
      expect((await refresh(url, refresh_token)).status).to.be.within(400, 401);
    } finally {
      await setTenant({ client_id_metadata_documents: null });
    }
    expect((await refresh(url, refresh_token)).status).to.equal(200);
    for (const hosts of [['Example.test'], ['https://example.test'], ['*'], ['a b']])
      expect(
        (
          await managed(server, 'PATCH', '/tenants/settings', {
            client_id_metadata_documents: { denied_hosts: hosts },
          })
        ).status,
      ).to.equal(400);
  });

  it('is not let in while an administrator has blocked it, and its document is not read', async () => {
    const url = publish();
    const { refresh_token } = (await exchange(url, await codeFor(url))).json();
    const registrations = server.store.collection('registrations');
    await registrations.update(url, ({ expiresAt: _, ...kept }) => ({
      ...kept,
      blocked_at: '2026-11-30T00:00:00Z',
    }));
    asked = [];
    for (const days of [0, 2, 40]) {
      server.tick(days * 24 * 60 * MINUTE);
      expect(await isLetIn(url)).to.equal(false);
    }
    expect((await refresh(url, refresh_token)).status).to.be.within(400, 401);
    expect(asked).to.deep.equal([]);
    await registrations.update(url, ({ blocked_at: _, ...kept }) => kept);
    expect(await isLetIn(url)).to.equal(true);
  });

  it('has nothing that users granted an earlier one at its URL, which was removed or forgotten', async () => {
    const url = publish();
    const held: Record<string, () => Promise<unknown>> = {
      removed: () => managed(server, 'DELETE', `/clients/${encodeURIComponent(url)}`),
      // As after 30 days without a use, at whose end the domain may be another's.
      forgotten: () => server.store.collection('registrations').delete(url),
    };
    const registerByHand = () =>
      managed(server, 'POST', '/clients/cimd/register', { external_client_id: url });
    held['removed, and registered by an administrator'] = async () => {
      await held.removed?.();
      expect((await registerByHand()).status).to.equal(200);
    };
    for (const [how, end] of Object.entries(held)) {
      const agent = createAgent(server);
      const { code } = await accept(agent, await logIn(agent, server, request(url)));
      const { refresh_token } = (await exchange(url, code)).json();
      expect(refresh_token, how).to.be.a('string');
      const { code: unredeemed } = await accept(
        agent,
        await follow(agent, await authorize(agent, request(url, { prompt: 'consent' })), server.url),
      );
      await end();
      const page = await follow(agent, await authorize(agent, request(url)), server.url);
      expect(page.text, how).to.contain('name="decision"');
      expect((await refresh(url, refresh_token)).json().error, how).to.equal('invalid_grant');
      expect((await exchange(url, unredeemed)).json().error, how).to.equal('invalid_grant');
    }
  });

  it('is ended by its user at the account page, and by a revocation, and logs out', async () => {
    const url = publish({ client_name: 'Ended at the page' });
    const agent = createAgent(server);
    const { code } = await accept(agent, await logIn(agent, server, request(url)));
    const { refresh_token } = (await exchange(url, code)).json();
    const path = '/account/applications';
    const page = await openAccount(agent, server, path);
    expect(page.text).to.contain('Ended at the page');
    const form = page.text.split('<form').find((part) => part.includes(`value="${url}"`)) ?? '';
    const { fields } = readForm({ ...page, text: `<form${form}` }, '_csrf');
    const done = await agent.request(path, { form: { ...fields, application: url } });
    expect(done.location).to.contain('said=withdrawn');
    expect((await refresh(url, refresh_token)).json().error).to.equal('invalid_grant');
    expect((await follow(agent, await authorize(agent, request(url)), server.url)).text).to.contain(
      'name="decision"',
    );
    const again = (await exchange(url, await codeFor(url))).json().refresh_token;
    const revoked = await createAgent(server).request('/oauth/revoke', {
      form: { client_id: url, token: again },
    });
    expect(revoked.status).to.equal(200);
    expect((await refresh(url, again)).json().error).to.equal('invalid_grant');
    const out = (returnTo: string) =>
      agent.get(`/v2/logout?${new URLSearchParams({ client_id: url, returnTo })}`);
    expect((await out('https://thief.example.test/')).status).to.equal(400);
    const plain = await agent.get(`/v2/logout?${new URLSearchParams({ client_id: url })}`);
    expect(plain.status).to.be.below(400);
    expect((await follow(agent, await authorize(agent, request(url)), server.url)).text).to.contain(
      'name="password"',
    );
  });

  it('is what an administrator has registered, once one has', async () => {
    const url = publish();
    expect(await isLetIn(url)).to.equal(true);
    expect(
      (await managed(server, 'POST', '/clients/cimd/register', { external_client_id: url })).status,
    ).to.equal(200);
    served.delete(new URL(url).pathname);
    server.tick(2 * 24 * 60 * MINUTE);
    asked = [];
    expect(await isLetIn(url)).to.equal(true);
    expect(asked).to.deep.equal([]);
    await setTenant({ client_id_metadata_document_supported: false });
    try {
      expect(await isLetIn(url)).to.equal(true);
    } finally {
      await setTenant({ client_id_metadata_document_supported: true });
    }
  });

  it('gives tokens to pages of its own origin alone', async () => {
    const url = publish({ redirect_uris: ['https://agent.example.test/callback'] });
    const redirect_uri = 'https://agent.example.test/callback';
    const code = (await codeFor(url, { redirect_uri })) ?? '';
    const send = (from: string) =>
      createAgent(server).request('/oauth/token', {
        form: {
          grant_type: 'authorization_code',
          client_id: url,
          code,
          code_verifier: verifier,
          redirect_uri,
        },
        headers: { origin: from, 'sec-fetch-site': 'cross-site' },
      });
    expect((await send('https://thief.example.test')).status).to.equal(403);
    expect((await send('https://agent.example.test')).status).to.equal(200);
  });

  let key: ClientKeyPair;
  let next: ClientKeyPair;
  const setOf = async (...keys: ClientKeyPair[]) => ({
    keys: keys.map(({ alg, credential: { kid, jwk } }) => ({ ...jwk, kid, alg, use: 'sig' })),
  });
  before(async () => {
    key = await clientKey('ES256');
    next = await clientKey('ES256');
    next = { ...next, credential: { ...next.credential, kid: 'next' } };
  });
  const assertion = async (client_id: string, { privateKey, credential: { kid }, alg } = key) => ({
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg, kid })
      .setIssuer(client_id)
      .setSubject(client_id)
      .setAudience(server.issuer)
      .setIssuedAt(Math.floor(now() / 1000))
      .setExpirationTime(Math.floor(now() / 1000) + 60)
      .sign(privateKey),
  });
  // The server's time of day is that of this process, as far as it has not been moved.
  const now = () => Date.now();

  describe('with keys', () => {
    const keyed = { token_endpoint_auth_method: 'private_key_jwt' };

    it('authenticates with those in the document, and is not let in without', async () => {
      const url = publish({ ...keyed, jwks: await setOf(key) });
      const code = await codeFor(url);
      expect((await exchange(url, code)).status).to.equal(401);
      expect((await exchange(url, await codeFor(url), await assertion(url, next))).status).to.equal(401);
      const tokens = await exchange(url, await codeFor(url), await assertion(url));
      expect(tokens.status, tokens.text).to.equal(200);
      expect((await refresh(url, tokens.json().refresh_token)).status).to.equal(401);
      const again = await refresh(url, tokens.json().refresh_token, await assertion(url));
      expect(again.status, again.text).to.equal(200);
    });

    it('authenticates with those that its document had when an administrator registered it', async () => {
      const url = publish({ ...keyed, jwks: await setOf(key) });
      const { status } = await managed(server, 'POST', '/clients/cimd/register', { external_client_id: url });
      expect(status).to.equal(200);
      publish({ ...keyed, jwks: await setOf(next) }, {}, new URL(url).pathname);
      expect((await exchange(url, await codeFor(url), await assertion(url, next))).status).to.equal(401);
      expect((await exchange(url, await codeFor(url))).status).to.equal(401);
      const tokens = await exchange(url, await codeFor(url), await assertion(url));
      expect(tokens.status, tokens.text).to.equal(200);
    });

    it('authenticates with those at its jwks_uri, which are read again when they are old or lack the key', async () => {
      served.set('/keys.json', json(await setOf(key)));
      const url = publish({ ...keyed, jwks_uri: `${origin}/keys.json` });
      const tokens = await exchange(url, await codeFor(url), await assertion(url));
      expect(tokens.status, tokens.text).to.equal(200);
      expect(asked.filter((path) => path === '/keys.json')).to.have.length(1);
      served.set('/keys.json', json(await setOf(next)));
      const rotated = await refresh(url, tokens.json().refresh_token, await assertion(url, next));
      expect(rotated.status, rotated.text).to.equal(200);
      expect((await refresh(url, rotated.json().refresh_token, await assertion(url))).status).to.equal(401);
      const { refresh_token } = rotated.json();
      served.delete('/keys.json');
      expect((await refresh(url, refresh_token, await assertion(url, next))).status).to.equal(200);
    });

    it('is told to come again while its keys are old and cannot be read', async () => {
      const url = publish({ ...keyed, jwks: await setOf(key) }, { 'cache-control': 'no-store' });
      const { refresh_token } = (await exchange(url, await codeFor(url), await assertion(url))).json();
      server.tick(6 * MINUTE);
      const path = new URL(url).pathname;
      const document = served.get(path) as Served;
      served.delete(path);
      const gone = await refresh(url, refresh_token, await assertion(url));
      expect([gone.status, gone.json().error]).to.deep.equal([503, 'temporarily_unavailable']);
      served.set(path, document);
      expect((await refresh(url, refresh_token, await assertion(url))).status).to.equal(200);
    });

    it('pushes its requests', async () => {
      const url = publish({ ...keyed, jwks: await setOf(key) });
      const push = async (proof: Record<string, string>) =>
        createAgent(server).request('/oauth/par', { form: { ...request(url), ...proof } });
      expect((await push({})).status).to.equal(401);
      const pushed = await push(await assertion(url));
      expect(pushed.status, pushed.text).to.equal(201);
      const { request_uri } = pushed.json();
      const page = await authorize(createAgent(server), { client_id: url, request_uri });
      expect(page.status).to.equal(302);
      const missing = await createAgent(server).request('/oauth/par', {
        form: request(`${origin}/nothing.json`),
      });
      expect([missing.status, missing.json()]).to.deep.equal([
        400,
        { error: 'invalid_client', error_description: UNUSABLE },
      ]);
    });

    it('that are too many, too long, private or elsewhere than a host is let in, is not let in', async () => {
      const { jwk } = key.credential;
      for (const [name, keys] of Object.entries({
        many: { keys: Array.from({ length: 6 }, (_, at) => ({ ...jwk, kid: String(at) })) },
        private: { keys: [{ ...(await exportJWK(key.privateKey)) }] },
        long: { keys: [{ kty: 'RSA', n: 'x'.repeat(3_000), e: 'AQAB' }] },
        none: { keys: [{ kty: 'unknown' }] },
        text: 'x',
      })) {
        served.set(`/keys-${name}`, json(keys));
        expect(await isLetIn(publish({ ...keyed, jwks_uri: `${origin}/keys-${name}` })), name).to.equal(
          false,
        );
        expect(await isLetIn(publish({ ...keyed, jwks: keys })), name).to.equal(false);
      }
      for (const jwks_uri of [
        `http://localhost/x`,
        `${origin}/missing`,
        'https://localhost:1/keys',
        'https://example.test:22/',
      ])
        expect(await isLetIn(publish({ ...keyed, jwks_uri })), jwks_uri).to.equal(false);
    });

    it('registers itself as well, by the keys or where they are', async () => {
      served.set('/registered.json', json(await setOf(key)));
      for (const where of [{ jwks: await setOf(key) }, { jwks_uri: `${origin}/registered.json` }]) {
        const answer = await createAgent(server).request('/oidc/register', {
          json: { ...DESCRIBED, ...keyed, ...where },
        });
        expect(answer.status, answer.text).to.equal(201);
        const client = answer.json();
        expect(client).to.deep.include(keyed).and.not.to.have.property('client_secret');
        expect(client).to.have.property('jwks' in where ? 'jwks' : 'jwks_uri');
        const { client_id } = client;
        expect((await exchange(client_id, await codeFor(client_id))).status).to.equal(401);
        const tokens = await exchange(client_id, await codeFor(client_id), await assertion(client_id));
        expect(tokens.status, tokens.text).to.equal(200);
        if ('jwks' in where) continue;
        served.set('/registered.json', json(await setOf(next)));
        const rotated = await refresh(
          client_id,
          tokens.json().refresh_token,
          await assertion(client_id, next),
        );
        expect(rotated.status, rotated.text).to.equal(200);
      }
      for (const where of [
        {},
        { jwks: { keys: [] } },
        { jwks_uri: `${origin}/missing` },
        { jwks_uri: `${origin}/registered.json`, jwks: await setOf(key) },
      ]) {
        const answer = await createAgent(server).request('/oidc/register', {
          json: { ...DESCRIBED, ...keyed, ...where },
        });
        expect([answer.status, answer.json().error]).to.deep.equal([400, 'invalid_client_metadata']);
      }
    });
  });

  describe('that has registered where its request objects are', () => {
    const requestObject = (
      client_id: string,
      over: object = {},
      { privateKey, credential: { kid }, alg } = key,
    ) =>
      new SignJWT({ ...request(client_id), state: 'of-the-object', ...over })
        .setProtectedHeader({ alg, kid })
        .setIssuer(client_id)
        .setAudience(server.issuer)
        .sign(privateKey);
    const jwt =
      (text: string, type = 'application/jwt'): Served =>
      (response) =>
        response.writeHead(200, { 'content-type': type }).end(text);
    const register = async (...paths: string[]) => registerWith({}, ...paths);
    const registerWith = async (more: object, ...paths: string[]) => {
      const request_uris = paths.map((path) => `${origin}${path}`);
      const answer = await createAgent(server).request('/oidc/register', {
        json: {
          ...DESCRIBED,
          token_endpoint_auth_method: 'private_key_jwt',
          jwks: await setOf(key),
          request_uris,
          ...more,
        },
      });
      expect(answer.status, answer.text).to.equal(201);
      return answer.json() as {
        client_id: string;
        request_uris?: string[];
        request_object_signing_alg?: string;
      };
    };
    /** Asks for a login by a reference, with parameters beside it that do not count. */
    const refer = (client_id: string, path: string, agent = createAgent(server)) =>
      authorize(agent, { ...request(client_id, { state: 'beside' }), request_uri: `${origin}${path}` });
    before(() => setTenant({ dynamic_client_registration_security_mode: 'permissive' }));
    after(() => setTenant({ dynamic_client_registration_security_mode: null }));

    it('asks by a reference to one, whose parameters alone count', async () => {
      const { client_id, request_uris } = await register('/request.jwt#one');
      expect(request_uris).to.deep.equal([`${origin}/request.jwt#one`]);
      served.set('/request.jwt', jwt(await requestObject(client_id)));
      const agent = createAgent(server);
      const reference = { client_id, request_uri: `${origin}/request.jwt#one`, state: 'beside' };
      const answer = await accept(agent, await logIn(agent, server, reference));
      expect(answer).to.include({ state: 'of-the-object' });
      expect(asked).to.include('/request.jwt');
      const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
      expect(metadata).to.include({
        request_uri_parameter_supported: true,
        require_request_uri_registration: true,
      });
    });

    it('has none read that it, or nobody, has registered, nor one that is pushed', async () => {
      const { client_id } = await register('/mine.jwt#one');
      await register('/theirs.jwt');
      for (const path of ['/mine.jwt', '/mine.jwt#two', '/theirs.jwt', '/nobodys.jwt']) {
        const { error } = responseOf(await refer(client_id, path));
        expect(error, path).to.equal('request_uri_not_supported');
      }
      const pushed = await createAgent(server).request('/oauth/par', {
        form: {
          ...request(client_id),
          request_uri: `${origin}/mine.jwt#one`,
          ...(await assertion(client_id)),
        },
      });
      expect(pushed.status).to.equal(400);
      expect(asked).to.deep.equal([]);
    });

    it('gets the same answer whatever a host does, and none of what others have signed', async () => {
      const { client_id } = await register('/object.jwt');
      const good = await requestObject(client_id);
      for (const answer of [
        jwt(good, 'text/html'),
        jwt('x'.repeat(6_000)),
        (response: http.ServerResponse) => response.writeHead(404).end(good),
        (response: http.ServerResponse) => response.writeHead(302, { location: `${origin}/good.jwt` }).end(),
      ]) {
        served.set('/object.jwt', answer);
        expect(responseOf(await refer(client_id, '/object.jwt'))).to.include({
          error: 'invalid_request_uri',
          error_description: 'The request object at request_uri cannot be used.',
        });
      }
      for (const object of [
        await requestObject(client_id, {}, await clientKey('ES256')),
        await requestObject('another'),
        await requestObject(client_id, { request_uri: `${origin}/object.jwt` }),
        'no.jwt',
      ]) {
        served.set('/object.jwt', jwt(object));
        const { error } = responseOf(await refer(client_id, '/object.jwt'));
        expect(error, object).to.equal('invalid_request_object');
      }
      served.set('/object.jwt', jwt(good, 'application/oauth-authz-req+jwt'));
      expect((await refer(client_id, '/object.jwt')).headers.location).to.match(/^\/u\//);
    });

    it('asks by none of another algorithm than the one that it has registered, also in the request itself', async () => {
      const other = await clientKey(key.alg === 'ES256' ? 'RS256' : 'ES256');
      const jwks = { keys: [...(await setOf(key)).keys, ...(await setOf(other)).keys] };
      const { client_id, ...registered } = await registerWith(
        { jwks, request_object_signing_alg: other.alg },
        '/alg.jwt',
      );
      expect(registered).to.include({ request_object_signing_alg: other.alg });
      const asks = async (signer: typeof key) => {
        const object = await requestObject(client_id, {}, signer);
        served.set('/alg.jwt', jwt(object));
        const agent = createAgent(server);
        const inside = await authorize(agent, { ...request(client_id), request: object });
        return [inside, await refer(client_id, '/alg.jwt')].map((one) => responseOf(one).error);
      };
      expect(await asks(key)).to.deep.equal(['invalid_request_object', 'invalid_request_object']);
      expect(await asks(other)).to.deep.equal([undefined, undefined]);
      // What is not supported is left out, so that the application knows.
      const without = await registerWith({ request_object_signing_alg: 'none' }, '/alg.jwt');
      expect(without).not.to.have.property('request_object_signing_alg');
      const refused = await createAgent(server).request('/oidc/register', {
        json: { ...DESCRIBED, request_object_signing_alg: 'HS256' },
      });
      expect([refused.status, refused.json().error]).to.deep.equal([400, 'invalid_client_metadata']);
    });

    it('registers none where applications register as strict', async () => {
      await setTenant({ dynamic_client_registration_security_mode: null });
      try {
        const { client_id, ...registered } = await register('/strict.jwt');
        expect(registered).not.to.have.property('request_uris');
        const { status, text } = await refer(client_id, '/strict.jwt');
        expect([status, text.includes('request_uri_not_supported')], text).to.deep.equal([400, true]);
        expect(asked).to.deep.equal([]);
        const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
        expect(metadata).to.include({ request_uri_parameter_supported: false });
      } finally {
        await setTenant({ dynamic_client_registration_security_mode: 'permissive' });
      }
    });
  });

  describe('in a flood', () => {
    it('is limited by caller and by host, but for documents that were read before', async () => {
      const {
        clientDocuments: _,
        clientDocumentHosts: __,
        ...rateLimits
      } = openTenant(mcp).attackProtection.rateLimits;
      const limited = await startManaged({ ...openTenant(mcp), attackProtection: { rateLimits } });
      try {
        const known = publish();
        expect(await isLetIn(known, limited)).to.equal(true);
        asked = [];
        const answers = await Promise.all(
          Array.from({ length: 60 }, (_one, at) => ask(`${origin}/none-${at}`, {}, limited)),
        );
        expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([400, 429]));
        expect(asked.length).to.be.within(1, 30);
        limited.tick(61 * MINUTE);
        await Promise.all(Array.from({ length: 25 }, (_one, at) => ask(`${origin}/more-${at}`, {}, limited)));
        expect(await isLetIn(known, limited), 'what was read before').to.equal(true);
        expect(await isLetIn(publish(), limited), 'another of its host').to.equal(false);
        const keyed = publish({ token_endpoint_auth_method: 'private_key_jwt', jwks: await setOf(key) });
        limited.tick(61 * MINUTE);
        expect(await isLetIn(keyed, limited)).to.equal(true);
        asked = [];
        for (let at = 0; at < 30; at++)
          await createAgent(limited).request('/oauth/token', {
            form: {
              grant_type: 'refresh_token',
              refresh_token: 'x',
              ...(await assertion(keyed, { ...key, credential: { ...key.credential, kid: `none-${at}` } })),
            },
          });
        expect(asked.length, 'for keys that nobody has').to.be.within(1, 20);
        limited.tick(59 * MINUTE);
        for (let at = 0; at < 5; at++) await ask(`${origin}/less-${at}`, {}, limited);
        limited.tick(2 * MINUTE);
        expect(await isLetIn(keyed, limited)).to.equal(true);
      } finally {
        await limited.stop();
      }
    });

    it('takes the place of its own alone', async () => {
      const small = await startManaged(openTenant(mcp), undefined, {}, { boundsScale: 20 / 5_000 });
      try {
        const registered = await createAgent(small).request('/oidc/register', { json: DESCRIBED });
        for (let i = 0; i < 60; i++) expect(await isLetIn(publish(), small)).to.equal(true);
        expect(await small.store.collection('registrations').count()).to.be.at.most(25);
        expect(await isLetIn(registered.json().client_id, small)).to.equal(true);
      } finally {
        await small.stop();
      }
    });
  });

  describe('at an address that strangers must not reach', () => {
    it('is not asked, though the operator has opened it for others', async () => {
      const production = await startManaged(openTenant(mcp), undefined, {
        BASE_URL: 'https://login.example.test',
        OUTBOUND_ALLOW: '127.0.0.0/8,::1/128,localhost',
      });
      try {
        const url = publish();
        const answer = await createAgent({
          url: `https://localhost:${production.settings.port}`,
          ca: production.ca,
        }).get(`/authorize?${new URLSearchParams(request(url))}`);
        expect([answer.status, answer.text.includes(UNUSABLE)]).to.deep.equal([400, true]);
        expect(asked).to.deep.equal([]);
      } finally {
        await production.stop();
      }
    });

    it('is not asked beside a hundred others at a time', async () => {
      const { store, settings } = server;
      const silent = Promise.withResolvers<Response>();
      let sent = 0;
      const reader = clientDocuments({
        store,
        config: await openConfig(store),
        rateLimits: { takeFrom: async () => undefined, spend: async () => true },
        events: { record: () => undefined },
        clock: Date.now,
        wallClock: Date.now,
        issuer: settings.issuer,
        strangersOutbound: {
          fetch: () => {
            sent += 1;
            return silent.promise;
          },
        },
      });
      const answers = Array.from({ length: 130 }, (_one, at) =>
        reader
          .read({ ip: '192.0.2.1' } as Context, `https://agent.example.test/${at}`)
          .catch(({ status }) => status),
      );
      expect(await Promise.race(answers)).to.equal(503);
      silent.resolve(new Response('', { status: 404 }));
      const all = await Promise.all(answers);
      expect([sent, all.filter((status) => status === 503).length]).to.deep.equal([100, 30]);
    });

    it('is asked as often by many names of one domain as by one', async () => {
      const { store, settings } = server;
      const keys = new Set<string>();
      const reader = clientDocuments({
        store,
        config: await openConfig(store),
        rateLimits: {
          takeFrom: async () => undefined,
          spend: async (_limit, key) => {
            keys.add(key);
            return keys.size < 3;
          },
        },
        events: { record: () => undefined },
        clock: Date.now,
        wallClock: Date.now,
        issuer: settings.issuer,
        strangersOutbound: createOutbound({ rules: outboundRules([]), lookup: async () => [] }),
      });
      const read = (url: string) =>
        reader.read({ ip: '192.0.2.1' } as Context, url).catch(({ status }) => status);
      for (const host of ['a.example.co.uk', 'b.example.co.uk', 'c.d.example.co.uk', 'example.co.uk:8443'])
        expect(await read(`https://${host}/client`), host).to.equal(400);
      expect(await read('https://a.github.io/client')).to.equal(400);
      expect(await read('https://b.github.io/client')).to.equal(429);
      expect([...keys]).to.deep.equal(['host example.co.uk', 'host a.github.io', 'host b.github.io']);
    });

    it('is not asked when a name leads there after it was checked', async () => {
      const inner = http.createServer((_request, response) =>
        json({ ...DESCRIBED, client_id: url })(response),
      );
      await once(inner.listen(0, '127.0.0.1'), 'listening');
      const { port } = inner.address() as AddressInfo;
      const url = `http://rebinding.localhost:${port}/client.json`;
      let looked = 0;
      let connected = 0;
      inner.on('connection', () => {
        connected += 1;
      });
      const { store, settings } = server;
      const reader = clientDocuments({
        store,
        config: await openConfig(store),
        rateLimits: { takeFrom: async () => undefined, spend: async () => true },
        events: { record: () => undefined },
        clock: Date.now,
        wallClock: Date.now,
        issuer: settings.issuer,
        strangersOutbound: createOutbound({
          rules: outboundRules(['127.0.0.2']),
          lookup: async () => [{ address: looked++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
        }),
      });
      const read = () =>
        reader.read({ ip: '192.0.2.1' } as Context, url).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      try {
        for (let times = 1; times <= 2; times++) {
          expect(await read())
            .to.be.instanceOf(AuthError)
            .and.to.include({ error_description: UNUSABLE });
          expect(looked).to.equal(times);
        }
        expect(connected).to.equal(0);
      } finally {
        inner.close();
      }
    });
  });
});
