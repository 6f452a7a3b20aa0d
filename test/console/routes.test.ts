// What holds for every address of the console, whichever it is: a new one is tried here without a line more.
import { expect } from 'chai';
import { consoleRoutes } from '../../src/console/feature.ts';
import { rulesOf } from '../../src/console/page.ts';
import { scopesOf } from '../../src/console/roles.ts';
import { addressOf as pathOf } from '../../src/http/routes.ts';
import { managementApi } from '../../src/management/api.ts';
import { ROLES } from '../../src/records/administrators.ts';
import { type Agent, type AgentRequest, type Answer, createAgent, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const WIDE = { capacity: 1e6, perMinute: 1e6 };
const ALL = managementApi('https://x.example/').scopes.map(({ value }) => value);

/** Those that nobody is logged in to: where a login ends, and where a link leads. */
const OPEN = ['GET /console/callback', 'GET /console/link', 'POST /console/link'];

const ROUTES = Object.entries(consoleRoutes).map(([key, route]) => {
  const { methods, path } = pathOf(key);
  return {
    key,
    method: String(methods[0]),
    path: path.replaceAll(/:(\w+)/g, 'unknown1'),
    rules: rulesOf(route),
  };
});

const tried = new Map<string, number>();
/**
 * One piece of code judges where a request comes from, for all addresses: what is tried is tried in full at the first address of
 * each kind and part, and one of it, another in turn, at all others.
 */
function inTurn<T>({ method, path, rules }: (typeof ROUTES)[number], all: readonly T[]): readonly T[] {
  const isFile = rules?.file !== undefined;
  const kind = [method, path.split('/')[2], isFile, rules?.isDangerous, all.length].join();
  const turn = tried.get(kind) ?? 0;
  tried.set(kind, turn + 1);
  return turn === 0 ? all : all.filter((_, index) => index === turn % all.length);
}

/** The pages that are framed. */
const PREVIEWS = ['GET /console/branding/preview', 'GET /console/branding/messages/:message/preview'];

/** A form with a token, as a browser sends it: with a file where the address takes one. */
function formWith(rules: ReturnType<typeof rulesOf>, _csrf: string): AgentRequest {
  if (rules?.file === undefined) return { form: { _csrf } };
  const body = `--x\r\nContent-Disposition: form-data; name="_csrf"\r\n\r\n${_csrf}\r\n--x--\r\n`;
  return { method: 'POST', body, headers: { 'content-type': 'multipart/form-data; boundary=x' } };
}

/** Whoever is not logged in is sent to log in; what is no page, or takes much, tells them so. */
function expectNobody({ status, location }: Answer): void {
  if (status === 401) return;
  expect(status).to.equal(303);
  expect(location).to.contain('/authorize?client_id=gatehouse-console');
}

describe('every address of the console', () => {
  let server: TestServer;
  let people: Record<(typeof ROLES)[number], ConsoleAgent>;
  /** What their forms have. */
  let tokens: Record<(typeof ROLES)[number], string>;
  /** The owner in another browser, whose login is too old for what is dangerous. */
  let old: { agent: Agent; token: string };
  const tokenOf = async ({ get }: ConsoleAgent) =>
    readForm(await get('/console'), '_csrf').fields._csrf ?? '';
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: { console: WIDE, hosted: WIDE, login: WIDE } } },
    });
    const entries = await Promise.all(ROLES.map(async (role) => [role, await openConsole(server, role)]));
    people = Object.fromEntries(entries);
    const before = await openConsole(server);
    server.tick(11 * 60_000);
    old = { agent: before.agent, token: await tokenOf(before) };
    tokens = Object.fromEntries(
      await Promise.all(ROLES.map(async (role) => [role, await tokenOf(people[role])])),
    );
  });
  after(() => server.stop());

  it('is below /console, is a page or a form, and says whom it is for', () => {
    for (const { key, path, method, rules } of ROUTES) {
      // Where a tried login ends stands beside it: what is below it are callbacks of the console's own login.
      expect(path, key).to.match(/^\/console(-try)?(\/|$)/);
      expect(['GET', 'POST'], key).to.include(method);
      if (!OPEN.includes(key)) expect(rules, key).to.not.equal(undefined);
    }
  });

  const html = { accept: 'text/html' };
  for (const [method, path, status] of [
    ['GET', '/console/nothing', 404],
    ['GET', '/console/connections/a/b/c/d', 404],
    ['POST', '/console/nothing', 404],
    ['POST', '/console/log', 405],
  ] as const)
    it(`has its own page where there is nothing, for who is there: ${method} ${path}`, async () => {
      const stranger = await createAgent(server).request(path, { method, headers: html });
      for (const { agent } of Object.values(people)) {
        const page = await agent.request(path, { method, headers: html });
        expect(page.status).to.equal(status);
        expect(page.text).to.contain('class="console-nav"').and.to.contain('name="console-token"');
        const framed = await agent.request(path, { method, headers: { ...html, 'sec-fetch-dest': 'empty' } });
        expect(framed.text).to.not.contain('console-');
        if (status === 405) continue;
        const data = await agent.request(path, { method, headers: { accept: 'application/json' } });
        expect(data.text).to.not.contain('console-');
      }
      expect(stranger.status).to.equal(status);
      expect(stranger.text).to.not.contain('console-').and.not.contain('href="/console');
    });

  it('leaves every other address that is not there to the error page', async () => {
    const { text, status } = await people.owner.agent.request('/consoles/nothing', { headers: html });
    expect(status).to.equal(404);
    expect(text).to.not.contain('console-nav');
  });

  for (const route of ROUTES.filter((one) => !OPEN.includes(one.key))) {
    const { key, method, path, rules } = route;

    it(`is for who may see it: ${key}`, async () => {
      expectNobody(await createAgent(server).request(path, method === 'GET' ? {} : formWith(rules, 'x')));
      for (const role of ROLES) {
        const scopes = scopesOf(role, ALL);
        if (rules?.scopes.every((scope) => scopes.has(scope))) continue;
        const { agent } = people[role];
        const form = { form: { _csrf: tokens[role] } };
        const { status } = await agent.request(path, method === 'GET' ? {} : form);
        expect(status, role).to.equal(403);
      }
    });

    it(`comes from the console alone: ${key}`, async () => {
      const { agent } = people.owner;
      if (method === 'GET') {
        for (const dest of inTurn(route, ['empty', 'iframe', 'script']))
          expect((await agent.get(path, { 'sec-fetch-dest': dest })).status, dest).to.equal(403);
        const page = await agent.get(path);
        // What shows how something will look is framed by the console's own page; nothing in it runs.
        const isFramed = PREVIEWS.includes(key) && page.status === 200;
        expect(page.headers['x-frame-options'] ?? 'DENY').to.equal(isFramed ? 'SAMEORIGIN' : 'DENY');
        const policy = page.headers['content-security-policy'];
        if (policy !== undefined && page.status === 200)
          expect(String(policy)).to.contain(`frame-ancestors '${isFramed ? 'self' : 'none'}'`);
        return;
      }
      const hosted = agent.cookies().find(({ name }) => name.endsWith('gatehouse_csrf'))?.value ?? '';
      for (const _csrf of inTurn(route, ['', 'x', hosted]))
        expect((await agent.request(path, formWith(rules, _csrf))).status, `token ${_csrf}`).to.equal(403);
      const elsewhere = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }];
      for (const headers of inTurn(route, elsewhere)) {
        const form = formWith(rules, tokens.owner);
        const sent = { ...form, headers: { ...form.headers, ...headers } as Record<string, string> };
        expect((await agent.request(path, sent)).status).to.equal(403);
      }
    });
  }

  for (const { key, method, path, rules } of ROUTES.filter((one) => one.rules?.isDangerous)) {
    it(`asks for a fresh login: ${key}`, async () => {
      expect(method).to.equal('POST');
      const { location, status } = await old.agent.request(path, formWith(rules, old.token));
      expect(rules?.isDangerous).to.equal(true);
      expect(status).to.equal(303);
      expect(location).to.contain('prompt=login');
    });
  }

  it('is over when its session was ended elsewhere', async () => {
    const { agent } = await openConsole(server, 'editor');
    const [editor] = await server.administrators.withEmail('editor@console.example.test');
    await server.store.collection('challenges').deleteBy('user', editor?.id ?? '');
    for (const { method, path, rules } of ROUTES.filter((one) => one.rules !== undefined)) {
      expectNobody(await agent.request(path, method === 'GET' ? {} : formWith(rules, 'x')));
    }
  });
});
