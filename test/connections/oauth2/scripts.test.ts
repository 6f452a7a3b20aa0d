// The scripts of a custom social connection: their input, and the error that the application gets when they fail.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { failedLogins, logInUpstream } from '../../support/upstream-login.ts';

const HOME = 'https://home.example.test/';
const PROFILE = "callback(null, { user_id: 'u1' })";

/** Name of a connection to the body of its script. */
const BODIES: Record<string, string> = {
  context: 'callback(null, { user_id: "u1", given: context, name: accessToken, key: configuration.key })',
  says: "callback(new Error('Only staff may come in'))",
  text: "callback('just a text')",
  unauthorized: "callback(new UnauthorizedError('You are not on the list'))",
  throws: "throw new Error('thrown')",
  tells: "callback(new Error('the token is ' + accessToken + ' and ' + context.refresh_token))",
  empty: 'callback(null)',
  list: 'callback(null, [{ user_id: 1 }])',
  silent: '',
  broken: '{{{',
};

describe('the script of a custom social connection', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    provider.tokenAnswer = {
      access_token: 'their-very-long-access-token',
      refresh_token: 'their-very-long-refresh',
      extra: { a: 1 },
    };
    const of = (name: string, scripts: object, more: object = {}) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web'],
      options: optionsFor(provider, { configuration: { key: 'value' }, ...more, scripts }),
    });
    const out = (body: string) => ({
      fetchUserProfile: `function (accessToken, context, callback) { ${PROFILE} }`,
      getLogoutUrl: `function (query, callback) { ${body} }`,
    });
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, allowed_logout_urls: [HOME] },
        connections: [
          ...Object.entries(BODIES).map(([name, body]) =>
            of(name, { fetchUserProfile: `function (accessToken, context, callback) { ${body} }` }),
          ),
          of(
            'out',
            out("callback(null, 'https://idp.example.test/out?to=' + encodeURIComponent(query.returnTo))"),
          ),
          of('out-fails', out("callback(new Error('no'))")),
          of('out-elsewhere', out("callback(null, 'javascript:alert(1)')")),
          of('out-fixed', out("callback(null, 'https://wrong.example.test/')"), {
            logoutUrl: 'https://idp.example.test/fixed?a=1',
          }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    server.tick(20 * 60_000);
  });

  it('receives the access token, the token response, the names of the tenant and the configuration', async () => {
    expect(await logInUpstream(server, { connection: 'context' })).to.have.property('code');
    const [identity] = await server.users.identitiesOf('oauth2|context|u1');
    expect(identity?.attributes).to.deep.include({ key: 'value' });
    expect(identity?.attributes?.given).to.deep.include({
      tenant: 'localhost',
      connection: 'context',
      refresh_token: 'their-very-long-refresh',
      expires_in: 3600,
      extra: { a: 1 },
    });
    expect((await server.users.get('oauth2|context|u1'))?.name).to.equal('their-very-long-access-token');
  });

  const failures: [string, string, string | RegExp][] = [
    ['says', 'access_denied', 'Only staff may come in'],
    ['text', 'access_denied', 'just a text'],
    ['unauthorized', 'unauthorized', 'You are not on the list'],
    ['throws', 'access_denied', 'thrown'],
    ['tells', 'access_denied', 'the token is *** and ***'],
    ['empty', 'access_denied', 'The fetchUserProfile script gave no profile.'],
    ['list', 'access_denied', 'The fetchUserProfile script gave no profile.'],
    ['silent', 'access_denied', /^The fetchUserProfile script failed: /],
    ['broken', 'access_denied', /^The fetchUserProfile script failed: /],
  ];
  for (const [connection, error, description] of failures) {
    it(`fails the login with its message, which is recorded without secrets: ${BODIES[connection] || 'no answer'}`, async () => {
      const answer = await logInUpstream(server, { connection });
      expect(answer.error).to.equal(error);
      if (typeof description === 'string') expect(answer.error_description).to.equal(description);
      else expect(answer.error_description).to.match(description);
      expect(await failedLogins(server)).to.include(answer.error_description);
      expect(server.logged()).not.to.contain('their-very-long');
    });
  }

  for (const [connection, expected] of [
    ['out', 'https://idp.example.test/out'],
    ['out-fixed', 'https://idp.example.test/fixed'],
    ['out-fails', HOME],
    ['out-elsewhere', HOME],
  ] as const) {
    it(`sets the logout URL at the provider, unless it fails or returns no https URL: ${connection}`, async () => {
      const agent = createAgent(server);
      expect(await logInUpstream(server, { connection }, agent)).to.have.property('code');
      const { location } = await agent.get(`/v2/logout?federated&returnTo=${encodeURIComponent(HOME)}`);
      const at = new URL(location);
      expect(`${at.origin}${at.pathname}`).to.equal(expected);
      if (expected === HOME) return;
      const back = at.searchParams.get('to') ?? at.searchParams.get('returnTo') ?? '';
      expect((await agent.get(back)).location).to.equal(HOME);
    });
  }
});
