// Limits by path, and their memory use.
import { expect } from 'chai';
import type { Context } from 'koa';
import { createRateLimits, isListed, unknownLimits } from '../../src/capabilities/protection/rate-limit.ts';
import { engineLimits } from '../../src/engine/base/engine-declaration.ts';
import { databaseLimits } from '../../src/features/connections/database/base/database-declaration.ts';
import { passwordlessLimits } from '../../src/features/connections/passwordless/passwordless-declaration.ts';
import { addressKey } from '../../src/http/addresses.ts';
import { LIMITS, ROUTE_LIMITS } from '../../src/server/features.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, tenant, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { itInFiles } from '../support/store.ts';
import { served } from './proxied.ts';

const two = { capacity: 2, perMinute: 60 };

describe('the limit of', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          rateLimits: {
            token: two,
            revoke: two,
            authorize: two,
            hosted: two,
            discovery: two,
            coAuthenticate: two,
            mfaChallenge: two,
            mfaAssociate: two,
            mfaVerify: two,
            logout: two,
            samlp: two,
            other: two,
          },
        },
      },
    });
  });
  after(() => server.stop());

  /** Undefined when the endpoint's feature decides the format itself. */
  const cases: [string, string, object | undefined, 'json' | 'html' | undefined][] = [
    ['/oauth/token', 'token', {}, 'json'],
    ['/oauth/revoke', 'revoke', {}, 'json'],
    ['/authorize', 'authorize', undefined, 'html'],
    ['/u/nothing', 'hosted', undefined, 'html'],
    ['/.well-known/openid-configuration', 'discovery', undefined, 'json'],
    ['/.well-known/jwks.json', 'discovery', undefined, 'json'],
    ['/co/authenticate', 'coAuthenticate', {}, 'json'],
    ['/mfa/challenge', 'mfaChallenge', {}, undefined],
    ['/mfa/associate', 'mfaAssociate', {}, undefined],
    ['/mfa/authenticators', 'mfaVerify', undefined, undefined],
    ['/v2/logout', 'logout', undefined, 'html'],
    ['/oidc/logout', 'logout', undefined, 'html'],
    ['/samlp/spa', 'samlp', undefined, 'html'],
    ['/userinfo', 'other', undefined, 'json'],
    ['/nothing/here', 'other', undefined, 'json'],
  ];
  for (const [path, name, json, shape] of cases) {
    it(`${path} is ${name}, with headers on every answer`, async () => {
      server.tick(3_600_000);
      const agent = createAgent(server);
      const target = path === '/authorize' ? `${path}?${new URLSearchParams(webRequest())}` : path;
      const ask = () => agent.request(target, json === undefined ? {} : { json });
      const [first, second, third] = [await ask(), await ask(), await ask()];
      expect([first.status, second.status]).not.to.include(429);
      expect(first.headers).to.include({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' });
      expect(second.headers['x-ratelimit-remaining']).to.equal('0');
      expect(third.status).to.equal(429);
      expect(third.headers['retry-after']).to.equal('1');
      if (shape === 'json') {
        expect(third.json()).to.deep.equal({
          error: 'too_many_requests',
          error_description:
            'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.',
        });
      } else if (shape === 'html') {
        expect(third.headers['content-type']).to.match(/^text\/html/);
        expect(third.text).to.contain('One moment, please');
      }
      server.tick(1_000);
      expect((await ask()).status).not.to.equal(429);
    });
  }
});

