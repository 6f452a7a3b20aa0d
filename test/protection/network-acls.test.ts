// Network access control lists: which requests they allow, block, redirect and record.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { readTenant } from '../../src/tenant/load.ts';
import { authorizeAs, managementToken, startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { follow, tenant, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const BASE_URL = 'https://login.example.test';
const EDGE = 'edge.example.test';
const KEY = 'a-key-of-the-edge-that-is-long-enough-to-be-one';
const proxy = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL };

interface Acl {
  description: string;
  active: boolean;
  priority?: number;
  rule: { action: object; scope: string; match?: object; not_match?: object };
}

const acl = (rule: Partial<Acl['rule']>, priority = 1, more: Partial<Acl> = {}): Acl => ({
  description: `list ${priority}`,
  active: true,
  priority,
  rule: { action: { block: true }, scope: 'tenant', ...rule },
  ...more,
});

/** Requests a path as if from an address. */
type From = (ip: string, path?: string, headers?: Record<string, string>) => Promise<Response>;

const JWKS = '/.well-known/jwks.json';

/** Runs a test with a server that has these lists. */
async function served(networkACLs: readonly Acl[], run: (from: From, server: TestServer) => Promise<void>) {
  const server = await startServer({
    env: proxy,
    tenant: {
      tenant: { friendly_name: 'Lists' },
      clients: [],
      networkACLs,
      customDomains: [{ domain: EDGE, api_key: KEY, custom_client_ip_header: 'x-client' }],
    },
  });
  const from: From = (ip, path = JWKS, headers = {}) =>
    fetch(`http://127.0.0.1:${server.settings.port}${path}`, {
      redirect: 'manual',
      headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip, ...headers },
    });
  try {
    await run(from, server);
  } finally {
    await server.stop();
  }
}

