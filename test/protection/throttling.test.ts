// Failed logins from one address, across accounts.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, tenant, USER, webRequest } from '../support/flows.ts';
import { startServer } from '../support/server.ts';
import { served } from './proxied.ts';

const THROTTLED =
  'We have detected suspicious login behavior and further attempts will be blocked. Please contact the administrator.';
const right = { password: USER.password };
const stage = { 'pre-login': { max_attempts: 5, rate: 60_000 } };

describe('an address with failures for many accounts', () => {
  it('is throttled, and regains an attempt from time to time', async () => {
    await served({ suspiciousIpThrottling: { stage } }, async (server, from) => {
      const guess = (i: number) => from('203.0.113.1')({ username: `guess-${i}@example.test` });
      for (let i = 0; i < 5; i++) expect((await guess(i)).status).to.equal(403);
      const refused = await from('203.0.113.1')(right);
      expect(refused).to.deep.equal({
        status: 429,
        error: 'too_many_attempts',
        error_description: THROTTLED,
      });
      expect((await from('203.0.113.2')(right)).status).to.equal(200);
      server.tick(61_000);
      expect((await guess(6)).status).to.equal(403);
      expect((await guess(7)).status).to.equal(429);
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list({ limit: 100 });
      const throttled = records.filter(({ type }) => type === 'limit_mu');
      expect(throttled.map(({ ip }) => ip)).to.deep.equal(['203.0.113.1', '203.0.113.1']);
    });
  });

  it('has no more attempts concurrently', async () => {
    await served({ suspiciousIpThrottling: { stage } }, async (_server, from) => {
      const guess = (_: unknown, i: number) => from('203.0.113.1')({ username: `guess-${i}@example.test` });
      const answers = await Promise.all(Array.from({ length: 40 }, guess));
      expect(answers.filter(({ status }) => status === 403)).to.have.length(5);
      expect(answers.filter(({ status }) => status === 429)).to.have.length(35);
    });
  });

  it('is not forgiven for successful logins to its own account', async () => {
    await served({ suspiciousIpThrottling: { stage } }, async (_server, from) => {
      const login = from('203.0.113.1');
      for (let i = 0; i < 5; i++) {
        expect((await login(right)).status).to.equal(200);
        expect((await login({ username: `guess-${i}@example.test` })).status).to.equal(403);
      }
      expect((await login(right)).status).to.equal(429);
    });
  });

  it('stays throttled across a restart', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-throttled-'));
    const protection = { suspiciousIpThrottling: { stage } };
    try {
      await served(
        protection,
        async (_server, from) => {
          for (let i = 0; i < 5; i++) await from('203.0.113.1')({ username: `guess-${i}@example.test` });
        },
        dataDir,
      );
      const again = async (status: number, ip: string) =>
        served(
          protection,
          async (_server, from) => void expect((await from(ip)(right)).status).to.equal(status),
          dataDir,
        );
      await again(429, '203.0.113.1');
      await again(200, '203.0.113.2');
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  for (const [what, throttling] of [
    ['throttling is off', { enabled: false, stage }],
    ['no shield blocks', { shields: ['admin_notification'], stage }],
    ['it is on the allow-list', { allowlist: ['203.0.113.0/24'], stage }],
  ] as const) {
    it(`is not throttled when ${what}`, async () => {
      await served({ suspiciousIpThrottling: throttling }, async (_server, from) => {
        for (let i = 0; i < 7; i++) await from('203.0.113.1')({ username: `guess-${i}@example.test` });
        expect((await from('203.0.113.1')(right)).status).to.equal(200);
      });
    });
  }

  it('is shown an error at the hosted page', async () => {
    const server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: { ...tenant.attackProtection, suspiciousIpThrottling: { stage } },
      },
    });
    try {
      const browser = createAgent(server);
      const submit = async (username: string) => {
        const page = await follow(browser, await authorize(browser, webRequest()), server.url);
        const { action, fields } = readForm(page, 'password');
        return browser.request(action, { form: { ...fields, username, password: USER.password } });
      };
      for (let i = 0; i < 5; i++) expect((await submit(`guess-${i}@example.test`)).status).to.equal(400);
      const refused = await submit(USER.email);
      expect(refused.status).to.equal(429);
      expect(refused.text).to.contain('Too many wrong attempts have come from your network');
    } finally {
      await server.stop();
    }
  });
});