describe('limits by address', () => {
  const one = { capacity: 1, perMinute: 1 };

  it('are shared by a /64 of IPv6, whatever forwarded address the client claims', async () => {
    await served({ rateLimits: { signup: one } }, async (_server, _from, post) => {
      const signUp = async (ip: string) => (await post(ip, '/dbconnections/signup', {})).status;
      expect(await signUp('2001:db8:0:1::1')).to.equal(400);
      expect(await signUp('2001:db8:0:1:ffff::2')).to.equal(429);
      expect(await signUp('2001:db8:0:2::1, 2001:db8:0:1::3')).to.equal(429);
      expect(await signUp('2001:db8:0:2::1')).to.equal(400);
    });
  });

  it('show in the headers the one with the fewest requests left when several apply', async () => {
    const rateLimits = { other: { capacity: 3, perMinute: 1 }, signup: { capacity: 5, perMinute: 1 } };
    const server = await startServer({ tenant: { ...tenant, attackProtection: { rateLimits } } });
    try {
      const signUp = () => createAgent(server).request('/dbconnections/signup', { json: {} });
      expect((await signUp()).headers).to.include({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2' });
      server.tick(120_000);
      for (let i = 0; i < 3; i++) expect((await signUp()).status).to.equal(400);
      const refused = await signUp();
      expect(refused.status).to.equal(429);
      expect(refused.headers).to.include({ 'x-ratelimit-limit': '3', 'retry-after': '60' });
    } finally {
      await server.stop();
    }
  });

  it('apply to sign-ups at the hosted page, which shows an error', async () => {
    const server = await startServer({
      tenant: { ...tenant, attackProtection: { rateLimits: { signup: one } } },
    });
    try {
      await createAgent(server).request('/dbconnections/signup', { json: {} });
      const browser = createAgent(server);
      const page = await follow(
        browser,
        await authorize(browser, webRequest({ screen_hint: 'signup' })),
        server.url,
      );
      const { action, fields } = readForm(page, 'email');
      const email = 'flood@example.test';
      const answer = await browser.request(action, { form: { ...fields, email, password: USER.password } });
      expect(answer.status).to.equal(429);
      expect(answer.text).to.contain('Too many attempts. Wait a minute').and.to.contain(email);
      expect(await server.users.findInConnection({ name: 'users' }, email)).to.equal(undefined);
    } finally {
      await server.stop();
    }
  });
});

describe('attackProtection in the tenant file', () => {
  it('warns of misspelt names at any depth', () => {
    const bucket = { capacity: 1, perMinute: 1 };
    const { tenant: read, warnings } = readTenant({
      ...tenant,
      attackProtection: {
        bruteForceProtection: { max_attempt: 5 },
        suspiciousIpThrottling: { stage: { 'pre-logn': {} } },
        rateLimits: { tokens: bucket, token: bucket },
      },
    });
    const all = [...warnings, ...unknownLimits(read, LIMITS)];
    expect(all.map((warning) => warning.split(' ')[0])).to.deep.equal([
      'attackProtection.bruteForceProtection.max_attempt',
      'attackProtection.suspiciousIpThrottling.stage.pre-logn',
      'attackProtection.rateLimits.tokens',
    ]);
  });

  for (const [what, attackProtection] of [
    ['bruteForceProtection.max_attempts', { bruteForceProtection: { max_attempts: 0 } }],
    ['bruteForceProtection.max_attempts', { bruteForceProtection: { max_attempts: 101 } }],
    ['bruteForceProtection.mode', { bruteForceProtection: { mode: 'count' } }],
    ['bruteForceProtection.allowlist.0', { bruteForceProtection: { allowlist: ['10.0.0.0/33'] } }],
    ['suspiciousIpThrottling.allowlist.0', { suspiciousIpThrottling: { allowlist: ['example.test'] } }],
    ['rateLimits.token.capacity', { rateLimits: { token: { capacity: 0, perMinute: 1 } } }],
    ['rateLimits.token.perMinute', { rateLimits: { token: { capacity: 1, perMinute: 0 } } }],
  ] as const) {
    it(`is rejected for ${what}: ${JSON.stringify(attackProtection)}`, () => {
      const read = () => readTenant({ ...tenant, attackProtection });
      const faults = (() => {
        try {
          return read().warnings;
        } catch (thrown) {
          return thrown instanceof TenantFault ? thrown.faults : [String(thrown)];
        }
      })();
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(new RegExp(`^attackProtection.${what}: `));
    });
  }
});

describe('client addresses', () => {
  for (const [ip, key] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['::203.0.113.7', '0:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ]) {
    it(`${ip} is counted as ${key}`, () => expect(addressKey(ip ?? '')).to.equal(key));
  }

  it('are found in lists of addresses and ranges', () => {
    const list = ['203.0.113.0/24', '2001:db8::/32', '198.51.100.1'];
    expect(
      ['203.0.113.9', '::ffff:203.0.113.9', '2001:db8::1', '198.51.100.1'].map((ip) => isListed(list, ip)),
    ).to.deep.equal([true, true, true, true]);
    expect(
      ['203.0.114.1', '2001:db9::1', '198.51.100.2', '', 'x'].map((ip) => isListed(list, ip)),
    ).to.deep.equal(Array(5).fill(false));
  });
});

describe('the counters of limits', () => {
  itInFiles(
    'stay bounded after requests from 200,000 addresses, which do not unblock an account',
    async () => {
      const server = await startServer({ tenant });
      try {
        const config = await openConfig(server.store);
        // Ahead of the server's clock, so that it does not purge these counters while a slow machine fills them.
        const now = Date.now() + 3_600_000;
        const limits = createRateLimits({
          store: server.store,
          config,
          clock: () => now,
          routeLimits: ROUTE_LIMITS,
        });
        const headers = new Headers();
        const ctx = {
          set: (name: string, value: string) => headers.set(name, value),
          res: { setHeader: (name: string, value: string) => headers.set(name, value) },
          response: { get: () => '' },
        } as unknown as Context;
        const address = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
        await limits.take(ctx, passwordlessLimits.passwordlessDestination, 'a victim');
        const login = async (password: string) =>
          (
            await token(createAgent(server), {
              grant_type: 'password',
              client_id: 'web',
              client_secret: 'web-secret',
              username: USER.email,
              password,
            })
          ).json().error;
        for (let i = 0; i < 10; i++) expect(await login('wrong')).to.equal('invalid_grant');
        // In the store, and in the process: the first address of the flood is evicted, a late one is not.
        for (const [limit, left] of [
          [databaseLimits.changePassword, 8],
          [engineLimits.authorize, 598],
        ] as const) {
          const remaining = async (i: number) => {
            await limits.take(ctx, limit, address(i));
            return Number(headers.get('X-RateLimit-Remaining'));
          };
          for (let i = 0; i < 200_000; i++) await limits.take(ctx, limit, address(i));
          expect(await remaining(199_999), limit.name).to.equal(left);
          expect(await remaining(0), limit.name).to.equal(left + 1);
        }
        expect(await server.store.collection('limits').count()).to.be.at.most(20_010);
        await limits.take(ctx, passwordlessLimits.passwordlessDestination, 'a victim');
        expect(headers.get('X-RateLimit-Remaining'), 'another limit keeps its counters').to.equal('8');
        expect(await login(USER.password)).to.equal('too_many_attempts');
      } finally {
        await server.stop();
      }
    },
  );
});
