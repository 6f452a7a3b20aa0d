// Registrations from many addresses, behind a proxy that the server trusts: whom they push out.
import { expect } from 'chai';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const WIDE = { capacity: 1e6, perMinute: 1e6 };
/** How many registrations that nobody has used the server keeps. */
const KEPT = 40;

describe('registrations from many addresses', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { enable_dynamic_client_registration: true } },
        attackProtection: { rateLimits: { ...tenant.attackProtection.rateLimits, registration: WIDE } },
      },
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' },
      boundsScale: KEPT / 5_000,
    });
  });
  after(() => server.stop());

  /** @param forwarded what the proxy sends: what it was sent, and after it the address that it has seen. */
  const register = async (forwarded: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${server.settings.port}/oidc/register`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': forwarded,
      },
      body: JSON.stringify({
        redirect_uris: ['https://agent.example.test/callback'],
        token_endpoint_auth_method: 'none',
      }),
    });
    expect(answer.status).to.equal(201);
    return ((await answer.json()) as { client_id: string }).client_id;
  };
  const isKept = async (id: string) => (await server.store.collection('registrations').get(id)) !== undefined;

  for (const [what, address] of [
    ['the addresses of an IPv4 network', (at: number) => `203.0.113.${at + 1}`],
    ['the prefixes of an IPv6 network', (at: number) => `2001:db8:7:${at.toString(16)}::1`],
    ['addresses that the client has made up', (at: number) => `192.0.2.${at}, 203.0.113.9`],
    ['prefixes that the client has made up', (at: number) => `2001:db8:${at.toString(16)}::1, 2001:db8:9::1`],
  ] as const)
    it(`push out none of another network: ${what}`, async () => {
      const others = [await register('198.51.100.7'), await register('2001:db8:ffff::7')];
      for (let at = 0; at < 3 * KEPT; at++) await register(address(at));
      expect(await Promise.all(others.map(isKept))).to.deep.equal([true, true]);
      expect(await server.store.collection('registrations').count()).to.be.at.most(KEPT + 2);
    });
});
