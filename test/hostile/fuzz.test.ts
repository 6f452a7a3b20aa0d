// Random input to every declared route: it is answered, and never causes a 500.
import { expect } from 'chai';
import { MFA_SCOPES } from '../../src/records/users/second-factors.ts';
import { callsOf, tenant as mfaTenant } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { API, authorize, follow, spaTokens, submitLogin, USER, webRequest } from '../support/flows.ts';
import { BODIES, encodeAsForm, fieldsOf, HEADERS, TEXTS } from '../support/hostile-input.ts';
import { createRequester, type Requester } from '../support/requester.ts';
import { seeded } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/** How many times the usual number of requests. */
const DEPTH = Number(process.env.FUZZ_DEPTH ?? 1);
/** Routes that examine nothing of a stranger's request: one check redirects it or asks for a login. */
const CLOSED = /^\/(api\/v2|me\/v1|console)\//;

describe('random input', () => {
  let server: TestServer;
  let requester: Requester;
  let logged = 0;
  before(async () => {
    const clients = mfaTenant.clients.map((client) =>
      client.client_id === 'leeway' ? { ...client, client_metadata: { mfa_policy: 'always' } } : client,
    );
    server = await startServer({
      tenant: { ...mfaTenant, ...UNLIMITED, clients, guardianPolicies: { policies: [] } },
    });
    requester = createRequester(server);
  });
  beforeEach(() => {
    logged = server.logged().length;
  });
  afterEach(async () => {
    expect(server.logged().slice(logged)).not.to.match(/"level":(50|60)/);
    expect((await requester.ask('GET', '/readyz')).status).to.equal(200);
  });
  after(async () => {
    requester.close();
    await server.stop();
  });

  const random = seeded(16);
  const some = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const fields = () => fieldsOf(some, random);
  const answered = async (method: string, path: string, headers: Record<string, string>, body: string) => {
    const { status } = await requester.ask(method, path, { headers, body });
    const shown = `${method} ${path} ${JSON.stringify(headers)} ${body.slice(0, 500)}`;
    expect(status, shown).to.be.within(200, 499);
  };
  const routes = () => server.tenant.routes.filter(({ path }) => !path.startsWith('/assets/'));

  it('of strangers, to any route, is answered', async () => {
    for (const { path, methods } of routes()) {
      for (let round = 0; round < (CLOSED.test(path) ? 2 : 10) * DEPTH; round++) {
        const target = path.replaceAll(/:[a-z_]+/g, () => encodeURIComponent(some(TEXTS)) || 'x');
        const method = some([...methods]);
        const headers = Object.fromEntries(
          HEADERS.filter(() => random() < 0.3).map(([name, values]) => [name, some(values)]),
        );
        const made = fields();
        const body = some([encodeAsForm(made), JSON.stringify(Object.fromEntries(made)), some(BODIES)]);
        await answered(method, `${target}?${encodeAsForm(fields())}`, headers, method === 'POST' ? body : '');
      }
    }
  });

  it('of a user who is logging in, to the pages of the request, is answered', async () => {
    for (const isAtSecondFactor of [false, true]) {
      const browser = createAgent(server);
      const first = await follow(
        browser,
        await authorize(browser, webRequest({ client_id: isAtSecondFactor ? 'leeway' : 'web' })),
        server.url,
      );
      const user = { email: 'mfa-1@example.test', password: USER.password };
      const page = isAtSecondFactor ? await submitLogin(browser, server, first, user) : first;
      const uid = /\/u\/([\w-]+)\//.exec(page.text)?.[1] ?? '';
      const csrf = isAtSecondFactor ? '' : (readForm(page, '_csrf').fields._csrf ?? '');
      for (const { path, methods } of routes().filter((route) => route.path.startsWith('/u/:uid'))) {
        for (let round = 0; round < 10; round++) {
          const target = path.replace(':uid', uid).replaceAll(/:[a-z_]+/g, () => {
            return encodeURIComponent(some(['otp', 'phone', 'email', 'sms', 'users', ...TEXTS])) || 'x';
          });
          const cookie = browser
            .cookies()
            .map(({ name, value }) => `${name}=${value}`)
            .join('; ');
          const token = browser.cookies().find(({ name }) => name === '__Host-gatehouse_csrf')?.value ?? csrf;
          const method = some([...methods]);
          const body = encodeAsForm([['_csrf', token], ...fields()]);
          await answered(
            method,
            `${target}?${encodeAsForm(fields())}`,
            method === 'POST' ? { cookie, 'content-type': FORM } : { cookie },
            method === 'POST' ? body : '',
          );
        }
      }
    }
  });

  it('of applications and users with valid credentials, to what they call, is answered', async () => {
    const called = /^\/(oauth|mfa|passwordless|co\/|dbconnections|userinfo|usernamepassword|authenticator)/;
    const { access_token } = await spaTokens(createAgent(server), server, { audience: API });
    const calls = callsOf(server);
    const who = 'mfa-2@example.test';
    const mfaToken = await calls.mfaToken(who, {}, 'leeway');
    const manage = await calls.login(who, { audience: `${server.issuer}mfa/`, scope: MFA_SCOPES.join(' ') });
    const bearers = [access_token, mfaToken, manage.json().access_token];
    expect(bearers.every((token) => typeof token === 'string')).to.equal(true);
    const grants = new Set(mfaTenant.clients.flatMap(({ grant_types = [] }) => grant_types));
    for (const { path, methods } of routes().filter((route) => called.test(route.path))) {
      for (let round = 0; round < 12 * DEPTH; round++) {
        const good = {
          client_id: 'web',
          client_secret: 'web-secret',
          grant_type: some([...grants]),
          username: USER.email,
          password: USER.password,
          mfa_token: some(bearers),
          connection: some(['users', 'email', 'sms']),
          email: USER.email,
        };
        const made = {
          ...good,
          ...Object.fromEntries(fields().filter(([name]) => !name.startsWith('client_'))),
        };
        const isJson = random() < 0.7;
        const body = isJson ? JSON.stringify(made) : encodeAsForm(Object.entries(made));
        const method = some([...methods]);
        const headers = {
          ...(method === 'POST' && { 'content-type': isJson ? JSON_TYPE : FORM }),
          ...(random() < 0.5 && { authorization: `Bearer ${some(bearers)}` }),
        };
        const target = path.replaceAll(/:[a-z_]+/g, () => encodeURIComponent(some(TEXTS)) || 'x');
        await answered(method, target, headers, method === 'POST' ? body : '');
      }
    }
  });
});
