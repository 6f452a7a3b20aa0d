// Which ways to log in an application has, and what happens where it has none that works.
import { expect } from 'chai';
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, logIn, responseOf, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const application = (client_id: string) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  client_secret: 'a-secret-of-at-least-32-characters!',
  callbacks: [WEB_CALLBACK],
});

const tenant = {
  ...base,
  clients: [...base.clients, application('declared-only'), application('nothing')],
  connections: [
    ...base.connections,
    {
      name: 'social',
      strategy: 'vkontakte',
      display_name: 'Social login',
      enabled_clients: ['declared-only', 'web'],
    },
  ],
};

describe('the ways in of an application', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server?.stop());

  const NOT_BUILT = {
    error: 'invalid_request',
    error_description: 'the connection social is of a kind (vkontakte) that is not available here',
    state: 'the-state',
  };

  it('a connection of a kind that is not built is an error at the callback when it is named', async () => {
    const answer = await authorize(createAgent(server), webRequest({ connection: 'social' }));
    expect(answer.location.startsWith(WEB_CALLBACK), answer.location).to.equal(true);
    expect(responseOf(answer)).to.include(NOT_BUILT);
  });

  it('it is one for who is logged in, and silently, too', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    for (const prompt of ['none', 'login', undefined]) {
      const answer = await authorize(browser, webRequest({ connection: 'social', prompt }));
      expect(responseOf(answer), prompt).to.include(NOT_BUILT);
    }
  });

  it('it is not offered beside those that are built', async () => {
    const browser = createAgent(server);
    const page = await follow(browser, await authorize(browser, webRequest()), server.url);
    expect(page.status).to.equal(200);
    expect(page.text)
      .to.contain('/passwordless/email')
      .and.not.to.match(/social|vkontakte/i);
  });

  it('a request to sign up gets the passwordless page where there is no password to choose', async () => {
    for (const over of [{ connection: 'email' }, { connection: 'email', screen_hint: 'signup' }]) {
      const browser = createAgent(server);
      const page = await follow(browser, await authorize(browser, webRequest(over)), server.url);
      expect(page.status, page.text).to.equal(200);
      expect(page.text).to.contain('name="address"').and.not.to.contain('name="password"');
    }
  });

  for (const [client_id, what] of [
    ['declared-only', 'no other'],
    ['nothing', 'no connection at all'],
  ] as const) {
    it(`there is no dead page where the application has ${what}`, async () => {
      for (const over of [{}, { screen_hint: 'signup' }]) {
        const browser = createAgent(server);
        const first = await authorize(browser, { ...webRequest(over), client_id });
        expect(responseOf(await follow(browser, first, server.url))).to.include({
          error: 'invalid_request',
          error_description: 'no connections enabled for the client',
          state: 'the-state',
        });
      }
    });

    it(`no step is a dead page where the application has ${what}`, async () => {
      for (const step of ['login', 'signup']) {
        const browser = createAgent(server);
        const { location } = await authorize(browser, { ...webRequest(), client_id });
        const answer = await follow(browser, await browser.get(`${location}/${step}`), server.url);
        expect(responseOf(answer), step).to.include({ error: 'invalid_request' });
      }
    });
  }
});