describe('network ACLs', () => {
  it('block the addresses that they match, of either version, and nobody else', async () => {
    const match = { ipv4_cidrs: ['203.0.113.0/24', '198.51.100.7'], ipv6_cidrs: ['2001:db8::/32'] };
    await served([acl({ match })], async (from) => {
      for (const ip of ['203.0.113.9', '198.51.100.7', '2001:db8:1::1', '::ffff:203.0.113.9']) {
        const refused = await from(ip);
        expect(refused.status, ip).to.equal(403);
        expect(await refused.json()).to.include({ error: 'access_denied' });
      }
      for (const ip of ['198.51.100.8', '2001:db9::1']) expect((await from(ip)).status, ip).to.equal(200);
    });
  });

  it('show a person who is blocked that they are, and do not blame an application', async () => {
    await served([acl({ match: { user_agents: ['badbot'] } })], async (from) => {
      const refused = await from('192.0.2.1', '/authorize', { accept: 'text/html', 'user-agent': 'badbot' });
      expect(refused.status).to.equal(403);
      expect(await refused.text())
        .to.contain('<h1>You cannot get in from here</h1>')
        .and.contain('A network access control list does not allow this request.');
    });
  });

  it('block whoever they do not match with not_match', async () => {
    const rule = { not_match: { ipv4_cidrs: ['203.0.113.0/24'], ipv6_cidrs: ['2001:db8::/32'] } };
    await served([acl(rule)], async (from) => {
      expect((await from('203.0.113.9')).status).to.equal(200);
      expect((await from('2001:db8::1')).status).to.equal(200);
      expect((await from('198.51.100.7')).status).to.equal(403);
      expect((await from('2001:db9::1')).status).to.equal(403);
    });
  });

  it('need every signal, and are asked by priority until one applies', async () => {
    const lists = [
      acl({ match: { ipv4_cidrs: ['203.0.113.0/24'], user_agents: ['Curl'] } }, 2),
      acl({ action: { allow: true }, match: { ipv4_cidrs: ['203.0.113.1'] } }, 1),
    ];
    await served(lists, async (from) => {
      const curl = { 'user-agent': 'curl/8.1' };
      expect((await from('203.0.113.2', JWKS, curl)).status).to.equal(403);
      expect((await from('203.0.113.2')).status).to.equal(200);
      expect((await from('198.51.100.7', JWKS, curl)).status).to.equal(200);
      expect((await from('203.0.113.1', JWKS, curl)).status).to.equal(200);
    });
  });

  it('reach the Management API, everything else, or both, and never the console and the probes', async () => {
    const match = { ipv4_cidrs: ['203.0.113.1'] };
    const found = async (scope: string) => {
      const statuses: number[] = [];
      await served([acl({ scope, match })], async (from) => {
        for (const path of ['/api/v2/clients', '/api/v2/unknown', JWKS, '/unknown', '/console', '/healthz'])
          statuses.push((await from('203.0.113.1', path)).status);
      });
      return statuses;
    };
    expect(await found('management')).to.deep.equal([403, 403, 200, 404, 303, 200]);
    expect(await found('authentication')).to.deep.equal([401, 404, 403, 403, 303, 200]);
    expect(await found('tenant')).to.deep.equal([403, 403, 403, 403, 303, 200]);
    expect(await found('dcr')).to.deep.equal([401, 404, 200, 404, 303, 200]);
    for (const scope of ['dcr', 'dynamic_client_registration'])
      await served([acl({ scope, match })], async (from) => {
        for (const path of ['/oidc/register', '/oidc/register/tpc_x'])
          expect((await from('203.0.113.1', path)).status, `${scope} ${path}`).to.equal(403);
      });
  });

  it('redirect, and only record while they log', async () => {
    const redirect = { redirect: true, redirect_uri: 'https://example.test/blocked' };
    const lists = [
      acl({ action: { block: true, log: true }, match: { ipv4_cidrs: ['203.0.113.0/24'] } }, 1),
      acl({ action: redirect, match: { ipv4_cidrs: ['203.0.113.1'] } }, 2),
      acl({ action: { block: true }, match: { ipv4_cidrs: ['203.0.113.2'] } }, 3, { active: false }),
    ];
    await served(lists, async (from, server) => {
      const sent = await from('203.0.113.1');
      expect(sent.status).to.equal(302);
      expect(sent.headers.get('location')).to.equal(redirect.redirect_uri);
      expect((await from('203.0.113.2')).status).to.equal(200);
      expect((await from('198.51.100.7')).status).to.equal(200);
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list({ limit: 100 });
      const recorded = records.filter(({ type }) => type === 'acls_summary');
      expect(recorded.map(({ ip, description }) => [ip, description])).to.have.deep.members([
        ['203.0.113.1', 'list 1'],
        ['203.0.113.1', 'list 2'],
        ['203.0.113.2', 'list 1'],
      ]);
    });
  });

  it('match the host that was requested, and the edge that connected', async () => {
    const lists = [
      acl({ match: { hostnames: ['Login.example.test'], ipv4_cidrs: ['203.0.113.1'] } }, 1),
      acl({ match: { connecting_ipv4_cidrs: ['192.0.2.1'] } }, 2),
    ];
    await served(lists, async (from, server) => {
      expect((await from('203.0.113.1')).status).to.equal(403);
      // fetch sends no other Host than that of its URL.
      const atEdge = async (edge: string, client: string) => {
        const sent = { 'x-forwarded-proto': 'https', 'x-forwarded-for': edge, 'x-client': client };
        const headers = { ...sent, host: EDGE, 'cname-api-key': KEY };
        const [answer] = await once(
          get(`http://127.0.0.1:${server.settings.port}${JWKS}`, { headers }),
          'response',
        );
        (answer as IncomingMessage).resume();
        return (answer as IncomingMessage).statusCode;
      };
      expect(await atEdge('198.51.100.1', '203.0.113.1')).to.equal(200);
      expect(await atEdge('192.0.2.1', '198.51.100.1')).to.equal(403);
      expect(await atEdge('198.51.100.1', '192.0.2.1')).to.equal(200);
    });
  });

  it('with signals that are not known here apply to nobody, and the tenant file warns of that', async () => {
    const match = { asns: [64496], ipv4_cidrs: ['203.0.113.1'] };
    const { warnings } = readTenant({ networkACLs: [acl({ match })] });
    expect(warnings.join()).to.include('networkACLs[0]: the network ACL "list 1" applies to no request');
    await served([acl({ match })], async (from) => {
      expect((await from('203.0.113.1')).status).to.equal(200);
    });
  });

  it('with a misspelt signal in the tenant file apply to nobody: without it they would apply to more', async () => {
    const match = { user_agents: ['monitor'], ipv4_cidr: ['192.0.2.1'] };
    const lists = [
      acl({ action: { allow: true }, match }, 1),
      acl({ not_match: { ipv4_cidrs: ['192.0.2.0/24'] } }, 2),
      acl({ match: { user_agents: ['robot'] }, excluding: { ipv4_cidrs: ['192.0.2.7'] } } as object, 3),
    ];
    await served(lists, async (from, server) => {
      expect((await from('203.0.113.9', JWKS, { 'user-agent': 'monitor' })).status).to.equal(403);
      expect((await from('192.0.2.7', JWKS, { 'user-agent': 'robot' })).status).to.equal(200);
      for (const [list, name] of ['1 ipv4_cidr', '3 excluding'].map((one) => one.split(' ')))
        expect(server.logged()).to.include(
          `the network ACL \\"list ${list}\\" applies to no request: this server does not know ${name}`,
        );
    });
  });

  it('without signals in the tenant file apply to nobody', async () => {
    await served([acl({ match: { ipv4_cidr: ['192.0.2.1'] } }), acl({ match: {} }, 2)], async (from) => {
      expect((await from('203.0.113.9')).status).to.equal(200);
    });
  });
});

