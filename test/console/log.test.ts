// /console/log: events as sentences, and the related events of one.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { describeEvent } from '../../src/features/console/log/describe-event.ts';
import type { LogEventRecord } from '../../src/records/base/log-events.ts';
import { eventTypesOf } from '../../src/records/base/log-events.ts';
import { EVENTS } from '../../src/server/features.ts';
import { eventIdAt } from '../../src/tenant/events.ts';
import { createAgent } from '../support/agent.ts';
import { byPassword, openPage } from '../support/browser-logins.ts';
import { addressOf, type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { submitLogin, token, USER, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7 | times: 7 }}';
const HOUR = 3_600_000;

const english = JSON.parse(
  readFileSync(new URL('../../views/locales/en/console/log.json', import.meta.url), 'utf8'),
);

describe('the log of the console', () => {
  it('has a sentence for every type of event', () => {
    for (const type of Object.keys(EVENTS))
      expect(english, type).to.have.property(`console.log.event.${type}`);
  });

  let server: TestServer;
  let console: ConsoleAgent;
  let written = 0;

  before(async () => {
    server = await startConsole();
    console = await openConsole(server);
  });
  after(() => server.stop());

  /** Inserts an event of some time ago. @returns its id. */
  const logged = async (ago: number, event: Partial<LogEventRecord>): Promise<string> => {
    const at = Date.now() - ago;
    const id = `${eventIdAt(at)}${(++written).toString(16).padStart(24, '0')}`;
    const date = new Date(at).toISOString();
    await server.store.collection('logs').insert({ id, date, type: 'f', ...event });
    return id;
  };
  const page = async (query: Record<string, string> = {}) =>
    console.get(`/console/log?${new URLSearchParams(query)}`);
  /** Returns the types of the events on a page, in their order. */
  const typesOf = (text: string) =>
    [...text.matchAll(/<tr>[\s\S]*?<span class="tag[^"]*">(\w+)<\/span>/g)].map(([, type]) => type);
  /**
   * Returns the types of the events found by a query. Each test has a user of its own, so that tests do not
   * interfere.
   */
  const typesFor = async (query: Record<string, string>) => typesOf((await page(query)).text);

  it("describes an event in a sentence in the reader's language", async () => {
    const user_name = 'sentence@example.test';
    await logged(1_000, {
      type: 'fp',
      user_name,
      ip: '203.0.113.9',
      description: 'Wrong email or password.',
    });
    const { text } = await page({ user: user_name });
    expect(text).to.contain('sentence@example.test entered a wrong password or code.');
    expect(text).to.contain('Wrong email or password.');
    expect(text).to.contain('203.0.113.9');
    const german = await console.get(`/console/log?user=${user_name}`, { 'accept-language': 'de' });
    expect(german.text).to.contain('hat ein falsches Passwort');
    const arabic = await console.get(`/console/log?user=${user_name}`, { 'accept-language': 'ar' });
    expect(arabic.text).to.contain('dir="rtl"').and.to.contain('كلمة مرور');
  });

  it('describes an event without a message by its declaration', () => {
    const locale = { text: () => '', has: () => false };
    const event = { type: 'new_type', log_id: '1', date: '' };
    const declared = eventTypesOf({ new_type: 'Something new happened.' });
    expect(describeEvent(event, locale, declared)).to.equal('Something new happened.');
    expect(describeEvent(event, locale, {})).to.equal('new_type');
  });

  it('is filtered by type, user, application, connection, address and time', async () => {
    const user_name = 'filter@example.test';
    const more = { user_name, client_id: 'web', connection: 'users' };
    await logged(30 * HOUR, { type: 's', ...more, ip: '198.51.100.1' });
    await logged(3 * HOUR, { type: 'fp', ...more, ip: '198.51.100.2' });
    await logged(2 * HOUR, { type: 'fu', ...more, ip: '2001:db8::7', client_id: 'spa' });
    await logged(HOUR, { type: 'slo', ...more, ip: '198.51.100.1', connection: 'other' });
    const user = user_name;
    expect(await typesFor({ user })).to.deep.equal(['slo', 'fu', 'fp', 's']);
    expect(await typesFor({ user, type: 'fp' })).to.deep.equal(['fp']);
    expect(await typesFor({ user, type: 'failures' })).to.deep.equal(['fu', 'fp']);
    expect(await typesFor({ user, client: 'spa' })).to.deep.equal(['fu']);
    expect(await typesFor({ user, connection: 'other' })).to.deep.equal(['slo']);
    expect(await typesFor({ user, ip: '198.51.100.1' })).to.deep.equal(['slo', 's']);
    expect(await typesFor({ user, ip: '198.51.100.*' })).to.deep.equal(['slo', 'fp', 's']);
    expect(await typesFor({ user, ip: '2001:db8:*' })).to.deep.equal(['fu']);
    const minute = (ago: number) => new Date(Date.now() - ago).toISOString().slice(0, 16);
    expect(await typesFor({ user, from: minute(4 * HOUR) })).to.deep.equal(['slo', 'fu', 'fp']);
    expect(await typesFor({ user, from: minute(4 * HOUR), to: minute(2.5 * HOUR) })).to.deep.equal(['fp']);
    expect(await typesFor({ user, q: 'connection:other OR type:s' })).to.deep.equal(['slo', 's']);
    expect(await typesFor({ user, type: 'nothing' })).to.deep.equal([]);
  });

  it("finds by an e-mail address events that only contain the user's id", async () => {
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    await logged(5 * HOUR, { type: 'gd_unenroll', user_id: user!.id });
    expect(await typesFor({ user: USER.email, type: 'gd_unenroll' })).to.deep.equal(['gd_unenroll']);
    expect(await typesFor({ user: user!.id, type: 'gd_unenroll' })).to.deep.equal(['gd_unenroll']);
  });

  it('continues with older events, each of them once', async () => {
    const user_name = 'pages@example.test';
    for (let n = 0; n < 120; n += 1) await logged(HOUR + n * 1_000, { type: 'fp', user_name, ip: `n${n}` });
    const seen: string[] = [];
    let path = `/console/log?user=${user_name}&type=failures`;
    for (let pages = 0; pages < 5 && path !== ''; pages += 1) {
      const { text } = await console.get(path);
      seen.push(...[...text.matchAll(/<bdi dir="ltr">(n\d+)<\/bdi>/g)].map(([, ip = '']) => ip));
      path = (/href="([^"]+)" rel="next"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&');
    }
    expect(seen).to.deep.equal(Array.from({ length: 120 }, (_, n) => `n${n}`));
  });

  it('shows the error of a malformed query, and keeps the query in the form', async () => {
    const { status, text } = await page({ q: '((type:s' });
    expect(status).to.equal(400);
    expect(text).to.contain('Invalid search query.');
    expect(text).to.contain('value="((type:s"');
  });

  it('shows hostile values as text, in the list, in the filter and for one event', async () => {
    const about = { user_name: HOSTILE, description: HOSTILE, connection: HOSTILE, ip: HOSTILE };
    const id = await logged(1_000, {
      type: 'fu',
      ...about,
      client_id: HOSTILE,
      details: { [HOSTILE]: HOSTILE },
    });
    for (const path of [
      `/console/log?user=${encodeURIComponent(HOSTILE)}&q=${encodeURIComponent(HOSTILE)}`,
      `/console/log?user=${encodeURIComponent(HOSTILE)}`,
      `/console/log/${id}`,
    ]) {
      const { text } = await console.get(path);
      expect(text).to.contain('onerror=alert(1)').and.to.contain('{{ 7 | times: 7 }}');
      expect(text).to.not.contain('<img src=x');
      expect(text).to.not.contain('<script>alert');
    }
  });

  it('quotes hostile values in queries', async () => {
    expect(await typesFor({ user: '" OR type:*' })).to.deep.equal([]);
    expect(await typesFor({ client: 'x\\" OR type:s OR "' })).to.deep.equal([]);
    expect((await page({ before: '0} OR type:s', from: '* TO *] OR type:s', ip: '*' })).status).to.equal(200);
  });

  it('shows the events of a login in the browser, from a wrong password to its end', async () => {
    const agent = createAgent(server);
    const opened = await openPage(agent, server, webRequest());
    const again = await submitLogin(agent, server, opened, { email: USER.email, password: 'wrong' });
    await submitLogin(agent, server, again, USER);
    await server.tenant.close();
    const list = (await page({ user: USER.email, type: 's' })).text;
    const [, path = ''] = /<a href="(\/console\/log\/[^"]+)"/.exec(list) ?? [];
    const { text } = await console.get(path);
    expect(text).to.contain(`The login of ${USER.email} succeeded.`);
    const at = [`${USER.email} entered a wrong password or code.`, `${USER.email} logged in.`].map((words) =>
      text.lastIndexOf(words),
    );
    expect(at[0]).to.be.greaterThan(0);
    expect(at[1]).to.be.greaterThan(at[0]!);
  });

  it('shows why a login was refused', async () => {
    await byPassword(createAgent(server), server, webRequest(), 'blocked@example.test');
    await server.tenant.close();
    const [, path = ''] =
      /<a href="(\/console\/log\/[^"]+)"/.exec((await page({ user: 'blocked@example.test' })).text) ?? [];
    expect((await console.get(path)).text).to.contain('failed: user is blocked');
  });

  it('combines the requests of one login in an application, without those of others', async () => {
    const about = { user_id: 'auth0|app', user_name: 'app@example.test', client_id: 'web', ip: '192.0.2.1' };
    const id = await logged(60_000, { type: 'mfar', ...about, transaction: 'run-1' });
    await logged(50_000, { type: 'gd_auth_failed', ...about, transaction: 'run-2' });
    await logged(40_000, { type: 'gd_auth_succeed', ...about, transaction: 'run-3' });
    await logged(39_000, { type: 's', ...about, transaction: 'run-3' });
    await logged(38_000, { type: 's', ...about, ip: '192.0.2.2', transaction: 'run-4' });
    await logged(37_000, { type: 'slo', ...about, transaction: 'the-id-of-another-login-in-a-browser' });
    const { text } = await console.get(`/console/log/${id}`);
    const [story = ''] = /<ol class="log-story">[\s\S]*?<\/ol>/.exec(text) ?? [];
    const steps = [...story.matchAll(/<span class="tag[^"]*">(\w+)<\/span>/g)].map(([, type]) => type);
    expect(steps).to.deep.equal(['mfar', 'gd_auth_failed', 'gd_auth_succeed', 's']);
    expect(text).to.contain('The login of app@example.test succeeded.');
  });

  it('shows each request of the token endpoint with its outcome', async () => {
    const web = { client_id: 'web', client_secret: 'web-secret', scope: 'openid' };
    const grant = { grant_type: 'password', username: USER.email, password: 'wrong' };
    await token(createAgent(server), { ...web, ...grant });
    await server.tenant.close();
    const [, path = ''] =
      /<a href="(\/console\/log\/[^"]+)"/.exec((await page({ type: 'fepft' })).text) ?? [];
    const { text } = await console.get(path);
    expect(text)
      .to.contain('entered a wrong password or code')
      .and.to.contain('No tokens were given for a password');
  });

  it('links an event to its user, unless there is no such user', async () => {
    const opened = async (user_id: string) =>
      (await console.get(`/console/log/${await logged(1_000, { user_id, user_name: 'x' })}`)).text;
    const user = (await server.users.withEmail(USER.email))[0]?.id ?? '';
    expect(await opened(user)).to.contain(`href="/console/users/${encodeURIComponent(user)}"`);
    const own = (await server.administrators.withEmail(addressOf('owner')))[0]?.id ?? '';
    expect(own).to.match(/^gatehouse\|/);
    for (const gone of [own, 'auth0|deleted'])
      expect(await opened(gone)).not.to.contain('href="/console/users/');
  });

  it('answers 404 for an unknown event', async () => {
    const { status, text } = await console.get('/console/log/2026nothing');
    expect(status).to.equal(404);
    // Inside the console's layout, with its navigation.
    expect(text).to.contain('<h1>There is nothing here</h1>').and.to.contain('href="/console/users"');
  });

  it('answers its own script, and no other', async () => {
    const fetched = { 'sec-fetch-dest': 'empty' };
    expect((await console.agent.get('/console/log', fetched)).status).to.equal(403);
    const [, sent = ''] = /name="console-token" content="([^"]+)"/.exec((await page()).text) ?? [];
    const own = await console.agent.get('/console/log', { ...fetched, 'x-console-token': sent });
    expect(own.status).to.equal(200);
    expect(own.text).to.contain('data-events');
  });

  for (const role of ['owner', 'editor', 'viewer', 'support'] as const) {
    it(`can be read by the role ${role}`, async () => {
      const other = await openConsole(server, role);
      expect((await other.get('/console/log')).status).to.equal(200);
      const id = await logged(1_000, { type: 's', user_name: 'role@example.test' });
      expect((await other.get(`/console/log/${id}`)).status).to.equal(200);
    });
  }

  it('redirects to the login without a session', async () => {
    const answer = await createAgent(server).get('/console/log');
    expect(answer.status).to.equal(303);
  });
});
