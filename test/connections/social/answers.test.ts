// Responses of well-known providers that are faults, or that do not identify a user.
import { expect } from 'chai';
import { refreshOptions, socialConnection } from '../../../src/features/connections/social/preset-options.ts';
import { presets } from '../../../src/features/connections/social/presets.ts';
import { socialIdentity } from '../../../src/features/connections/social/social-strategy.ts';
import type { AuthError } from '../../../src/http/errors.ts';
import { createOutbound, outboundRules } from '../../../src/http/outbound/outbound.ts';
import { connectionSchema } from '../../../src/records/connections/connections.ts';
import { createAgent } from '../../support/agent.ts';
import { authorize, responseOf, tenant, webRequest } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type Answer, type SocialProvider, startSocialProvider } from '../../support/social-provider.ts';
import { failedLogins, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';
import { KNOWN } from './answers.ts';

const github = KNOWN.github.answers[''] as Record<string, unknown>;

describe('the responses of well-known providers', () => {
  let provider: SocialProvider;
  let server: TestServer;
  before(async () => {
    provider = await startSocialProvider();
    const own = {
      client_id: 'ours',
      client_secret: 'our-secret',
      authorizationURL: `${provider.url}/authorize`,
      tokenURL: `${provider.url}/token`,
      userInfoURL: `${provider.url}/userinfo`,
    };
    const connection = (name: string, strategy: string, options: object) => ({
      name,
      strategy,
      enabled_clients: ['web'],
      options,
    });
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          ...['github', 'facebook', 'slack', 'discord', 'twitter', 'bitbucket', 'windowslive', 'paypal'].map(
            (name) => connection(name, name, own),
          ),
          connection('enterprise', 'github', own),
          connection('no-client', 'github', { ...own, client_id: '', client_secret: null }),
          connection('no-secret', 'facebook', { client_id: 'ours' }),
          connection('no-userinfo', 'github', { ...own, userInfoURL: '' }),
          connection('many', 'github', {
            ...own,
            scope: Array.from({ length: 199 }, (_one, index) => `scope:${index}`).join(' '),
            freeform_scopes: ['x'.repeat(255)],
          }),
          connection('hosted', 'github', { client_id: 'ours', client_secret: 'our-secret' }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    for (const path of Object.keys(provider.answers)) delete provider.answers[path];
    provider.answers['/userinfo/emails'] = [];
  });

  const logIn = (connection: string, user: Answer) => {
    provider.answers['/userinfo'] = user;
    return logInUpstream(server, { connection });
  };
  const storedUser = async (id: string) => (await server.users.get(id)) ?? {};

  describe('verify an e-mail address', () => {
    let ids = 900_000;
    const address = async (strategy: string, user: object, id: unknown, emails?: Answer) => {
      if (emails !== undefined) provider.answers['/userinfo/emails'] = emails;
      const outcome = await logIn(strategy, user);
      expect(outcome).to.have.property('code');
      const { email, email_verified } = (await storedUser(`${strategy}|${id}`)) as Record<string, unknown>;
      return [email, email_verified];
    };
    const mail = 'grace@example.test';

    it('not at GitHub, if the primary address is not verified', async () => {
      const id = ++ids;
      const emails = [
        { email: 'other@example.test', primary: false, verified: true },
        { email: mail, primary: true, verified: false },
      ];
      expect(await address('github', { ...github, id }, id, emails)).to.deep.equal([mail, false]);
    });

    it('not if only the GitHub profile shows it', async () => {
      const id = ++ids;
      expect(await address('github', { ...github, id, email: mail }, id)).to.deep.equal([mail, false]);
    });

    it('not if GitHub does not allow the addresses to be read', async () => {
      for (const status of [401, 403, 404]) {
        const id = ++ids;
        const emails = () => ({ status, body: { message: 'Not Found' } });
        expect(await address('github', { ...github, id }, id, emails)).to.deep.equal([undefined, false]);
      }
    });

    it('not at Bitbucket, if it is not confirmed', async () => {
      const emails = { values: [{ email: mail, is_primary: true, is_confirmed: false }] };
      expect(await address('bitbucket', { uuid: '{b}' }, '{b}', emails)).to.deep.equal([mail, false]);
    });

    it('not at Discord, unless verified is true', async () => {
      const of = (verified: unknown, id: string) => address('discord', { id, email: mail, verified }, id);
      expect(await of(false, 'd1')).to.deep.equal([mail, false]);
      expect(await of(undefined, 'd2')).to.deep.equal([mail, false]);
      expect(await of('yes', 'd3')).to.deep.equal([mail, false]);
      expect(await of(1, 'd4')).to.deep.equal([mail, false]);
    });

    it('never at Facebook and Microsoft, even with email_verified', async () => {
      const claimed = { email: mail, mail, email_verified: true, verified: true };
      expect(await address('facebook', { id: 'f1', ...claimed }, 'f1')).to.deep.equal([mail, false]);
      expect(await address('windowslive', { id: 'w1', ...claimed }, 'w1')).to.deep.equal([mail, false]);
    });

    it('not at PayPal, if only another address is confirmed', async () => {
      const emails = [
        { value: mail, primary: true, confirmed: false },
        { value: 'other@example.test', confirmed: true },
      ];
      expect(await address('paypal', { user_id: 'https://p.test/user/p1', emails }, 'p1')).to.deep.equal([
        mail,
        false,
      ]);
    });
  });

  describe('with an id', () => {
    it('that is a large number keep all its digits', async () => {
      for (const id of ['9007199254740993', '9007199254740992', '123456789012345678901234567890']) {
        expect(await logIn('github', `{"id": ${id}, "login": "grace"}`)).to.have.property('code');
        expect(await storedUser(`github|${id}`)).to.include({ nickname: 'grace' });
      }
    });

    const none: [string, string, Answer][] = [
      ['GitHub has none', 'github', { login: 'grace' }],
      ['it is null', 'github', { ...github, id: null }],
      ['it is empty', 'github', { ...github, id: '' }],
      ['it is blank', 'github', { ...github, id: ' ' }],
      ['it is an object', 'github', { ...github, id: { toString: 'admin' } }],
      ['it is an array', 'github', { ...github, id: ['1'] }],
      ['it is a fraction', 'github', { ...github, id: 1.5 }],
      ['it is an infinite number', 'github', '{"id": 1e400}'],
      ['it is true', 'github', { ...github, id: true }],
      ['it is too long', 'github', { ...github, id: '1'.repeat(513) }],
      ['it has control characters', 'github', { ...github, id: '1\u0000' }],
      ['X returns only errors', 'twitter', { errors: [{ title: 'Forbidden' }] }],
      ['Slack names no workspace', 'slack', { ok: true, sub: 'U1' }],
      ['PayPal has none', 'paypal', { emails: [] }],
    ];
    for (const [what, connection, user] of none)
      it(`fail the login if ${what}`, async () => {
        expect(await logIn(connection, user)).to.include({
          error: 'access_denied',
          error_description: 'The identity provider gave no user id that can be used.',
        });
      });

    it('of a user of another connection fail the login', async () => {
      await logIn('github', { ...github, id: 77 });
      expect(await logIn('enterprise', { ...github, id: 77 })).to.include({
        error: 'access_denied',
        error_description: 'The user is known by another connection.',
      });
    });

    it('identify different users for different strategies', async () => {
      await logIn('github', { ...github, id: 78 });
      await logIn('facebook', { id: '78', name: 'Somebody' });
      expect(await storedUser('github|78')).to.include({ name: 'Grace Hopper' });
      expect(await storedUser('facebook|78')).to.include({ name: 'Somebody' });
    });
  });

  describe('that are errors', () => {
    const profile = (what: string) => `The identity provider's profile endpoint ${what}.`;
    const status = (status: number, body: object | string) => () => ({ status, body });
    const faults: [string, string, Answer, string][] = [
      [
        'Facebook sends an error as an object',
        'facebook',
        status(400, { error: { message: 'our-secret', type: 'OAuthException', code: 190 } }),
        profile('answered with the error unknown'),
      ],
      [
        'Slack sends an error with status 200',
        'slack',
        { ok: false, error: 'invalid_auth' },
        profile('answered with the error invalid_auth'),
      ],
      [
        'it rejects the token',
        'github',
        status(401, { message: 'Bad credentials' }),
        profile('answered with status 401'),
      ],
      ['it sends status 503', 'github', status(503, '<h1>Unicorn</h1>'), profile('answered with status 503')],
      ['it sends an HTML page', 'github', '<h1>Hello</h1>', profile('sent an answer that is no JSON')],
      ['it sends an array', 'github', [github], profile('sent no profile')],
      ['it sends null', 'github', 'null', profile('sent no profile')],
      ['it redirects', 'github', status(302, {}), profile('redirects')],
      [
        'it sends a response that is too large',
        'github',
        { ...github, x: 'x'.repeat(300_000) },
        profile('sent an answer that is too large'),
      ],
    ];
    for (const [what, connection, user, description] of faults)
      it(`fail the login and are recorded, without any part of the request, if ${what}`, async () => {
        // After ten failed logins of one IP address, only one in ten minutes is recorded.
        server.tick(20 * 60_000);
        expect(await logIn(connection, user)).to.include({
          error: 'invalid_request',
          error_description: description,
        });
        expect(server.logged()).not.to.contain('our-secret');
        expect(await failedLogins(server)).to.include(description);
      });

    it('fail the login if the request for addresses fails, so that no verified address is lost', async () => {
      provider.answers['/userinfo/emails'] = status(502, {});
      expect(await logIn('github', { ...github, id: 901 })).to.include({
        error: 'invalid_request',
        error_description: profile('answered with status 502'),
      });
      expect(await server.users.get('github|901')).to.equal(undefined);
    });

    it('fail the login if the token endpoint sends an error with status 200', async () => {
      provider.answers['/token'] = {
        error: 'bad_verification_code',
        error_description: 'The code passed is incorrect or expired.',
      };
      expect(await logIn('github', github)).to.include({
        error: 'invalid_request',
        error_description:
          "The identity provider's token endpoint answered with the error bad_verification_code.",
      });
    });
  });

  describe('are not requested if the connection', () => {
    const refused: [string, string, string][] = [
      ['has no client_id', 'no-client', 'The connection has no client_id of GitHub.'],
      ['has no secret', 'no-secret', 'The connection has no client_secret of Facebook.'],
    ];
    for (const [what, connection, description] of refused)
      it(what, async () => {
        const agent = createAgent(server);
        let answer = await authorize(agent, webRequest({ connection }));
        for (let hops = 0; hops < 5 && !answer.location.startsWith('http://localhost:3001'); hops++)
          answer = await agent.get(new URL(answer.location, server.url).href);
        expect(responseOf(answer)).to.include({ error: 'invalid_request', error_description: description });
      });

    it('gets the answer that the user has denied the login', async () => {
      const { agent, at } = await toProvider(server, { connection: 'github' });
      const state = at.searchParams.get('state') ?? '';
      const denied = new URLSearchParams({
        error: 'access_denied',
        error_description: 'The user has denied it.',
        state,
      });
      const back = `${server.url}/login/callback?${denied}`;
      expect(responseOf(await fromProvider(server, { agent, at, back }))).to.include({
        error: 'access_denied',
        error_description: 'The user has denied it.',
      });
    });

    it('gets an answer of another issuer', async () => {
      const login = await toProvider(server, { connection: 'github' });
      const back = `${login.back}&iss=https%3A%2F%2Fevil.example.test`;
      const requestsBefore = provider.seen.length;
      expect(responseOf(await fromProvider(server, { ...login, back }))).to.include({
        error: 'access_denied',
        error_description: 'The answer is of another identity provider.',
      });
      expect(provider.seen.length).to.equal(requestsBefore);
    });

    it('has a tokenURL of its own, but no userInfoURL', async () => {
      const agent = createAgent(server);
      const requestsBefore = provider.seen.length;
      let answer = await authorize(agent, webRequest({ connection: 'no-userinfo' }));
      for (let hops = 0; hops < 5 && !answer.location.startsWith('http://localhost:3001'); hops++)
        answer = await agent.get(new URL(answer.location, server.url).href);
      expect(responseOf(answer)).to.include({
        error: 'invalid_request',
        error_description: 'The connection has a tokenURL of its own, but no userInfoURL.',
      });
      expect(provider.seen.length).to.equal(requestsBefore);
    });
  });

  it('may be requested with as many scopes as a connection can have', async () => {
    const { at } = await toProvider(server, { connection: 'many' });
    expect(at.searchParams.get('scope')?.split(' ')).to.have.length(200);
  });

  it('come from the preset’s own endpoints if the connection has none', async () => {
    const { location } = await authorize(createAgent(server), webRequest({ connection: 'hosted' }));
    expect(location).to.match(/^https:\/\/github\.com\/login\/oauth\/authorize\?/);
  });
});

describe('a profile endpoint in a private network', () => {
  it('is not called in production', async () => {
    const { fetch } = createOutbound({ rules: outboundRules([]) });
    for (const host of ['127.0.0.1', '169.254.169.254', '10.0.0.1', '[::1]']) {
      const connection = socialConnection(presets.github, {
        options: { client_id: 'a', client_secret: 'b', userInfoURL: `https://${host}/user` },
      } as never);
      const refusal = await socialIdentity({ fetch }, presets.github, connection, {
        access_token: 'their-token',
      }).catch((thrown: AuthError) => thrown.error_description);
      expect(refusal).to.equal(
        "The identity provider's profile endpoint is at an address that may not be called.",
      );
    }
  });
});

describe('the options of a connection to a well-known provider', () => {
  const faults = (options: object) =>
    (connectionSchema.safeParse({ name: 'gh', strategy: 'github', options }).error?.issues ?? []).map(
      ({ path }) => path.join('.'),
    );

  const taken: [string, object][] = [
    ['nothing', {}],
    [
      'the options that the hosted service exports',
      { scope: ['user:email'], email: true, profile: true, allowed_audiences: [] },
    ],
    [
      'null and empty strings for what is not set',
      { client_id: null, client_secret: '', scope: null, tokenURL: '' },
    ],
    [
      'endpoints of its own',
      { authorizationURL: 'https://git.example.test/a', tokenURL: 'https://git.example.test/t' },
    ],
  ];
  for (const [what, options] of taken)
    it(`may have ${what}`, () => {
      expect(faults(options)).to.deep.equal([]);
    });

  const refused: [string, object, string][] = [
    ['an endpoint without TLS', { userInfoURL: 'http://git.example.test/u' }, 'userInfoURL'],
    ['an endpoint of another scheme', { authorizationURL: 'javascript:alert(1)' }, 'authorizationURL'],
    ['an endpoint with a password', { tokenURL: 'https://a:b@git.example.test/t' }, 'tokenURL'],
    ['a client_id that is not a string', { client_id: 1 }, 'client_id'],
    ['a scope that is an object', { scope: { email: true } }, 'scope'],
    ['an unknown set_user_root_attributes', { set_user_root_attributes: 'x' }, 'set_user_root_attributes'],
  ];
  for (const [what, options, at] of refused)
    it(`may not have ${what}`, () => {
      expect(faults(options)).to.deep.equal([`options.${at}`]);
    });

  describe('for providers whose API has changed', () => {
    const client = { client_id: 'ours', client_secret: 'our-secret' };
    const of = (name: keyof typeof presets, options: object = {}) =>
      socialConnection(presets[name], { options: { ...client, ...options } });
    const read = (name: keyof typeof presets, user: object) =>
      presets[name].read({ user: { ...user }, further: {}, idToken: {} });

    it('read PayPal’s address in either form, verified as PayPal says', () => {
      const address = { email: 'grace@example.test' };
      expect(read('paypal', { ...address, email_verified: true }).profile).to.deep.equal({
        ...address,
        email_verified: true,
      });
      expect(read('paypal', address).profile).to.deep.equal({ ...address, email_verified: false });
    });

    it('use Fitbit’s older id, or the newer one with a prefix that no older one has', () => {
      expect(read('fitbit', { legacyUserId: '257V3V', healthUserId: 'a' }).id).to.equal('257V3V');
      expect(read('fitbit', { legacyUserId: '', healthUserId: '257V3V' }).id).to.equal('health_257V3V');
      expect(read('fitbit', {}).id).to.equal(undefined);
    });

    it('map the names of options and exports to scopes', () => {
      const health = 'https://www.googleapis.com/auth/googlehealth';
      expect(of('fitbit', { scope: ['profile', 'sleep'] }).scopes).to.deep.equal([
        `${health}.profile.readonly`,
        `${health}.sleep.readonly`,
      ]);
      expect(of('github', { scope: 'email,repo', freeform_scopes: 'follow' }).scopes).to.deep.equal([
        'user:email',
        'repo',
        'follow',
      ]);
    });

    it('use Figma’s refresh endpoint, unless the connection has a tokenURL of its own', () => {
      const figma = (options: object) => refreshOptions(presets.figma, of('figma', options)).tokenURL;
      expect(figma({})).to.equal('https://api.figma.com/v1/oauth/refresh');
      const own = {
        tokenURL: 'https://figma.example.test/token',
        userInfoURL: 'https://figma.example.test/me',
      };
      expect(figma(own)).to.equal(own.tokenURL);
    });
  });
});
