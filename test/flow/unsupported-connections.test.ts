// The connections of an application, and what happens when it has none that works.
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

describe('the connections of an application', () => {
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

  it('end in an error at the redirect URI when the request names one of an unsupported kind', async () => {
    const answer = await authorize(createAgent(server), webRequest({ connection: 'social' }));
    expect(answer.location.startsWith(WEB_CALLBACK), answer.location).to.equal(true);
    expect(responseOf(answer)).to.include(NOT_BUILT);
  });

  it('end in that error also with a session, and in a silent request', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    for (const prompt of ['none', 'login', undefined]) {
      const answer = await authorize(browser, webRequest({ connection: 'social', prompt }));
      expect(responseOf(answer), prompt).to.include(NOT_BUILT);
    }
  });

  it('are not offered when their kind is unsupported', async () => {
    const browser = createAgent(server);
    const page = await follow(browser, await authorize(browser, webRequest()), server.url);
    expect(page.status).to.equal(200);
    expect(page.text)
      .to.contain('/passwordless/email')
      .and.not.to.match(/social|vkontakte/i);
  });

  it('show the passwordless page for screen_hint=signup when there is no password to choose', async () => {
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
    it(`end in an error at the redirect URI, not on a page, when the application has ${what}`, async () => {
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

    it(`end in that error at every step when the application has ${what}`, async () => {
      for (const step of ['login', 'signup']) {
        const browser = createAgent(server);
        const { location } = await authorize(browser, { ...webRequest(), client_id });
        const answer = await follow(browser, await browser.get(`${location}/${step}`), server.url);
        expect(responseOf(answer), step).to.include({ error: 'invalid_request' });
      }
    });
  }
});
