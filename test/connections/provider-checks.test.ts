// A provider that cannot be used is reported when its connection is created, in the background.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { readTenant } from '../../src/tenant/load.ts';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stopwatch } from '../support/timing.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { aMoment } from '../support/wait-until.ts';

const NOBODY = 'http://127.0.0.1:1';
const DOCUMENT = '/.well-known/openid-configuration';

const connection = (name: string, strategy: string, options: object, enabled_clients = ['web']) => ({
  name,
  strategy,
  enabled_clients,
  options,
});
const openId = (name: string, url: string) =>
  connection(name, 'oidc', {
    type: 'back_channel',
    client_id: 'gatehouse',
    client_secret: 'upstream-secret',
    discovery_url: `${url}${DOCUMENT}`,
  });

describe("the check of a connection's provider", () => {
  let provider: OpenIdProvider;
  let silent: http.Server;
  let silentUrl = '';
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    provider.instead = { [DOCUMENT]: (response) => response.writeHead(503).end() };
    // Accepts requests and never answers.
    silent = http.createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    server = await startManaged({
      ...tenant,
      connections: [
        openId('late', provider.url),
        openId('elsewhere', NOBODY),
        openId('silent', silentUrl),
        connection('saml', 'samlp', { metadataUrl: `${NOBODY}/metadata` }),
        connection('borrowed', 'google-oauth2', {}),
        connection('directory', 'ad', {
          LDAP_URL: 'ldap://127.0.0.1:1',
          LDAP_BASE: 'dc=example,dc=test',
          LDAP_BIND_USER: 'cn=service,dc=example,dc=test',
          LDAP_BIND_PASSWORD: 'directory-secret',
        }),
        connection('unused', 'samlp', { metadataUrl: `${NOBODY}/unused` }, []),
      ],
    });
  });
  after(async () => {
    const time = stopwatch();
    await server?.stop();
    silent.closeAllConnections();
    silent.close();
    await provider?.stop();
    expect(time(), 'stopping does not wait for a provider that never answers').to.be.below(5_000);
  });

  /** Waits for the log line that warns of a connection, and returns it. */
  const warned = async (name: string): Promise<{ level: number; msg: string }> => {
    for (;;) {
      const lines = server.logged().split('\n');
      const found = lines.find(
        (line) => line.includes('nobody can log in') && line.includes(`"connection":"${name}"`),
      );
      if (found !== undefined) return JSON.parse(found);
      await aMoment();
    }
  };

  for (const [name, why] of [
    ['late', /discovery document sent no valid answer/],
    ['elsewhere', /discovery document cannot be reached/],
    ['saml', /metadata of the identity provider cannot be fetched: unreachable/],
    ['borrowed', /has no client_id/],
  ] as const) {
    it(`runs at the start, and logs a warning with the connection and the cause: ${name}`, async () => {
      const { msg } = await warned(name);
      expect(msg).to.contain(`the connection ${name} now`).and.match(why);
      expect(server.logged()).not.to.contain('upstream-secret');
    });
  }

  it('does not run for a connection that no application has enabled', async () => {
    await warned('saml');
    expect(server.logged()).not.to.contain('"connection":"unused"');
  });

  it('does not keep a login from trying the provider again', async () => {
    await warned('late');
    const agent = createAgent(server);
    const refused = await authorize(agent, webRequest({ connection: 'late' }));
    expect(responseOf(await follow(agent, refused, server.url))).to.include({ error: 'invalid_request' });
    provider.instead = {};
    expect(await logInUpstream(server, { connection: 'late' })).to.have.property('code');
  });

  it('runs for GET /connections/{id}/status, which returns what is wrong', async () => {
    const statusOf = async (name: string) => {
      const found = await callApi(server, 'GET', `/connections?name=${name}`);
      const [{ id = '' } = {}] = (await found.json()) as { id?: string }[];
      const answer = await callApi(server, 'GET', `/connections/${id}/status`);
      return { status: answer.status, text: await answer.text() };
    };
    for (const [name, why] of [
      ['elsewhere', /discovery document cannot be reached/],
      ['saml', /metadata of the identity provider cannot be fetched: unreachable/],
      ['borrowed', /has no client_id/],
      ['directory', /The directory cannot be asked at the moment\. .*ECONNREFUSED/],
    ] as const) {
      const { status, text } = await statusOf(name);
      expect(status, name).to.equal(404);
      expect(text).to.match(why).and.not.contain('upstream-secret').and.not.contain('directory-secret');
    }
    provider.instead = { [DOCUMENT]: (response) => response.writeHead(503).end() };
    expect((await statusOf('late')).status).to.equal(404);
    provider.instead = {};
    expect((await statusOf('late')).status).to.equal(200);
    expect((await statusOf('users')).status).to.equal(200);
  });

  it('runs in the background when the Management API creates or changes a connection', async () => {
    const { enabled_clients: _, ...connectionRecord } = openId('made', NOBODY);
    const answer = await callApi(server, 'POST', '/connections', connectionRecord);
    expect(answer.status).to.equal(201);
    await warned('made');
    const { id, options } = (await answer.json()) as { id: string; options: object };
    const changed = { ...options, discovery_url: `${provider.url}${DOCUMENT}` };
    const before = provider.count(DOCUMENT);
    expect((await callApi(server, 'PATCH', `/connections/${id}`, { options: changed })).status).to.equal(200);
    while (provider.count(DOCUMENT) === before) await aMoment();
  });
});

describe('SAML metadata in a tenant file', () => {
  it('is validated at the start, which fails and names the connection', async () => {
    const faulty = {
      ...tenant,
      connections: [connection('saml', 'samlp', { metadataXml: '<EntityDescriptor/>' })],
    };
    // The schema of the tenant file does not check metadata.
    expect(readTenant(faulty).tenant.connections).to.have.length(1);
    const thrown = await startServer({ tenant: faulty }).catch((fault: unknown) => fault);
    expect(JSON.stringify(thrown)).to.contain(
      'connections[0].options.metadataXml: The metadata must describe',
    );
  });
});
