// What token endpoints of providers answer, well and badly: each fault is told the application and recorded, without
// anything that was sent.
import { expect } from 'chai';
import { exchangeCode } from '../../../src/connections/oauth2/token.ts';
import { createOutbound } from '../../../src/http/outbound.ts';
import { LOOPBACK_RANGES, outboundRules } from '../../../src/http/outbound-rules.ts';
import { oauth2OptionsSchema } from '../../../src/records/oauth2.ts';
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
const said = (what: string) => `The identity provider's token endpoint ${what}.`;
const TOKEN = { access_token: 'their-token', token_type: 'bearer' };

const BAD: [string, Misbehaviour, string][] = [
  [
    'refuses the code',
    answer({ error: 'invalid_grant' }, 400),
    said('answered with the error invalid_grant'),
  ],
  [
    'answers errors with 200, as JSON',
    answer({ error: 'bad_verification_code' }),
    said('answered with the error bad_verification_code'),
  ],
  [
    'answers errors with 200, as a form',
    plain('error=bad_code&error_description=x', 'application/x-www-form-urlencoded'),
    said('answered with the error bad_code'),
  ],
  [
    'names errors in an object',
    answer({ error: { message: 'upstream-secret', code: 190 } }),
    said('answered with the error unknown'),
  ],
  [
    'repeats the secret in its error',
    answer({ error: 'upstream-secret' }, 401),
    said('answered with the error unknown'),
  ],
  ['fails with a page', plain('<h1>Oops</h1>', 'text/html', 500), said('answered with status 500')],
  [
    'answers with a page',
    plain('<p class="a=b">', 'text/html'),
    said('sent an answer that is neither JSON nor a form'),
  ],
  ['answers nothing', plain('', 'application/json'), said('sent an answer that is neither JSON nor a form')],
  ['answers a list', plain('[]', 'application/json'), said('sent an answer that is neither JSON nor a form')],
  ['gives no access token', answer({ token_type: 'bearer' }), said('gave no access token')],
  ['gives a token that is no text', answer({ ...TOKEN, access_token: 42 }), said('gave no access token')],
  [
    'gives a token that is bound to a key',
    answer({ ...TOKEN, token_type: 'DPoP' }),
    said('gave a token of a type that is not supported'),
  ],
  ['redirects', (response) => void response.writeHead(302, { location: '/token' }).end(), said('redirects')],
  [
    'redirects, keeping the method',
    (response) => void response.writeHead(307, { location: '/token' }).end(),
    said('redirects'),
  ],
  [
    'sends more than anybody needs',
    answer({ ...TOKEN, more: 'x'.repeat(300_000) }),
    said('sent an answer that is too large'),
  ],
  [
    'ends in the middle',
    (response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      setImmediate(() => response.destroy());
    },
    said('sent no valid answer'),
  ],
];

const GOOD: [string, Misbehaviour][] = [
  ['JSON', answer(TOKEN)],
  ['JSON without a token type', answer({ access_token: 'their-token' })],
  ['JSON with a word of its own for the type', answer({ ...TOKEN, token_type: 'user' })],
  ['JSON that is said to be text', plain(JSON.stringify(TOKEN), 'text/plain')],
  [
    'a form',
    plain('access_token=their-token&token_type=bearer&scope=a%20b', 'application/x-www-form-urlencoded'),
  ],
  ['a form that is said to be text', plain('access_token=their-token', 'text/plain')],
  ['201', answer(TOKEN, 201)],
];

describe('the token endpoint of a provider', () => {
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
    it(`${what}: an error at the application, and an event`, async () => {
      provider.token = misbehaviour;
      // Failed logins of one address are recorded ten at a time, and then one in ten minutes.
      server.tick(20 * 60_000);
      const before = (await failedLogins(server)).length;
      const told = await logInUpstream(server);
      expect(told).to.include({
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
    it(`may answer with ${what}`, async () => {
      provider.token = behaviour;
      // Without a script nobody says who the user is: the login gets as far as that.
      const told = await logInUpstream(server);
      expect(told).to.include({ error: 'access_denied', error_description: 'The profile has no user_id.' });
    });
  }

  it('answers in time, or not at all', async () => {
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
    expect(thrown).to.equal(said('did not answer in time'));
  });

  it('is sent the code and the secret, and what the connection adds', async () => {
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

describe('a token endpoint that production may not call', () => {
  it('is an error at the application that says so, and nothing is sent', async () => {
    const provider = await startProvider();
    const options = optionsFor(provider, { scripts: {} });
    const acme = { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options };
    const server = await startServer({
      tenant: { ...tenant, connections: [acme] },
      env: { OUTBOUND_ALLOW: '192.0.2.0/24' },
    });
    try {
      const told = await logInUpstream(server);
      expect(told.error_description).to.equal(said('is at an address that may not be called'));
      expect(provider.seen.map(({ path }) => path)).to.deep.equal(['/authorize']);
    } finally {
      await server.stop();
      await provider.stop();
    }
  });
});
