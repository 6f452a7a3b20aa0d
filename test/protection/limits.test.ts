// Limits that go by path, and their cost in memory.
import { expect } from 'chai';
import type { Context } from 'koa';
import { addressKey, isListed } from '../../src/protection/addresses.ts';
import { createRateLimits } from '../../src/protection/rate-limit.ts';
import { openDirectory } from '../../src/tenant/directory.ts';
import { createAgent } from '../support/agent.ts';
import { tenant, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

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
          },
        },
      },
    });
  });
  after(() => server.stop());

  const cases: [string, string, object | undefined, 'json' | 'html'][] = [
    ['/oauth/token', 'token', {}, 'json'],
    ['/oauth/revoke', 'revoke', {}, 'json'],
    ['/authorize', 'authorize', undefined, 'html'],
    ['/u/nothing', 'hosted', undefined, 'html'],
    ['/.well-known/openid-configuration', 'discovery', undefined, 'json'],
    ['/.well-known/jwks.json', 'discovery', undefined, 'json'],
    ['/co/authenticate', 'coAuthenticate', {}, 'json'],
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
      } else {
        expect(third.headers['content-type']).to.match(/^text\/html/);
        expect(third.text).to.contain('One moment, please');
      }
      server.tick(1_000);
      expect((await ask()).status).not.to.equal(429);
    });
  }
});

describe('client addresses', () => {
  for (const [ip, key] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
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
  it('stay bounded when 200,000 addresses come by', async function () {
    this.timeout(120_000);
    const server = await startServer({ tenant });
    try {
      const directory = await openDirectory(server.store);
      const limits = createRateLimits(server.store, directory, Date.now);
      const headers = new Map<string, string>();
      const ctx = {
        set: (name: string, value: string) => headers.set(name, value),
        response: { get: () => '' },
      } as unknown as Context;
      const address = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
      await limits.take(ctx, 'passwordlessDestination', 'a victim');
      for (let i = 0; i < 200_000; i++) await limits.take(ctx, 'authorize', address(i));
      expect(await server.store.collection('limits').count()).to.be.at.most(20_001);
      await limits.take(ctx, 'authorize', address(199_999));
      expect(headers.get('X-RateLimit-Remaining'), 'a late one is still counted').to.equal('598');
      await limits.take(ctx, 'passwordlessDestination', 'a victim');
      expect(headers.get('X-RateLimit-Remaining'), 'another limit keeps its counters').to.equal('8');
    } finally {
      await server.stop();
    }
  });
});
