// The API of a request: exactly one, named by its identifier as `audience` or `resource`, at every endpoint.
import { expect } from 'chai';
import { EXTENSIONS_PARAMETER, readExtensions } from '../../src/engine/base/request-extensions.ts';
import { unasked } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  API,
  follow,
  logIn,
  payload,
  responseOf,
  submitLogin,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const OTP = 'http://auth0.com/oauth/grant-type/passwordless/otp';

/** Parameters that name two APIs, or one in the engine's internal form. */
const WRONG: [string, [string, string][]][] = [
  [
    'two resources',
    [
      ['resource', API],
      ['resource', 'guarded-api'],
    ],
  ],
  [
    'the same resource twice',
    [
      ['resource', API],
      ['resource', API],
    ],
  ],
  [
    'two audiences',
    [
      ['audience', API],
      ['audience', 'guarded-api'],
    ],
  ],
  [
    'an audience and another resource',
    [
      ['audience', API],
      ['resource', 'guarded-api'],
    ],
  ],
  ['a resource of the engine’s own', [['resource', `urn:gatehouse:api:${encodeURIComponent(API)}`]]],
  ['an audience of the engine’s own', [['audience', `urn:gatehouse:api:${encodeURIComponent(API)}`]]],
  ['an undecodable resource', [['resource', 'urn:gatehouse:api:%ff']]],
];

