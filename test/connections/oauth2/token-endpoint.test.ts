// Responses of providers' token endpoints, valid and invalid. Every fault is sent to the application and recorded, without any
// part of the request.
import { expect } from 'chai';
import { exchangeCode } from '../../../src/features/connections/oauth2/oauth2-strategy.ts';
import { createOutbound, LOOPBACK_RANGES, outboundRules } from '../../../src/http/outbound/outbound.ts';
import { oauth2OptionsSchema } from '../../../src/records/connections/upstream.ts';
import { tenant } from '../../support/flows.ts';
import {
  json,
  type Misbehaviour,
  type OAuth2Provider,
  optionsFor,
  startProvider,
} from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { failedLogins, logInUpstream } from '../../support/upstream-login.ts';

const plain =
  (text: string, type: string, status = 200): Misbehaviour =>
  (response) => {
    response.writeHead(status, { 'content-type': type }).end(text);
  };
const answer =
  (body: object, status = 200): Misbehaviour =>
  (response) =>
    json(response, body, status);
const fault = (what: string) => `The identity provider's token endpoint ${what}.`;
const TOKEN = { access_token: 'their-token', token_type: 'bearer' };

const BAD: [string, Misbehaviour, string][] = [
  [
    'rejects the code',
    answer({ error: 'invalid_grant' }, 400),
    fault('answered with the error invalid_grant'),
  ],
  [
    'sends an error with status 200, as JSON',
    answer({ error: 'bad_verification_code' }),
    fault('answered with the error bad_verification_code'),
  ],
  [
    'sends an error with status 200, as a form',
    plain('error=bad_code&error_description=x', 'application/x-www-form-urlencoded'),
    fault('answered with the error bad_code'),
  ],
  [
    'sends an error as an object',
    answer({ error: { message: 'upstream-secret', code: 190 } }),
    fault('answered with the error unknown'),
  ],
  [
    'repeats the secret in its error',
    answer({ error: 'upstream-secret' }, 401),
    fault('answered with the error unknown'),
  ],
  [
    'sends an HTML page with status 500',
    plain('<h1>Oops</h1>', 'text/html', 500),
    fault('answered with status 500'),
  ],
  [
    'sends an HTML page with status 200',
    plain('<p class="a=b">', 'text/html'),
    fault('sent an answer that is neither JSON nor a form'),
  ],
  [
    'sends an empty body',
    plain('', 'application/json'),
    fault('sent an answer that is neither JSON nor a form'),
  ],
  [
    'sends an array',
    plain('[]', 'application/json'),
    fault('sent an answer that is neither JSON nor a form'),
  ],
  ['sends no access token', answer({ token_type: 'bearer' }), fault('gave no access token')],
  [
    'sends an access token that is not a string',
    answer({ ...TOKEN, access_token: 42 }),
    fault('gave no access token'),
  ],
  [
    'sends a DPoP token',
    answer({ ...TOKEN, token_type: 'DPoP' }),
    fault('gave a token of a type that is not supported'),
  ],
  ['redirects', (response) => void response.writeHead(302, { location: '/token' }).end(), fault('redirects')],
  [
    'redirects with status 307',
    (response) => void response.writeHead(307, { location: '/token' }).end(),
    fault('redirects'),
  ],
  [
    'sends a response that is too large',
    answer({ ...TOKEN, more: 'x'.repeat(300_000) }),
    fault('sent an answer that is too large'),
  ],
  [
    'closes the connection within the body',
    (response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      setImmediate(() => response.destroy());
    },
    fault('sent no valid answer'),
  ],
];

const GOOD: [string, Misbehaviour][] = [
  ['JSON', answer(TOKEN)],
  ['JSON without a token type', answer({ access_token: 'their-token' })],
  ['JSON with a token type of its own', answer({ ...TOKEN, token_type: 'user' })],
  ['JSON with the content type text/plain', plain(JSON.stringify(TOKEN), 'text/plain')],
  [
    'a form',
    plain('access_token=their-token&token_type=bearer&scope=a%20b', 'application/x-www-form-urlencoded'),
  ],
  ['a form with the content type text/plain', plain('access_token=their-token', 'text/plain')],
  ['status 201', answer(TOKEN, 201)],
];

describe('the token endpoint of an OAuth 2.0 provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    const options = optionsFor(provider, { scripts: {} });
    const acme = { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options };
    server = await startServer({ tenant: { ...tenant, connections: [acme] } });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  for (const [what, misbehaviour, description] of BAD) {
    it(`fails the login and records why when it ${what}`, async () => {
      provider.token = misbehaviour;
      // After ten failed logins of one IP address, only one in ten minutes is recorded.
      server.tick(20 * 60_000);
      const before = (await failedLogins(server)).length;
      const outcome = await logInUpstream(server);
      expect(outcome).to.include({
        error: 'invalid_request',
        error_description: description,
        state: 'the-state',
      });
      const recorded = await failedLogins(server);
      expect(recorded.slice(before)).to.deep.equal([description]);
      expect(server.logged()).not.to.contain('upstream-secret');
    });
  }

  for (const [what, behaviour] of GOOD) {
    it(`may respond with ${what}`, async () => {
      provider.token = behaviour;
      // The connection has no script, so the login fails only when the profile is read.
      const outcome = await logInUpstream(server);
      expect(outcome).to.include({
        error: 'access_denied',
        error_description: 'The profile has no user_id.',
      });
    });
  }

  it('fails the login when it does not finish its response in time', async () => {
    provider.token = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"access_token":');
    };
    const outbound = createOutbound({ rules: outboundRules(LOOPBACK_RANGES) });
    const options = oauth2OptionsSchema.parse(optionsFor(provider));
    const response = { redirectUri: 'https://here.test/', codeVerifier: 'v', parameters: { code: 'c' } };
    const impatient = (input: string | URL | Request, init: object = {}) =>
      outbound.fetch(input, { ...init, timeout: 100 });
    const thrown = await exchangeCode({ fetch: impatient }, options, response).catch(
      (error: { error_description: string }) => error.error_description,
    );
    expect(thrown).to.equal(fault('did not answer in time'));
  });

  it('receives the code, the client credentials and the redirect URI', async () => {
    provider.token = undefined;
    await logInUpstream(server);
    const { form, headers, method } = provider.last('/token');
    expect(method).to.equal('POST');
    expect(headers).to.include({
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      'user-agent': 'Gatehouse',
    });
    const { code, ...rest } = form;
    expect(code).to.match(/^code-/);
    expect(rest).to.deep.equal({
      grant_type: 'authorization_code',
      redirect_uri: `${server.url}/login/callback`,
      client_id: 'gatehouse',
      client_secret: 'upstream-secret',
    });
  });
});

describe('a token endpoint that OUTBOUND_ALLOW does not allow', () => {
  it('fails the login with an error that says so, and is not called', async () => {
    const provider = await startProvider();
    const options = optionsFor(provider, { scripts: {} });
    const acme = { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options };
    const server = await startServer({
      tenant: { ...tenant, connections: [acme] },
      env: { OUTBOUND_ALLOW: '192.0.2.0/24' },
    });
    try {
      const outcome = await logInUpstream(server);
      expect(outcome.error_description).to.equal(fault('is at an address that may not be called'));
      expect(provider.seen.map(({ path }) => path)).to.deep.equal(['/authorize']);
    } finally {
      await server.stop();
      await provider.stop();
    }
  });
});
