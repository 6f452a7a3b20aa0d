// The development pages are only for requests from this machine, under its own name.
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { isLoopback } from '../../src/http/loopback.ts';
import { readSettings } from '../../src/settings/index.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { startServer, type TestServer } from '../support/server.ts';

const PAGES = [
  '/',
  '/dev/inbox',
  '/dev/inbox.json',
  '/dev/scripts',
  '/dev/scripts.json',
  '/dev/callback',
  '/openapi.json',
];

/** Sends a request unchanged, whatever its Host header is. @returns the status and the text. */
function ask(port: number, path: string, headers: Record<string, string>) {
  return new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path, headers }, async (answer) =>
        resolve({ status: answer.statusCode, body: await text(answer) }),
      )
      .on('error', reject);
  });
}

describe('the development pages', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const sendCode = (url: string, ca: string) =>
    createAgent({ url, ca }).request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'email', email: 'owner@example.test', send: 'code' },
    });

  describe('of a public address', () => {
    for (const [BASE_URL, HOST] of [
      ['https://login.example.com', '127.0.0.1'],
      ['https://localhost.example.com', '127.0.0.1'],
      ['https://203.0.113.7:3000', '0.0.0.0'],
      ['https://[2001:db8::1]', '127.0.0.1'],
    ] as const) {
      it(`are not served at ${BASE_URL}, without NODE_ENV, and the log says why and where messages are`, async () => {
        server = await startServer({ tenant, env: { BASE_URL, HOST } });
        const local = { url: `https://localhost:${server.settings.port}`, ca: server.ca };
        const agent = createAgent(local);
        expect((await sendCode(local.url, server.ca)).status).to.equal(200);
        for (const path of PAGES) {
          for (const host of [new URL(BASE_URL).host, new URL(local.url).host]) {
            const answer = await agent.get(path, { host });
            expect(answer.status, `${path} as ${host}`).to.equal(404);
            expect(answer.text).not.to.contain('owner@example.test');
          }
        }
        const outbox = join(server.dataDir, 'outbox');
        expect(await readdir(outbox)).to.have.length(1);
        const reported = server
          .logged()
          .split('\n')
          .find((line) => line.includes('development pages'));
        expect(JSON.parse(reported ?? '{}')).to.include({ level: 40, baseUrl: BASE_URL, outbox });
        expect(server.logged()).to.contain('NODE_ENV=production would refuse this: users: development users');
      });
    }

    it('have no "Try login" application either', async () => {
      server = await startServer({ tenant, env: { BASE_URL: 'https://login.example.com' } });
      const agent = createAgent({ url: `https://localhost:${server.settings.port}`, ca: server.ca });
      const answer = await agent.get(
        `/authorize?${new URLSearchParams({
          client_id: 'gatehouse-try-login',
          response_type: 'code',
          redirect_uri: 'https://login.example.com/dev/callback',
          code_challenge: 'x'.repeat(43),
          code_challenge_method: 'S256',
        })}`,
        { host: 'login.example.com' },
      );
      expect(answer.status).to.equal(400);
      expect(existsSync(join(server.dataDir, 'outbox'))).to.equal(false);
    });
  });

  describe('of this machine', () => {
    it("are served on every loopback address, to a request for the server's own name", async () => {
      server = await startServer({ tenant, env: { BASE_URL: 'https://login.localhost:8443' } });
      const agent = createAgent({ url: `https://localhost:${server.settings.port}`, ca: server.ca });
      for (const path of PAGES) {
        expect((await agent.get(path, { host: 'login.localhost:8443' })).status, path).to.equal(200);
      }
    });

    it('are not served under another name that resolves to this machine (DNS rebinding)', async () => {
      server = await startServer({ tenant });
      const agent = createAgent(server);
      for (const path of PAGES) {
        for (const host of [
          'evil.example',
          `evil.example:${server.settings.port}`,
          'localhost',
          '127.0.0.1',
        ]) {
          expect((await agent.get(path, { host })).status, `${path} as ${host}`).to.equal(404);
          const posted = await agent.request(path, { form: {}, headers: { host } });
          expect(posted.status, `post to ${path} as ${host}`).to.be.oneOf([404, 405]);
        }
        expect((await agent.get(path, { 'x-forwarded-host': 'evil.example' })).status).to.equal(200);
      }
    });

    it('are not served through a tunnel or a proxy, whatever address the server listens on', async () => {
      server = await startServer({ tenant, env: { HOST: '0.0.0.0' } });
      const agent = createAgent(server);
      const forwarded = [
        { 'x-forwarded-for': '203.0.113.7' },
        { 'x-forwarded-for': '203.0.113.7:51008' },
        { 'x-forwarded-for': '127.0.0.1, 192.168.1.7' },
        { 'x-forwarded-for': '127.0.0.1.example' },
        { 'x-real-ip': '10.0.0.1' },
        { forwarded: 'for=127.0.0.1' },
      ];
      for (const path of PAGES) {
        expect((await agent.get(path)).status, path).to.equal(200);
        expect(
          (await agent.get(path, { 'x-forwarded-for': '127.0.0.1:51008, [::1]:443, ::1' })).status,
          path,
        ).to.equal(200);
        for (const headers of forwarded) {
          expect((await agent.get(path, headers)).status, JSON.stringify(headers)).to.equal(404);
        }
      }
    });

    it('are not served to clients of a trusted proxy on this machine', async () => {
      const env = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://localhost:8443' };
      server = await startServer({ tenant, env });
      const requestAs = (client: string) =>
        ask(server.settings.port, '/dev/inbox.json', {
          host: 'localhost:8443',
          'x-forwarded-proto': 'https',
          'x-forwarded-for': client,
        });
      expect((await requestAs('127.0.0.1')).status).to.equal(200);
      expect((await requestAs('198.51.100.9')).status).to.equal(404);
    });
  });
});

describe('isLoopback()', () => {
  for (const host of [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'a.b.localhost',
    '127.0.0.1',
    '127.9.8.7',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:0:0:1',
  ]) {
    it(`is true for ${host}`, () => expect(isLoopback(host)).to.equal(true));
  }
  for (const host of [
    '',
    'localhost.example.com',
    'notlocalhost',
    '.localhost',
    '127.0.0.1.example.com',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
    '127.1',
    '[::1',
    '192.168.0.1',
    'unknown',
  ]) {
    it(`is false for "${host}"`, () => expect(isLoopback(host)).to.equal(false));
  }

  it('is true for the host of the default base URL', () => {
    expect(isLoopback(new URL(readSettings({}).baseUrl).hostname)).to.equal(true);
  });
});
