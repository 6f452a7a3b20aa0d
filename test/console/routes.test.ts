// Rules for all routes of the console. New routes are tested without a change here.
import { expect } from 'chai';
import { consoleRoutes } from '../../src/features/console/console-feature.ts';
import { rulesOf } from '../../src/features/console/console-page.ts';
import { managementApi } from '../../src/features/management/api.ts';
import { scopesOf } from '../../src/features/management/roles/administrator-roles.ts';
import { parseRouteKey as pathOf } from '../../src/http/server/router.ts';
import { ROLES } from '../../src/records/users/administrators.ts';
import { type Agent, type AgentRequest, type Answer, createAgent, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const WIDE = { capacity: 1e6, perMinute: 1e6 };
const ALL = managementApi('https://x.example/').scopes.map(({ value }) => value);

/** Routes without a session: the callback of the login, and the page that links lead to. */
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
 * Selects the cases to test for a route. The same code checks the origin of requests for all routes, so the first
 * route of each kind and section is tested with all cases, and every other one with one of them in turn.
 */
function inTurn<T>({ method, path, rules }: (typeof ROUTES)[number], all: readonly T[]): readonly T[] {
  const isFile = rules?.bodies?.file !== undefined;
  const kind = [method, path.split('/')[2], isFile, rules?.isDangerous, all.length].join();
  const turn = tried.get(kind) ?? 0;
  tried.set(kind, turn + 1);
  return turn === 0 ? all : all.filter((_, index) => index === turn % all.length);
}

/** Pages that are framed. */
const PREVIEWS = ['GET /console/branding/preview', 'GET /console/branding/messages/:message/preview'];

/** Returns a form with a token as a browser sends it, multipart where the route takes a file. */
function formWith(rules: ReturnType<typeof rulesOf>, _csrf: string): AgentRequest {
  if (rules?.bodies?.file === undefined) return { form: { _csrf } };
  const body = `--x\r\nContent-Disposition: form-data; name="_csrf"\r\n\r\n${_csrf}\r\n--x--\r\n`;
  return { method: 'POST', body, headers: { 'content-type': 'multipart/form-data; boundary=x' } };
}

/** Expects a redirect to the login, or 401. */
function expectNobody({ status, location }: Answer): void {
  if (status === 401) return;
  expect(status).to.equal(303);
  expect(location).to.contain('/authorize?client_id=gatehouse-console');
}

describe('every route of the console', () => {
  let server: TestServer;
  let people: Record<(typeof ROLES)[number], ConsoleAgent>;
  /** The CSRF tokens of the roles' sessions. */
  let tokens: Record<(typeof ROLES)[number], string>;
  /** A session of the owner whose login is too old for dangerous actions. */
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

  it('is below /console, is a page or a form, and declares its requirements', () => {
    for (const { key, path, method, rules } of ROUTES) {
      // The callback of trial logins is beside /console: below it are callbacks of the console's own login.
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
    it(`shows administrators an error page in the console's layout: ${method} ${path}`, async () => {
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

  it('leaves other unknown paths to the normal error page', async () => {
    const { text, status } = await people.owner.agent.request('/consoles/nothing', { headers: html });
    expect(status).to.equal(404);
    expect(text).to.not.contain('console-nav');
  });

  for (const route of ROUTES.filter((one) => !OPEN.includes(one.key))) {
    const { key, method, path, rules } = route;

    it(`requires a session and the scopes: ${key}`, async () => {
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

    it(`rejects requests that are not from the console: ${key}`, async () => {
      const { agent } = people.owner;
      if (method === 'GET') {
        for (const dest of inTurn(route, ['empty', 'iframe', 'script']))
          expect((await agent.get(path, { 'sec-fetch-dest': dest })).status, dest).to.equal(403);
        const page = await agent.get(path);
        // Previews are framed by the console's own page, and cannot run scripts.
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
    it(`requires a recent login: ${key}`, async () => {
      expect(method).to.equal('POST');
      const { location, status } = await old.agent.request(path, formWith(rules, old.token));
      expect(rules?.isDangerous).to.equal(true);
      expect(status).to.equal(303);
      expect(location).to.contain('prompt=login');
    });
  }

  it('rejects a session that was ended elsewhere', async () => {
    const { agent } = await openConsole(server, 'editor');
    const [editor] = await server.administrators.withEmail('editor@console.example.test');
    await server.store.collection('challenges').deleteBy('user', editor?.id ?? '');
    for (const { method, path, rules } of ROUTES.filter((one) => one.rules !== undefined)) {
      expectNobody(await agent.request(path, method === 'GET' ? {} : formWith(rules, 'x')));
    }
  });
});
