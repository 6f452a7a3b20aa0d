// Refused logouts are logged, so that an operator can find the reason, without filling the log.
import { expect } from 'chai';
import { PASSWORD_REQUEST } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logoutTenant } from './support.ts';

const MINUTE = 60_000;

describe('log events of refused logouts', () => {
  let server: TestServer;
  let send: (path: string, ip: string) => Promise<number>;

  beforeEach(async () => {
    const tenant = logoutTenant();
    const saml = {
      client_id: 'saml',
      name: 'SAML',
      callbacks: ['https://sp.test/acs'],
      addons: { samlp: {} },
    };
    server = await startServer({
      tenant: { ...tenant, clients: [...tenant.clients, saml] },
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' },
    });
    send = async (path, ip) => {
      const answer = await fetch(`http://127.0.0.1:${server.settings.port}${path}`, {
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip },
        redirect: 'manual',
      });
      await answer.arrayBuffer();
      return answer.status;
    };
  });
  afterEach(() => server.stop());

  const V2 = '/v2/logout?returnTo=https://evil.example/';
  const OIDC = '/oidc/logout?client_id=nobody';
  const SLO = '/samlp/saml/logout?SAMLRequest=x';
  const LOGIN = '/samlp/saml?SAMLRequest=x';
  async function recorded(type: string) {
    // The response does not wait for the event.
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    return records.filter((event) => event.type === type);
  }
  async function refused(paths: readonly string[], ips: readonly string[]): Promise<void> {
    for (const ip of ips) for (const path of paths) expect(await send(path, ip)).to.equal(400);
  }
  const times = <T>(count: number, make: (index: number) => T) =>
    Array.from({ length: count }, (_, i) => make(i));

  it('are limited to ten for one address', async () => {
    await refused(
      times(40, (i) => [V2, OIDC, SLO][i % 3]!),
      ['192.0.2.1'],
    );
    const events = await recorded('flo');
    expect(events).to.have.length(10);
    expect(events[0]?.description).to.include('returnTo');
    expect(events[0]?.ip).to.equal('192.0.2.1');
  });

  it('contain the number of those left out, once there is room again', async () => {
    await refused(
      times(25, () => V2),
      ['192.0.2.1'],
    );
    server.tick(11 * MINUTE);
    await refused([V2, V2], ['192.0.2.1']);
    const events = await recorded('flo');
    expect(events).to.have.length(11);
    expect(events.at(-1)?.details).to.deep.equal({ left_out: 15 });
    expect(events.slice(0, 10).every(({ details }) => details === undefined)).to.equal(true);
  });

  it('are limited for a network together, without limiting others', async () => {
    await refused(
      [V2],
      times(30, (i) => `2001:db8:0:1::${(i + 1).toString(16)}`),
    );
    expect(await recorded('flo')).to.have.length(10);
    await refused([V2], ['2001:db8:0:2::1', '192.0.2.9']);
    expect(await recorded('flo')).to.have.length(12);
  });

  it('are limited overall, from any number of addresses', async () => {
    await refused(
      [V2],
      times(130, (i) => `198.51.100.${i}`),
    );
    expect(await recorded('flo')).to.have.length(100);
    server.tick(10 * MINUTE);
    await refused(
      [V2],
      times(30, (i) => `203.0.113.${i}`),
    );
    const events = await recorded('flo');
    expect(events.length).to.be.within(109, 111);
  });

  it('have a limit apart from that of refused SAML logins', async () => {
    await refused(
      times(30, () => LOGIN),
      ['192.0.2.1'],
    );
    await refused([SLO], ['192.0.2.1']);
    expect([(await recorded('f')).length, (await recorded('flo')).length]).to.deep.equal([10, 1]);
  });

  it('do not displace events of users', async () => {
    await refused(
      times(120, () => V2),
      ['192.0.2.1'],
    );
    const token = await fetch(`http://127.0.0.1:${server.settings.port}/oauth/token`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '192.0.2.1',
      },
      body: JSON.stringify({
        ...PASSWORD_REQUEST,
      }),
    });
    expect(token.status).to.equal(200);
    expect((await recorded('sepft')).length + (await recorded('s')).length).to.be.at.least(1);
  });
});
