// The settings that the vendor's login widget reads before it shows itself: public data of one application.
import vm from 'node:vm';
import { expect } from 'chai';
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { logIn, SPA_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const ODD = '</script><script>alert(1)</script>\u2028';

const tenant = {
  ...base,
  tenant: { ...base.tenant, default_directory: 'users' },
  databases: [
    {
      name: 'a-first-by-name',
      display_name: ODD,
      enabled_clients: ['web'],
      options: {
        passwordPolicy: 'excellent',
        password_complexity_options: { min_length: 12 },
        requires_username: true,
        validation: { username: { min: 3, max: 20 } },
        disable_signup: true,
        import_mode: true,
        configuration: { API_KEY: 'secret-of-a-script' },
      },
    },
    ...base.databases,
  ],
  connections: [
    ...base.connections,
    {
      name: 'social',
      strategy: 'thirtysevensignals',
      enabled_clients: ['web'],
      options: { client_secret: 'upstream-secret' },
    },
  ],
};

describe("the login widget's settings", () => {
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    server = await startServer({ tenant });
    agent = createAgent(server);
  });
  after(() => server?.stop());

  const get = (clientId: string) => agent.get(`/client/${encodeURIComponent(clientId)}.js?t123`);
  /** Returns the argument of the script's call. */
  const settings = async (clientId: string): Promise<any> => {
    // any: a test reads what it expects
    const given: unknown[] = [];
    vm.runInNewContext((await get(clientId)).text, {
      Auth0: { setClient: (...all: unknown[]) => given.push(...all) },
    });
    expect(given).to.have.length(1);
    return JSON.parse(JSON.stringify(given[0]));
  };

  it('are a script that pages of any origin load', async () => {
    const answer = await get('spa');
    expect(answer.status).to.equal(200);
    expect(answer.headers['content-type']).to.match(/^application\/javascript/);
    expect(answer.headers['cross-origin-resource-policy']).to.equal('cross-origin');
    expect(answer.headers['x-content-type-options']).to.equal('nosniff');
    expect(await settings('spa')).to.deep.equal({
      id: 'spa',
      tenant: 'localhost',
      callback: SPA_CALLBACK,
      strategies: [
        {
          name: 'auth0',
          connections: [
            {
              name: 'users',
              passwordPolicy: 'good',
              showSignup: true,
              showForgot: true,
              requires_username: false,
            },
          ],
        },
        { name: 'email', connections: [{ name: 'email' }] },
        { name: 'sms', connections: [{ name: 'sms' }] },
      ],
    });
  });

  it('contain what the forms of a database need, the default directory first', async () => {
    const [databases] = (await settings('web')).strategies;
    expect(databases.connections.map(({ name }: { name: string }) => name)).to.deep.equal([
      'users',
      'a-first-by-name',
      'staff',
    ]);
    expect(databases.connections[1]).to.deep.equal({
      name: 'a-first-by-name',
      display_name: ODD,
      passwordPolicy: 'excellent',
      password_complexity_options: { min_length: 12 },
      showSignup: false,
      showForgot: true,
      requires_username: true,
      validation: { username: { min: 3, max: 20 } },
    });
  });

  it('contain no secret, no other application and no unsupported connection', async () => {
    const { text } = await get('web');
    for (const hidden of [
      'secret',
      'configuration',
      'thirtysevensignals',
      'social',
      'spa',
      'leeway',
      '</script',
      '\u2028',
    ]) {
      expect(text).not.to.contain(hidden);
    }
  });

  it('are answered 404 for an unknown application', async () => {
    for (const file of ['nobody.js', 'spa', 'spa.json', '.js', 'spa.js.js']) {
      expect((await agent.get(`/client/${file}`)).status, file).to.equal(404);
    }
  });

  it('return the country for phone numbers from the browser’s language', async () => {
    const country = async (accept: string) =>
      (await agent.get('/user/geoloc/country', { 'accept-language': accept })).json();
    expect(await country('de-AT,de;q=0.8')).to.deep.equal({ countryCode: 'AT' });
    expect(await country('de')).to.deep.equal({ countryCode: 'DE' });
    expect(await country('es-419')).to.deep.equal({ countryCode: 'ES' });
    for (const nothing of ['', '*', '-', 'x'.repeat(500)]) {
      expect(await country(nothing), nothing).to.deep.equal({ countryCode: 'US' });
    }
  });

  it('do not reveal who is logged in', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    const answer = await browser.get('/user/ssodata', { origin: new URL(SPA_CALLBACK).origin });
    expect(answer.json()).to.deep.equal({ sso: false });
    expect(answer.headers).not.to.have.property('access-control-allow-origin');
  });

  for (const path of [
    '/usernamepassword/challenge',
    '/dbconnections/signup/challenge',
    '/dbconnections/change_password/challenge',
    '/passwordless/challenge',
  ]) {
    it(`${path} requires no captcha, and allows the applications' origins`, async () => {
      const origin = new URL(SPA_CALLBACK).origin;
      const answer = await agent.request(path, { json: { state: 's' }, headers: { origin } });
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.deep.equal({ required: false });
      expect(answer.headers['access-control-allow-origin']).to.equal(origin);
    });
  }
});