describe('network ACLs that refuse everybody', () => {
  it('let administrators log in to the console, and nobody log in elsewhere', async () => {
    const everybody = { ipv4_cidrs: ['0.0.0.0/0'], ipv6_cidrs: ['::/0'] };
    const server = await startConsole({ tenant: { ...tenant, networkACLs: [acl({ match: everybody })] } });
    try {
      const browser = createAgent(server);
      const page = await follow(browser, await browser.get('/console'), server.url);
      const { action } = readForm(page, 'password');
      expect((await browser.get(action)).status).to.equal(200);
      expect((await openConsole(server)).agent).to.be.an('object');
      // Not an application, and not without the browser of the login.
      for (const [agent, path] of [
        [browser, `/authorize?${new URLSearchParams(webRequest())}`],
        [browser, '/userinfo'],
        [createAgent(server), action],
        [createAgent(server), '/u/unknown/login'],
      ] as const)
        expect((await agent.get(path)).status, path).to.equal(403);
    } finally {
      await server.stop();
    }
  });
});

describe('the Management API’s network ACLs', () => {
  let server: TestServer;
  let token: string;
  before(async () => {
    server = await startManaged({ clients: [] });
    token = await managementToken(server);
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown) =>
    authorizeAs(server, token, method, path, body);

  it('are in force with the next request, until they are switched off', async () => {
    const match = { user_agents: ['forbidden browser'] };
    const created = await call('POST', '/network-acls', acl({ match }));
    expect(created.status).to.equal(201);
    const { id } = (await created.json()) as { id: string };
    const asForbidden = () =>
      fetch(`${server.url}${JWKS}`, { headers: { 'user-agent': 'Forbidden Browser/1' } });
    expect((await asForbidden()).status).to.equal(403);
    expect((await call('PATCH', `/network-acls/${id}`, { active: false })).status).to.equal(200);
    expect((await asForbidden()).status).to.equal(200);
  });

  it('name in the log what is not known here', async () => {
    const list = acl({ match: { asns: [64496], geo_country_codes: ['DE'] } }, 3);
    expect((await call('POST', '/network-acls', list)).status).to.equal(201);
    const warning =
      'the network ACL \\"list 3\\" applies to no request: this server does not know asns, geo_country_codes';
    expect(server.logged()).to.include(warning);
  });

  it('are refused when they would apply to every request, or are malformed', async () => {
    const faults: [Partial<Acl['rule']>, RegExp][] = [
      [{}, /needs signals/],
      [{ match: {} }, /needs signals/],
      [{ match: { ipv4_cidrs: ['203.0.113.0/33'] } }, /must be an IP address or a range/],
      [{ match: { ipv4_cidrs: [] } }, /ipv4_cidrs/],
      [{ match: { addresses: ['203.0.113.1'] } }, /addresses/],
      [{ action: { redirect: true }, match: { hostnames: ['a'] } }, /requires a `redirect_uri`/],
      [
        { action: { redirect: true, redirect_uri: 'javascript:alert(1)' }, match: { hostnames: ['a'] } },
        /redirect_uri/,
      ],
      [{ action: {}, match: { hostnames: ['a'] } }, /allow, block, log or redirect/],
      [{ match: { auth0_managed: ['auth0.made_up'] } }, /Invalid curated list name\(s\): auth0.made_up/],
      [{ match: { asns: [1, 1] } }, /Array items are not unique \(indexes 0 and 1\)/],
    ];
    for (const [rule, message] of faults) {
      const refused = await call('POST', '/network-acls', acl(rule));
      expect(refused.status, String(message)).to.equal(400);
      expect(((await refused.json()) as { message: string }).message).to.match(message);
    }
  });
});