describe('the API of a request', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: { ...unasked, guardianPolicies: { policies: [] } },
    });
  });
  after(() => server.stop());

  const request = (more: [string, string][]): [string, string][] => [
    ...Object.entries(webRequest()),
    ...more,
  ];
  const ask = (way: string, params: [string, string][], agent = createAgent(server)) =>
    way === 'GET'
      ? agent.get(`/authorize?${new URLSearchParams(params)}`)
      : agent.request('/authorize', { form: params });
  const exchange = (code: string | undefined, more: [string, string][] = []) =>
    createAgent(server).request('/oauth/token', {
      form: [
        ['grant_type', 'authorization_code'],
        ['client_id', 'web'],
        ['client_secret', 'web-secret'],
        ['code', code ?? ''],
        ['redirect_uri', WEB_CALLBACK],
        ...more,
      ],
    });

  for (const way of ['GET', 'POST']) {
    for (const [what, params] of WRONG) {
      it(`is refused at ${way} /authorize when the request has ${what}`, async () => {
        const answer = await ask(way, request(params));
        expect(answer.status).to.equal(302);
        expect(responseOf(answer).error).to.be.oneOf(['invalid_target', 'invalid_request']);
        expect(answer.location.startsWith(WEB_CALLBACK), answer.location).to.equal(true);
      });
    }

    it(`can be named by audience, by resource, or by both, at ${way} /authorize`, async () => {
      for (const params of [
        [['audience', API]],
        [['resource', API]],
        [
          ['audience', API],
          ['resource', API],
        ],
        [
          ['audience', ''],
          ['resource', API],
        ],
      ] as [string, string][][]) {
        const agent = createAgent(server);
        const page = await follow(agent, await ask(way, request(params), agent), server.url);
        const { code } = responseOf(await submitLogin(agent, server, page));
        const { access_token } = (await exchange(code)).json();
        expect(payload(access_token).aud).to.include(API);
      }
    });
  }

  const credentials = [
    ['client_id', 'web'],
    ['client_secret', 'web-secret'],
  ] as [string, string][];
  const grants: Record<string, [string, string][]> = {
    client_credentials: [['grant_type', 'client_credentials']],
    password: [
      ['grant_type', 'password'],
      ['username', USER.email],
      ['password', USER.password],
    ],
    'password-realm': [
      ['grant_type', REALM],
      ['realm', 'users'],
      ['username', USER.email],
      ['password', USER.password],
    ],
    'passwordless/otp': [
      ['grant_type', OTP],
      ['realm', 'email'],
      ['username', USER.email],
      ['otp', '1'],
    ],
    refresh_token: [
      ['grant_type', 'refresh_token'],
      ['refresh_token', 'none'],
    ],
    authorization_code: [
      ['grant_type', 'authorization_code'],
      ['code', 'none'],
      ['redirect_uri', WEB_CALLBACK],
    ],
    'mfa-otp': [
      ['grant_type', 'http://auth0.com/oauth/grant-type/mfa-otp'],
      ['mfa_token', 'none'],
      ['otp', '123456'],
    ],
  };
  for (const [name, fields] of Object.entries(grants)) {
    for (const [what, params] of WRONG) {
      it(`is refused at /oauth/token when the request has ${what}, with ${name}`, async () => {
        const answer = await createAgent(server).request('/oauth/token', {
          form: [...fields, ...credentials, ...params],
        });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.json().error).to.be.oneOf(['invalid_target', 'invalid_request']);
      });
    }
  }

  it('is that of the login for a code and its refresh token, and a `resource` must name the same', async () => {
    const codeFor = async () =>
      responseOf(
        await logIn(
          createAgent(server),
          server,
          webRequest({ audience: API, scope: 'openid offline_access read:things' }),
        ),
      ).code;
    expect((await exchange(await codeFor(), [['resource', 'guarded-api']])).json().error).to.equal(
      'invalid_target',
    );
    const tokens = (await exchange(await codeFor(), [['resource', API]])).json();
    expect(payload(tokens.access_token).aud).to.include(API);
    const refresh = (resource: string) =>
      createAgent(server).request('/oauth/token', {
        form: [
          ['grant_type', 'refresh_token'],
          ['refresh_token', tokens.refresh_token],
          ['resource', resource],
          ...credentials,
        ],
      });
    expect((await refresh('guarded-api')).json().error).to.equal('invalid_target');
    expect(payload((await refresh(API)).json().access_token).aud).to.include(API);
  });

  it('is never the MFA API in a silent request, however the request spells it', async () => {
    const mfa = `${server.issuer}mfa/`;
    const resource = `urn:gatehouse:api:${encodeURIComponent(mfa)}`;
    const scope: [string, string] = ['scope', 'openid enroll read:authenticators remove:authenticators'];
    const user = { email: 'mfa-0@example.test', password: USER.password };
    const agent = createAgent(server);
    const enrolled = await enroll(user, mfa);
    expect(enrolled.status, enrolled.text).to.equal(200);
    await logIn(agent, server, webRequest(), user);
    for (const spelling of [
      [['audience', mfa]],
      [['resource', mfa]],
      [
        ['audience', mfa],
        ['resource', mfa],
      ],
      [
        ['resource', mfa],
        ['resource', API],
      ],
      [
        ['resource', API],
        ['resource', mfa],
      ],
      [
        ['resource', resource],
        ['resource', resource],
      ],
      [['resource', resource]],
      [
        ['resource[]', resource],
        ['resource[]', mfa],
      ],
      [['audience', mfa.slice(0, -1)]],
      [['audience', mfa.toUpperCase()]],
    ] as [string, string][][]) {
      for (const path of ['/authorize', '/AUTHORIZE', '/authorize/', '/%61uthorize']) {
        for (const method of ['GET', 'HEAD', 'POST']) {
          const { scope: _, ...rest } = webRequest();
          const params: [string, string][] = [...Object.entries({ ...rest, state: 'x' }), scope, ...spelling];
          const query = new URLSearchParams(params).toString();
          const silent = await agent.request(
            method === 'POST' ? path : `${path}?${query}&prompt=none`,
            method === 'POST' ? { form: [...params, ['prompt', 'none']] } : { method },
          );
          const code = silent.location === '' ? undefined : responseOf(silent).code;
          if (code === undefined) continue;
          const { access_token } = (await exchange(code)).json();
          expect(access_token.split('.').length === 3 ? payload(access_token).aud : [], query).not.to.include(
            mfa,
          );
        }
      }
    }
  });

  /** Enrolls a second factor for a user. */
  async function enroll(user: { email: string; password: string }, audience: string) {
    const { codeOf, callsOf } = await import('../factors/tenant.ts');
    const calls = callsOf(server);
    const { access_token } = (
      await calls.login(user.email, { audience, scope: 'enroll read:authenticators' })
    ).json();
    const added = await calls.associate(access_token, { authenticator_types: ['otp'] });
    return calls.verify('otp', { mfa_token: access_token, otp: codeOf(added.json().secret) });
  }

  describe('the internal parameter of a request', () => {
    const forged = JSON.stringify({ offline: true, withoutNonce: false, upstream: {}, loginTicket: 'x' });

    it('is ignored when a client sends it', async () => {
      for (const [way, notes] of [
        ['GET', forged],
        ['POST', forged],
        ['GET', 'null'],
        ['POST', '{"offline":'],
        ['GET', '[]'],
      ] as const) {
        const agent = createAgent(server);
        const params = request([[EXTENSIONS_PARAMETER, notes]]);
        const page = await follow(agent, await ask(way, params, agent), server.url);
        expect(readForm(page, 'password').fields, 'no ticket is looked for').to.have.property('username');
        const { code } = responseOf(await submitLogin(agent, server, page));
        expect((await exchange(code)).json()).not.to.have.property('refresh_token');
      }
    });

    it('is ignored when a browser sends it to resume a request', async () => {
      const agent = createAgent(server);
      const page = await follow(agent, await ask('GET', request([]), agent), server.url);
      const { action, fields } = readForm(page, 'password');
      const posted = await agent.request(action, {
        form: { ...fields, username: USER.email, password: USER.password },
      });
      const resumed = await agent.get(
        `${posted.location}?${new URLSearchParams({ [EXTENSIONS_PARAMETER]: forged })}`,
      );
      expect((await exchange(responseOf(resumed).code)).json()).not.to.have.property('refresh_token');
    });

    it('is read as empty when it is malformed', () => {
      for (const garbage of [undefined, 'null', '[]', '1', '{', '{"offline":1}', '"x"', ['{}'], {}, 7]) {
        expect(readExtensions({ [EXTENSIONS_PARAMETER]: garbage })).to.deep.equal({
          offline: false,
          withoutNonce: false,
          upstream: {},
        });
      }
    });
  });
});
