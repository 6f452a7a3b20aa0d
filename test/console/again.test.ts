// A form that needs a recent login is kept, and shown to its sender after the login.
import { expect } from 'chai';
import type { Answer } from '../support/agent.ts';
import { readForm } from '../support/agent.ts';
import { addressOf, type ConsoleAgent, openConsole, PASSWORD, startConsole } from '../support/console.ts';
import { follow, tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { sendForm } from './forms.ts';

const AGAIN = '/console/again';
const NEW_PASSWORD = 'Quite-Another-Horse-9';

describe('a form of the console that needs a recent login', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let user: string;
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: UNLIMITED.attackProtection.rateLimits } },
    });
    const [found] = await server.users.withEmail(USER.email);
    user = `/console/users/${encodeURIComponent(found?.id ?? '')}`;
  });
  after(() => server.stop());
  beforeEach(async () => {
    owner = await openConsole(server);
    server.tick(11 * 60_000);
  });

  /**
   * Logs in where a form was redirected to, with the user name that the page has filled in, and returns the next
   * page.
   */
  const logIn = (asked: Answer, who = owner) => {
    expect(asked.status).to.equal(303);
    expect(asked.location).to.contain('prompt=login');
    const { pathname, search } = new URL(asked.location);
    return who.get(pathname + search);
  };
  const sendTenant = async (who = owner) => {
    const page = await who.get('/console/security/tenant');
    return sendForm(who, page, '/console/security/tenant/tenant', { friendly_name: 'Renamed tenant' });
  };
  const tenantName = async () => (await server.store.collection('tenant').list({ limit: 10 })).records;

  it('is shown after the login, and carried out once when it is sent from there', async () => {
    const shown = await logIn(await sendTenant());
    expect(shown.text).to.contain('Send what you had filled in?').and.to.contain('Renamed tenant');
    expect(readForm(shown, '_again').action).to.equal('/console/security/tenant/tenant');
    expect(JSON.stringify(await tenantName())).to.not.contain('Renamed tenant');
    const sent = await Promise.all([
      owner.post('/console/security/tenant/tenant', { _again: '1' }),
      owner.post('/console/security/tenant/tenant', { _again: '1' }),
    ]);
    expect(sent.map(({ status }) => status).sort()).to.deep.equal([303, 400]);
    expect(JSON.stringify(await tenantName())).to.contain('Renamed tenant');
    expect((await owner.agent.get(AGAIN)).location).to.match(/\/console$/);
  });

  it('is shown with the remark that fields not listed are empty or off', async () => {
    const asked = await owner.post('/console/security/factors', { policy: 'never' });
    const shown = await logIn(asked);
    expect(shown.text).to.contain('<code>policy</code>').and.to.not.contain('factor-otp');
    expect(shown.text).to.contain('that are not listed here are empty, and switches are off');
  });

  it('is stored encrypted, and its secrets are not shown on a page or in an address', async () => {
    const asked = await owner.post(`${user}/password`, { password: NEW_PASSWORD });
    expect(asked.location).to.not.contain(NEW_PASSWORD);
    const kept = (await server.store.collection('challenges').list({ limit: 1000 })).records;
    expect(JSON.stringify(kept)).to.contain('console_form').and.to.not.contain(NEW_PASSWORD);
    const shown = await logIn(asked);
    expect(shown.text).to.contain(`${NEW_PASSWORD.length} characters`).and.to.not.contain(NEW_PASSWORD);
    expect((await owner.post(`${user}/password`, { _again: '1' })).location).to.contain('said=');
    const own = { password: NEW_PASSWORD, repeat: NEW_PASSWORD };
    server.tick(11 * 60_000);
    expect((await logIn(await owner.post('/console/password', own))).text)
      .to.contain(`${NEW_PASSWORD.length} characters`)
      .and.to.not.contain(NEW_PASSWORD);
    const [found] = await server.users.withEmail(USER.email);
    expect(await server.users.verifyPassword(found?.id ?? '', NEW_PASSWORD)).to.not.equal(undefined);
  });

  it('can only be sent to the address that it was first sent to', async () => {
    await logIn(await sendTenant());
    const elsewhere = await owner.post(`${user}/delete`, { _again: '1' });
    expect(elsewhere.status).to.equal(400);
    expect(await server.users.withEmail(USER.email)).to.have.length(1);
    expect((await owner.post('/console/security/tenant/tenant', { _again: '1' })).status).to.equal(400);
  });

  it('is not shown to another administrator, to another session, or after 15 minutes', async () => {
    const asked = await sendTenant();
    const { pathname, search } = new URL(asked.location);
    const login = await follow(owner.agent, await owner.agent.get(pathname + search), server.url);
    const { action, fields } = readForm(login, 'password');
    const form = { ...fields, username: addressOf('editor'), password: PASSWORD };
    const other = await follow(owner.agent, await owner.agent.request(action, { form }), server.url);
    expect(other.text).to.contain('The editor').and.to.not.contain('Send what you had filled in?');
    expect((await owner.post('/console/security/tenant/tenant', { _again: '1' })).status).to.equal(400);

    const second = await openConsole(server);
    expect((await second.agent.get(AGAIN)).location).to.match(/\/console$/);

    server.tick(11 * 60_000);
    const late = await sendTenant(second);
    server.tick(16 * 60_000);
    expect((await logIn(late, second)).text).to.not.contain('Send what you had filled in?');
  });

  it('is also kept when the session has expired, which permits nothing else', async () => {
    const page = await owner.get('/console/security/tenant');
    const roles = '/console/create/roles';
    const { _csrf = '' } = readForm(page, '_csrf').fields;
    server.tick(8 * 3_600_000);
    expect((await owner.agent.get('/console/security/tenant')).location).to.contain('prompt=login');
    const send = (token: string, more: Record<string, string> = {}) =>
      owner.agent.request(roles, { form: { name: 'Late role', _csrf: token, ...more } });
    expect((await send('x')).status).to.equal(403);
    const waits = async () =>
      (await server.store.collection('challenges').list({ limit: 1000 })).records.filter(
        ({ purpose, spent }) => purpose === 'console_form' && !spent,
      ).length;
    const before = await waits();
    expect((await send(_csrf, { _again: '1' })).location).to.contain('prompt=login');
    expect(await waits()).to.equal(before);
    // A form that needs no recent login is kept, too.
    const shown = await logIn(await send(_csrf));
    expect(shown.text).to.contain('Send what you had filled in?').and.to.contain('Late role');
    expect((await server.store.collection('roles').list()).records).to.have.length(0);
    const next = await owner.post(roles, { _again: '1' });
    expect(next.status, next.text).to.be.oneOf([200, 303]);
  });

  it('is not kept when the session was ended, or expired more than a day ago', async () => {
    const ended = await openConsole(server);
    for (const [who, end] of [
      [owner, async () => server.tick(24 * 3_600_000)],
      [ended, async () => ended.post('/console/logout')],
    ] as const) {
      const { _csrf = '' } = readForm(await who.get('/console'), '_csrf').fields;
      await end();
      const asked = await who.agent.request('/console/security/factors', {
        form: { policy: 'never', _csrf },
      });
      expect(asked.location).to.contain('prompt=login').and.to.not.contain('login_hint');
      // The body of a form with long texts is not read; a script gets an error.
      const send = (more: Record<string, string> = {}) =>
        who.agent.request('/console/branding/template', {
          form: { template: 'a long text', _csrf },
          headers: { referer: `${server.url}/console/branding/texts`, ...more },
        });
      const long = await send();
      expect(long.location).to.contain('prompt=login').and.to.not.contain('login_hint');
      expect((await send({ 'sec-fetch-dest': 'empty' })).status).to.equal(401);
      expect((await logIn(long, who)).text).to.contain('href="/console/branding/texts/login/en"');
    }
  });

  it('is kept once per administrator, the last one', async () => {
    const other = await openConsole(server);
    server.tick(11 * 60_000);
    const first = await sendTenant();
    const last = await other.post(`${user}/password`, { password: NEW_PASSWORD });
    expect((await logIn(last, other)).text).to.contain(`${user}/password`);
    expect((await logIn(first)).text).to.not.contain('Send what you had filled in?');
    const of = (await server.store.collection('challenges').list({ limit: 1000 })).records;
    expect(of.filter(({ purpose, spent }) => purpose === 'console_form' && !spent)).to.have.length(1);
  });

  it('may contain a file', async () => {
    const token =
      /name="console-token" content="([^"]+)"/.exec((await owner.get('/console')).text)?.[1] ?? '';
    const connection =
      /<option value="(con_[^"]+)">users</.exec((await owner.get('/console/users/transfer')).text)?.[1] ?? '';
    const part = (name: string, value: string, more = '') =>
      `--x\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
    const users = JSON.stringify(
      [...Array(4000).keys()].map((n) => ({ email: `again${n}@import.example.test` })),
    );
    const body = [
      part('_csrf', token),
      part('connection_id', connection),
      part('users', users, '; filename="users.json"'),
      '--x--\r\n',
    ].join('');
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const asked = await owner.agent.request('/console/users/transfer/import', {
      method: 'POST',
      body,
      headers,
    });
    expect((await logIn(asked)).text).to.contain(`${users.length.toLocaleString('en')} characters`);
    const begun = await owner.post('/console/users/transfer/import', { _again: '1' });
    expect(begun.location, begun.text).to.match(/\/console\/users\/transfer\/job_/);
  });
});
