// The host of a request: one name, and nothing but the tenant's own hosts for whoever reads it.
import http from 'node:http';
import { expect } from 'chai';
import { bindActions } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, tenant } from '../support/flows.ts';
import { connect } from '../support/raw.ts';
import { startServer, type TestServer } from '../support/server.ts';

const DOMAIN = 'login.example.test';
const KEY = 'the-api-key-of-the-edge-of-login';
const CLAIM = 'https://example.test/host';
const customDomains = [{ domain: DOMAIN, api_key: KEY }];

describe('the host of a request', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged({ ...tenant, customDomains });
    const code = `exports.onExecuteCredentialsExchange = async (event, api) => {
      api.accessToken.setCustomClaim('${CLAIM}', event.request.hostname);
    };`;
    await bindActions(server, 'credentials-exchange', { code });
  });
  after(() => server.stop());

  /** Returns what an action reads as the host. */
  const read = async (headers: Record<string, string>) => {
    const json = {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    };
    const answer = await createAgent(server).request('/oauth/token', { json, headers });
    expect(answer.status, answer.text).to.equal(200);
    return payload(answer.json().access_token)[CLAIM];
  };
  const statusOf = async (target: string, lines: string[], version = '1.1') => {
    const connection = await connect(server);
    connection.send([`GET ${target} HTTP/${version}`, ...lines, 'Connection: close', '', ''].join('\r\n'));
    return (await connection.closed(2_000)).split(' ')[1];
  };

  it("is the tenant's own or a custom domain for actions, whatever the request names", async () => {
    const { hostname, port } = new URL(server.url);
    for (const host of [`${hostname}:${port}`, `LOCALHOST:${port}`, `localhost.:${port}`])
      expect(await read({ host }), host).to.equal(hostname);
    for (const host of [DOMAIN, `${DOMAIN}:443`, `${DOMAIN}.`, DOMAIN.toUpperCase()])
      expect(await read({ host }), host).to.equal(DOMAIN);
    for (const host of [
      'evil.example',
      `${DOMAIN}.evil.example`,
      `${DOMAIN}:8443`,
      `evil.${DOMAIN}`,
      '169.254.169.254',
      '[::1]:80',
    ])
      expect(await read({ host }), host).to.equal(hostname);
    for (const name of ['x-forwarded-host', 'x-original-host', 'x-host'])
      expect(await read({ [name]: DOMAIN }), name).to.equal(hostname);
    expect(await read({ forwarded: `host=${DOMAIN}` })).to.equal(hostname);
  });

  it('is one: two lines of it, or none, are refused (RFC 9112 §3.2)', async () => {
    const { host } = new URL(server.url);
    expect(await statusOf('/healthz', [`Host: ${host}`])).to.equal('200');
    for (const lines of [
      [`Host: ${host}`, `Host: ${host}`],
      [`Host: ${host}`, `hOST: ${DOMAIN}`],
      [`Host: ${DOMAIN}`, 'X: y', `Host: ${host}`],
      [],
    ])
      expect(await statusOf('/healthz', lines), lines.join()).to.equal('400');
    // HTTP/1.0 knows requests without one.
    expect(await statusOf('/healthz', [], '1.0')).to.equal('200');
  });

  it('is refused where it is none (RFC 9112 §3.2)', async () => {
    for (const host of [
      '',
      'a b',
      'user@localhost',
      'localhost/path',
      'localhost?x',
      'localhost#x',
      'localhost\\x',
      'localhost:port',
      'localhost:99999',
      'localhost:443:443',
      `${DOMAIN},localhost`,
      '%6cogin.example.test',
      'l\u00f6gin.example.test',
      '[::1',
      '::1',
      '[localhost]',
      '999.1.1.1',
      '.',
      '<script>',
    ])
      expect(await statusOf('/healthz', [`Host: ${host}`]), host).to.equal('400');
  });

  it('is that of an absolute request target (RFC 9112 §3.2.2)', async () => {
    const { host } = new URL(server.url);
    expect(await statusOf(`https://${host}/healthz`, [`Host: ${host}`])).to.equal('200');
    for (const [target, named] of [
      [DOMAIN, host],
      [host, DOMAIN],
      ['localhost', host],
      [`user@${host}`, host],
      [`${host}:`, host],
    ])
      expect(await statusOf(`https://${target}/healthz`, [`Host: ${named}`]), target).to.equal('400');
  });

  it('is not chosen by a pseudo-header of HTTP/2, which the server does not speak', async () => {
    const connection = await connect(server);
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    connection.send(preface);
    expect(await connection.closed(2_000)).not.to.contain('200');
    expect(connection.socket.alpnProtocol).to.not.equal('h2');
  });
});

describe('the host of a request with the key of an edge', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://id.example.test' },
      tenant: {
        ...tenant,
        customDomains: [
          { domain: DOMAIN, api_key: KEY },
          { domain: 'other.example.test', api_key: 'the-api-key-of-the-edge-of-other' },
        ],
      },
    });
  });
  after(() => server.stop());

  it('is judged before the key: one that is malformed or double is refused, not taken for our own', async () => {
    const statusOf = (headers: [string, string][]) =>
      new Promise<number>((resolve, reject) => {
        http
          .request({
            port: server.settings.port,
            host: '127.0.0.1',
            path: '/healthz',
            setHost: false,
            headers: [...headers, ['x-forwarded-proto', 'https'], ['cname-api-key', KEY]].flat() as never,
          })
          .on('response', (answer) => resolve(answer.resume().statusCode ?? 0))
          .on('error', reject)
          .end();
      });
    expect(await statusOf([['host', DOMAIN]])).to.equal(200);
    for (const host of [`${DOMAIN}/`, `other.example.test:x`, `x@${DOMAIN}`, `other.example.test, ${DOMAIN}`])
      expect(await statusOf([['host', host]]), host).to.equal(400);
    expect(
      await statusOf([
        ['host', DOMAIN],
        ['Host', 'other.example.test'],
      ]),
    ).to.equal(400);
  });
});
