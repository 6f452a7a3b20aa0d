// /console: the activity of the tenant, and what needs attention.
import { expect } from 'chai';
import type { LogEventRecord } from '../../src/records/base/log-events.ts';
import type { AdministratorRole } from '../../src/records/users/administrators.ts';
import { eventIdAt } from '../../src/tenant/events.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { aMoment } from '../support/wait-until.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const HOSTILE = '<img src=x onerror=alert(1)></title><script>alert(2)</script>';

describe('the overview of the console', () => {
  let server: TestServer;
  let written = 0;

  afterEach(() => server.stop());
  const start = async (over: object = {}) => {
    server = await startConsole({ tenant: { ...tenant, ...over } });
  };
  const logged = async (ago: number, event: Partial<LogEventRecord>) => {
    const at = Date.now() - ago;
    const id = `${eventIdAt(at)}${(++written).toString(16).padStart(24, '0')}`;
    const date = new Date(at).toISOString();
    await server.store.collection('logs').insert({ id, date, type: 's', ...event });
  };
  const page = async (role: AdministratorRole = 'owner', path = '/console') =>
    (await (await openConsole(server, role)).get(path)).text;
  /** Returns the total of a chart, and the values of its table. */
  const chart = (text: string, name: string) => {
    const [found = ''] =
      new RegExp(`<section class="card overview-chart ${name}"[\\s\\S]*?</section>`).exec(text) ?? [];
    const [, total = ''] = /overview-total">(?:<a [^>]*>)?([\d,]+)/.exec(found) ?? [];
    const rows = [...found.matchAll(/<td class="number">([\d,]+)<\/td>/g)].map(([, value]) => Number(value));
    return { total, rows, bars: [...found.matchAll(/<rect /g)].length };
  };
  const attention = (text: string) =>
    /<section aria-labelledby="attention"[\s\S]*?<\/section>/.exec(text)?.[0] ?? '';

  it('counts logins, failures, active users, codes and lockouts of a day, a week and a month', async () => {
    await start();
    for (const [ago, user_id] of [
      [2 * HOUR, 'a'],
      [2 * HOUR + 1, 'a'],
      [3 * DAY, 'b'],
      [20 * DAY, 'c'],
    ] as const)
      await logged(ago, { type: 's', user_id });
    // The console's own administrators are never counted.
    await logged(2 * HOUR, { type: 's', user_id: 'gatehouse|1', connection: 'gatehouse:console' });
    await logged(5 * HOUR, { type: 'fp' });
    await logged(5 * HOUR, { type: 'fu', details: { left_out: 8 } });
    await logged(6 * DAY, { type: 'ss' });
    await logged(HOUR, { type: 'cs' });
    await logged(HOUR, { type: 'limit_wc' });
    const day = await page();
    expect(chart(day, 'logins')).to.include({ total: '2', bars: 1 });
    expect(chart(day, 'logins').rows).to.have.length(24);
    expect(chart(day, 'active').total).to.equal('1');
    expect(chart(day, 'failures').total).to.equal('10');
    expect(chart(day, 'signups').total).to.equal('0');
    expect(chart(day, 'codes').total).to.equal('1');
    expect(chart(day, 'lockouts').total).to.equal('1');
    const week = await page('owner', '/console?range=7d');
    expect(chart(week, 'logins').total).to.equal('3');
    expect(chart(week, 'active').total).to.equal('2');
    expect(chart(week, 'signups').total).to.equal('1');
    const month = await page('owner', '/console?range=30d');
    expect(chart(month, 'logins').total).to.equal('4');
    expect(chart(month, 'active').total).to.equal('3');
    expect(chart(month, 'logins').rows.reduce((sum, one) => sum + one, 0)).to.equal(4);
    expect(month).to.not.contain('style=');
  });

  it('links each number to its events', async () => {
    await start();
    await logged(HOUR, { type: 'fp', user_name: 'counted@example.test' });
    await logged(40 * HOUR, { type: 'fp', user_name: 'earlier@example.test' });
    const { get } = await openConsole(server);
    const [, path = ''] =
      /overview-total"><a href="([^"]*failures[^"]*)"/.exec((await get('/console')).text) ?? [];
    const { text } = await get(path.replaceAll('&amp;', '&'));
    expect(text).to.contain('counted@example.test').and.to.not.contain('earlier@example.test');
    await logged(HOUR, { user_id: 'auth0|ada', user_name: 'active@example.test' });
    const [, logins = ''] =
      /chart-active"[\s\S]*?overview-total"><a href="([^"]*logins[^"]*)"/.exec(
        (await get('/console')).text,
      ) ?? [];
    expect((await get(logins.replaceAll('&amp;', '&'))).text).to.contain('active@example.test');
  });

  it('reports failing messages and Actions, how often they failed, and the last error', async () => {
    await start();
    await logged(3 * HOUR, { type: 'fn', description: 'The mail server did not answer.' });
    await logged(2 * HOUR, { type: 'fn', description: '535 Authentication failed' });
    await logged(HOUR, { type: 'actions_execution_failed', description: 'x is not defined' });
    const text = attention(await page());
    expect(text).to.contain('2 messages could not be sent').and.to.contain('535 Authentication failed');
    expect(text).to.not.contain('did not answer');
    expect(text).to.contain('An Action failed once').and.to.contain('x is not defined');
    server.tick(2 * DAY);
    expect(attention(await page())).to.not.contain('could not be sent');
  });

  it('reports a connection whose users are identified by something that somebody else may get', async () => {
    const adfs = (name: string, user_id_attribute: string) => ({
      name,
      strategy: 'adfs',
      options: { user_id_attribute },
    });
    await start({ connections: [adfs('by-name', 'upn'), adfs('by-guid', 'objectGUID')] });
    const text = attention(await page());
    expect(text).to.contain('The users of by-name are identified by a name or address');
    expect(text).to.not.contain('by-guid');
  });

  it('reports a connection that does not work', async () => {
    const gone = {
      name: 'gone',
      strategy: 'oidc',
      enabled_clients: ['web'],
      options: {
        type: 'back_channel',
        client_id: 'us',
        client_secret: 'a-secret',
        discovery_url: 'https://localhost:9/.well-known/openid-configuration',
      },
    };
    await start({ connections: [gone], tenant: { ...tenant.tenant, enabled_locales: ['en', 'de'] } });
    const owner = await openConsole(server);
    const shown = async () => attention((await owner.get('/console')).text);
    const found = async () => {
      const until = Date.now() + 20_000;
      let text = await shown();
      while (!text.includes('Nobody can log in with the connection gone') && Date.now() < until) {
        await aMoment();
        text = await shown();
      }
      expect(text).to.contain('Nobody can log in with the connection gone now.');
    };
    await found();
    const german = attention((await owner.get('/console', { 'accept-language': 'de' })).text);
    expect(german).to.contain('Der Anbieter ist nicht erreichbar:').and.contain('<span lang="en" dir="ltr">');
    // A changed connection is checked again at once, so that the report is never about an older state.
    const [{ id = '' } = {}] = (
      await server.store.collection('connections').list({ limit: 100 })
    ).records.filter(({ name }) => name === 'gone');
    const switches = (on: Record<string, string>) =>
      owner.post(`/console/connections/${id}/applications`, { page: '0', ...on });
    await switches({ 'was.web': 'true' });
    expect(await shown()).to.not.contain('the connection gone');
    await switches({ 'was.web': 'false', 'application.web': 'true' });
    await found();
  });

  it('reports an old signing key', async () => {
    await start();
    expect(attention(await page())).to.not.contain('signing key');
    server.tick(190 * DAY);
    expect(attention(await page())).to.match(/The signing key RS256 is 1(89|90) days old/);
    expect(attention(await page('support'))).to.not.contain('signing key');
  });

  it('reports a credential of an application that expires soon or has expired', async () => {
    const at = (days: number) => new Date(Date.now() + days * DAY).toISOString();
    await start();
    const web = await server.store.collection('clients').get('web');
    await server.store.collection('clients').put({
      ...web!,
      name: HOSTILE,
      client_authentication_methods: {
        private_key_jwt: { credentials: [{ id: 'cred_1', expires_at: at(10) }] },
      },
    } as never);
    const soon = await page();
    expect(attention(soon)).to.contain('expires in 10 days');
    expect(soon).to.not.contain('<img src=x').and.to.not.contain('<script>alert');
    server.tick(11 * DAY);
    expect(attention(await page())).to.contain('has expired');
  });

  it('reports administrators without a second factor, to owners only', async () => {
    // The tenant's e-mail factor is enabled, but logins to the console do not use it.
    await start({ guardianFactors: [{ name: 'email', enabled: true }] });
    expect(attention(await page())).to.contain('owner@console.example.test');
    expect(attention(await page('editor'))).to.not.contain('owner@console.example.test');
  });

  it('reports that nothing needs attention', async () => {
    await start();
    expect(attention(await page('viewer'))).to.contain('Nothing needs your attention.');
  });

  it('shows hostile values as text', async () => {
    await start();
    await logged(HOUR, { type: 'fn', description: HOSTILE });
    const text = await page();
    expect(text).to.contain('onerror=alert(1)');
    expect(text).to.not.contain('<img src=x').and.to.not.contain('<script>alert');
  });

  it('shows numbers to the roles that may see them', async () => {
    await start();
    for (const role of ['owner', 'editor', 'viewer'] as const)
      expect(await page(role), role).to.contain('overview-chart');
    const support = await page('support');
    expect(support).to.contain('Needs attention').and.to.not.contain('overview-chart');
  });

  it("is in the reader's language", async () => {
    await start();
    const { get } = await openConsole(server);
    expect((await get('/console?range=30d', { 'accept-language': 'de' })).text).to.contain('Anmeldungen');
    expect((await get('/console', { 'accept-language': 'ar' })).text).to.contain('يحتاج إلى انتباه');
  });
});
