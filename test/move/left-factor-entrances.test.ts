// Every way to log in, for a user whose second factor was left behind at the old tenant: none lets them in without one, and what
// they got before does not let them add another.
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { LEFT_BEHIND_REASON, leftBehindId, leftBehindWrites } from '../../src/users/left-factors.ts';
import { SCOPES } from '../account/tenant.ts';
import { tenant as base, OTP_GRANT } from '../connections/passwordless/tenant.ts';
import { codeOf, MFA_GRANTS, REALM_GRANT } from '../factors/tenant.ts';
import { CIBA_GRANT, DEVICE_GRANT } from '../grants/tenant.ts';
import { callApi, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import {
  authorize,
  follow,
  logIn,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { resetPassword } from '../support/reset.ts';
import type { TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';
import { actionsAt, tenantWith } from '../support/tenant.ts';
import { logInUpstream } from '../support/upstream-login.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const PASSKEY_GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const SUBJECT = 'urn:acme:legacy-token';
const ME = 'https://elsewhere.example.test/me/';
const ORIGIN = 'https://app.example.test';
const WRONG = 'Wrong email or password.';
const NOT_HERE = 'The second factor of the user is not known here.';

const app = (client_id: string, over: object) => ({
  client_id,
  name: `The ${client_id}`,
  client_secret: `${client_id}-secret`,
  app_type: 'regular_web',
  ...over,
});

const tenant = (provider: OpenIdProvider) =>
  tenantWith(
    {
      enable: ['strict'],
      change: {
        web: ({ grant_types }) => ({
          grant_types: [...grant_types, OTP_GRANT, REALM_GRANT, EXCHANGE, ...MFA_GRANTS],
          token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
          cross_origin_authentication: true,
          allowed_origins: [ORIGIN],
        }),
      },
      add: {
        clients: [
          app('tv', { grant_types: [DEVICE_GRANT], app_type: 'native', token_endpoint_auth_method: 'none' }),
          app('strict', {
            grant_types: [REALM_GRANT, ...MFA_GRANTS],
            client_metadata: { mfa_policy: 'always' },
          }),
          app('mail', { callbacks: [WEB_CALLBACK] }),
          app('bank', { grant_types: [CIBA_GRANT], async_approval_notification_channels: ['email'] }),
          app('keys', {
            grant_types: [PASSKEY_GRANT],
            token_endpoint_auth_method: 'none',
            web_origins: [ORIGIN],
          }),
        ],
        clientGrants: ['web', 'keys'].map((client_id) => ({
          client_id,
          audience: ME,
          subject_type: 'user',
          scope: SCOPES,
        })),
        databases: [
          {
            name: 'codes',
            enabled_clients: ['web', 'keys'],
            options: {
              attributes: { email: { identifier: { active: true } } },
              authentication_methods: { email_otp: { enabled: true }, passkey: { enabled: true } },
              passkey_options: { progressive_enrollment_enabled: false },
            },
          },
        ],
      },
      connections: [
        { name: 'email', strategy: 'email', enabled_clients: ['web', 'tv', 'bank', 'mail'] },
        { name: 'sms', strategy: 'sms', enabled_clients: ['web'] },
        {
          name: 'acme',
          strategy: 'oidc',
          enabled_clients: ['web'],
          options: {
            type: 'back_channel',
            discovery_url: `${provider.url}/.well-known/openid-configuration`,
            client_id: 'gatehouse',
            client_secret: 'upstream-secret-of-thirty-two-bytes!',
          },
        },
      ],
      guardianFactors: [{ name: 'otp', enabled: true }],
      ...actionsAt('custom-token-exchange', {
        Exchange: `exports.onExecuteCustomTokenExchange = async (event, api) =>
          api.authentication.setUserById(event.transaction.subject_token);`,
      }),
    },
    base,
  );

describe('a second factor that was left behind', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    server = await startManaged(tenant(provider));
    const actions = await callApi(server, 'GET', '/actions/actions');
    const [action] = ((await actions.json()) as { actions: { id: string }[] }).actions;
    const profile = { name: 'exchange', subject_token_type: SUBJECT, type: 'custom_authentication' };
    await callApi(server, 'POST', '/token-exchange-profiles', { ...profile, action_id: action?.id });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  let people = 0;
  interface Person {
    email: string;
    phone: string;
    /** The `sub` at the provider. */
    sub: string;
  }
  const someone = (): Person => {
    const number = ++people;
    return { email: `left-${number}@example.test`, phone: `+1202555${1000 + number}`, sub: `sub-${number}` };
  };
  const inDatabase = async (connection: string): Promise<Person> => {
    const person = someone();
    const { email } = person;
    const profile = { email_verified: true };
    await server.users.create(databaseUser({ connection, email, password: USER.password, profile }));
    return person;
  };
  const idOf = async ({ email, phone }: Person): Promise<string> => {
    const { records } = await server.store.collection('users').list({ limit: 1000 });
    return records.find((one) => one.email === email || one.phone_number === phone)?.id ?? '';
  };
  /** As `gatehouse move in` does with a user whose factor is in no file. */
  const mark = async (person: Person) => {
    const id = await idOf(person);
    expect(id).to.not.equal('');
    await server.store.batch([
      ...leftBehindWrites({ clock: Date.now, random: randomBytes }, id),
      { collection: 'users', update: id, change: (user) => ({ ...user, factor_left_behind: true }) },
    ]);
  };
  const web = { client_id: 'web', client_secret: 'web-secret' };
  /** What a login came to: `in`, or the description of the error. */
  const ofBody = (answer: Answer): string =>
    answer.status === 200 ? 'in' : String(answer.json().error_description);
  const ofResponse = ({ code, error_description }: Record<string, string>): string =>
    code === undefined ? String(error_description) : 'in';
  /** Of a page, or what the application got. */
  const ofPage = (answer: Answer): string =>
    answer.location === ''
      ? answer.text.includes(WRONG)
        ? WRONG
        : answer.text
      : ofResponse(responseOf(answer));
  const grant = async (fields: Record<string, string>) =>
    ofBody(await token(createAgent(server), { ...web, scope: 'openid', ...fields }));
  /** Has a message with a code, or a link, sent and returns it. */
  const sent = async (to: string, having: 'code' | 'link', send: () => Promise<unknown>) => {
    const before = (await messagesTo(server, to)).filter((message) => message[having] !== undefined).length;
    await send();
    return (await nextMessageTo(server, to, before + 1, having))[having] ?? '';
  };
  const started = (connection: string, to: Record<string, string>, send: 'code' | 'link' = 'code') =>
    sent(Object.values(to)[0] ?? '', send, () => {
      const authParams = send === 'link' ? { authParams: webRequest({ scope: 'openid' }) } : {};
      return createAgent(server).request('/passwordless/start', {
        json: { ...web, connection, send, ...to, ...authParams },
      });
    });
  const submit = async (agent: Agent, page: Answer, field: string, typed: Record<string, string>) => {
    const { action, fields } = readForm(page, field);
    return follow(agent, await agent.request(action, { form: { ...fields, ...typed } }), server.url);
  };
  /** Logs in with a code by e-mail at the pages, from the one that asks for the address. */
  const byCode = async (agent: Agent, page: Answer, field: string, email: string) => {
    let next = page;
    const code = await sent(email, 'code', async () => {
      next = await submit(agent, page, field, { [field]: email });
    });
    return submit(agent, next, 'code', { code });
  };
  const open = async (agent: Agent, over: Record<string, string>) =>
    follow(agent, await authorize(agent, webRequest(over)), server.url);
  const silently = async (agent: Agent, credentials: Record<string, string>) => {
    const json = { client_id: 'web', ...credentials };
    const answer = await agent.request('/co/authenticate', { json, headers: { origin: ORIGIN } });
    if (answer.status !== 200) return ofBody(answer);
    const { login_ticket } = answer.json();
    return ofResponse(responseOf(await authorize(agent, webRequest({ prompt: 'none', login_ticket }))));
  };
  const upstream = async ({ email, sub }: Person) => {
    Object.assign(provider, { claims: { sub, email, email_verified: true }, userInfo: { sub } });
    return ofResponse(await logInUpstream(server));
  };

  /** Each way in: who comes by it, how, and what they are told once they are marked. */
  const ENTRANCES: readonly [
    name: string,
    who: () => Person | Promise<Person>,
    enter: (person: Person) => Promise<string>,
    told: string,
  ][] = [
    [
      'a password at the login page',
      () => inDatabase('users'),
      async (person) => {
        const request = webRequest({ connection: 'users' });
        return ofPage(await logIn(createAgent(server), server, request, { ...USER, email: person.email }));
      },
      WRONG,
    ],
    [
      'the password grant',
      () => inDatabase('users'),
      ({ email }) => grant({ grant_type: 'password', username: email, password: USER.password }),
      WRONG,
    ],
    [
      'a password that was just reset',
      () => inDatabase('users'),
      async ({ email }) => {
        const password = `Another-Horse-${++people}`;
        await resetPassword(server, email, password, 'users');
        return grant({ grant_type: REALM_GRANT, realm: 'users', username: email, password });
      },
      WRONG,
    ],
    [
      'a password from a page of another origin',
      () => inDatabase('users'),
      ({ email }) =>
        silently(createAgent(server), {
          credential_type: REALM_GRANT,
          realm: 'users',
          username: email,
          password: USER.password,
        }),
      WRONG,
    ],
    [
      'a code in place of the password',
      () => inDatabase('codes'),
      async ({ email }) => {
        const agent = createAgent(server);
        const page = await open(agent, { connection: 'codes' });
        const path = /href="([^"]*\/code\/codes\/email)"/.exec(page.text)?.[1] ?? '';
        return ofPage(await byCode(agent, await agent.get(path), 'address', email));
      },
      NOT_HERE,
    ],
    [
      'a code by e-mail, at the page',
      someone,
      async ({ email }) => {
        const agent = createAgent(server);
        return ofPage(await byCode(agent, await open(agent, { connection: 'email' }), 'address', email));
      },
      NOT_HERE,
    ],
    [
      'a code by e-mail, at the token endpoint',
      someone,
      async ({ email }) =>
        grant({
          grant_type: OTP_GRANT,
          realm: 'email',
          username: email,
          otp: await started('email', { email }),
        }),
      NOT_HERE,
    ],
    [
      'a code by e-mail, from a page of another origin',
      someone,
      async ({ email }) =>
        silently(createAgent(server), {
          credential_type: OTP_GRANT,
          realm: 'email',
          username: email,
          otp: await started('email', { email }),
        }),
      NOT_HERE,
    ],
    [
      'a link by e-mail',
      someone,
      async ({ email }) => {
        const agent = createAgent(server);
        const link = await started('email', { email }, 'link');
        const { pathname, search } = new URL(link);
        return ofPage(await submit(agent, await agent.get(pathname + search), 'verification_code', {}));
      },
      NOT_HERE,
    ],
    [
      'a code by SMS',
      someone,
      async ({ phone }) =>
        grant({
          grant_type: OTP_GRANT,
          realm: 'sms',
          username: phone,
          otp: await started('sms', { phone_number: phone }),
        }),
      NOT_HERE,
    ],
    ['a provider', someone, upstream, NOT_HERE],
    [
      'a token that is exchanged by an action',
      () => inDatabase('users'),
      async (person) =>
        grant({ grant_type: EXCHANGE, subject_token_type: SUBJECT, subject_token: await idOf(person) }),
      NOT_HERE,
    ],
    [
      'a device code',
      someone,
      async ({ email }) => {
        const form = { client_id: 'tv', scope: 'openid' };
        const { device_code, user_code } = (
          await createAgent(server).request('/oauth/device/code', { form })
        ).json();
        const agent = createAgent(server);
        const asked = await agent.get(`/activate?${new URLSearchParams({ user_code })}`);
        const page = await submit(agent, asked, 'user_code', { decision: 'accept' });
        await byCode(agent, page, 'address', email);
        server.tick(6_000);
        const tv = { grant_type: DEVICE_GRANT, client_id: 'tv', device_code };
        return ofBody(await token(createAgent(server), tv));
      },
      'User cancelled the confirmation prompt.',
    ],
    [
      'a request of another device (CIBA)',
      async () => {
        const person = someone();
        const agent = createAgent(server);
        await byCode(agent, await open(agent, { connection: 'email' }), 'address', person.email);
        return person;
      },
      async (person) => {
        const bank = { client_id: 'bank', client_secret: 'bank-secret' };
        const hint = { format: 'iss_sub', iss: server.issuer, sub: await idOf(person) };
        let request = '';
        const link = await sent(person.email, 'link', async () => {
          const form = { ...bank, scope: 'openid', binding_message: 'A', login_hint: JSON.stringify(hint) };
          request = (await createAgent(server).request('/bc-authorize', { form })).json().auth_req_id;
        });
        const agent = createAgent(server);
        const page = await byCode(
          agent,
          await follow(agent, await agent.get(link), server.url),
          'address',
          person.email,
        );
        if (page.text.includes(NOT_HERE)) return NOT_HERE;
        await submit(agent, page, 'ticket', { decision: 'accept' });
        return ofBody(
          await token(createAgent(server), { grant_type: CIBA_GRANT, ...bank, auth_req_id: request }),
        );
      },
      NOT_HERE,
    ],
    [
      'the account page',
      someone,
      async ({ email }) => {
        const agent = createAgent(server);
        const page = await follow(agent, await agent.get('/account?client_id=mail'), server.url);
        const { status, text } = await byCode(agent, page, 'address', email);
        return status === 200 ? 'in' : text.includes(NOT_HERE) ? NOT_HERE : text;
      },
      NOT_HERE,
    ],
  ];

  const failures = async () => {
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    return records.filter(({ description }) => description === LEFT_BEHIND_REASON).length;
  };

  for (const [name, who, enter, told] of ENTRANCES)
    it(`lets its user not in by ${name}`, async () => {
      const person = await who();
      expect(await enter(person), 'before').to.equal('in');
      await mark(person);
      // The next message to an address is sent only after a time.
      server.tick(120_000);
      const before = await failures();
      expect(await enter(person)).to.equal(told);
      expect(await failures(), 'in the log').to.equal(before + 1);
    });

  const passwordGrant = async (client_id: string, { email }: Person, over: Record<string, string> = {}) => {
    const fields = { grant_type: REALM_GRANT, realm: 'users', username: email, password: USER.password };
    const client = { client_id, client_secret: `${client_id}-secret` };
    return (await token(createAgent(server), { ...client, ...fields, ...over })).json();
  };
  const bearer = (access_token: string) => ({ headers: { authorization: `Bearer ${access_token}` } });

  it('is not added by what its user got before: a token for their account, for the MFA API, or a login that waits for a factor', async () => {
    const agent = createAgent(server);
    const otp = { json: { authenticator_types: ['otp'] } };
    const totp = { json: { type: 'totp' } };
    for (const isMarked of [false, true]) {
      const person = await inDatabase('users');
      const mine = await passwordGrant('web', person, {
        audience: `${server.issuer}me/`,
        scope: SCOPES.join(' '),
      });
      const mfa = await passwordGrant('web', person, { audience: `${server.issuer}mfa/`, scope: 'enroll' });
      const { mfa_token } = await passwordGrant('strict', person);
      const begun = (await agent.request('/mfa/associate', { ...otp, ...bearer(mfa_token) })).json();
      if (isMarked) await mark(person);
      const path = '/me/v1/authentication-methods';
      const statuses = [
        (await agent.request(path, { ...totp, ...bearer(mine.access_token) })).status,
        (await agent.request('/mfa/associate', { ...otp, ...bearer(mfa.access_token) })).status,
      ];
      expect(statuses).to.deep.equal(isMarked ? [401, 401] : [201, 200]);
      const verified = await token(agent, {
        grant_type: 'http://auth0.com/oauth/grant-type/mfa-otp',
        ...{ client_id: 'strict', client_secret: 'strict-secret', mfa_token },
        otp: codeOf(begun.secret),
      });
      expect(verified.status, verified.text).to.equal(isMarked ? 403 : 200);
      if (isMarked)
        expect(
          await grant({ grant_type: 'password', username: person.email, password: USER.password }),
        ).to.equal(WRONG);
    }
  });

  it('ends the session of the account page, where another could be added', async () => {
    const agent = createAgent(server);
    const { email } = someone();
    const page = await follow(agent, await agent.get('/account?client_id=mail'), server.url);
    await byCode(agent, page, 'address', email);
    expect((await agent.get('/account/security')).status).to.equal(200);
    await mark({ email, phone: '', sub: '' });
    expect((await agent.get('/account/security')).status).to.equal(303);
    server.tick(120_000);
    const again = await follow(agent, await agent.get('/account/security'), server.url);
    expect((await byCode(agent, again, 'address', email)).text).to.contain(NOT_HERE);
    expect((await agent.get('/account/security')).status).to.equal(303);
  });

  it('is not lost when its user becomes an identity of another, with an ID token of before', async () => {
    const [stays, goes] = [await inDatabase('users'), await inDatabase('users')];
    const browser = createAgent(server);
    const request = webRequest({
      connection: 'users',
      response_type: 'id_token',
      nonce: 'n',
      prompt: 'login',
    });
    const { id_token } = responseOf(await logIn(browser, server, request, { ...USER, email: goes.email }));
    await mark(goes);
    const path = `/users/${encodeURIComponent(await idOf(stays))}/identities`;
    const answer = await callApi(server, 'POST', path, { link_with: id_token });
    expect(answer.status).to.be.oneOf([400, 403]);
    expect(await idOf(goes)).to.not.equal('');
  });

  it('is made up for by a passkey that its user has here, which is both factors; the user does not see the mark', async () => {
    const { email } = someone();
    const key = softwareKey();
    const agent = createAgent(server);
    const use = async (path: string, json: object, respond: (options: never) => object) => {
      const keys = { client_id: 'keys', realm: 'codes' };
      const begun = (await agent.request(path, { json: { ...keys, ...json } })).json();
      const answer = await token(agent, {
        ...{ grant_type: PASSKEY_GRANT, client_id: 'keys', auth_session: begun.auth_session },
        ...{ audience: `${server.issuer}me/`, scope: SCOPES.join(' ') },
        authn_response: JSON.stringify(respond(begun.authn_params_public_key as never)),
      });
      expect(answer.status, answer.text).to.equal(200);
      return bearer(answer.json().access_token);
    };
    await use('/passkey/register', { user_profile: { email } }, (options) => key.create(options, ORIGIN));
    const person = { email, phone: '', sub: '' };
    await mark(person);
    const asUser = await use('/passkey/challenge', {}, (options) => key.get(options, ORIGIN));
    const path = '/me/v1/authentication-methods';
    const listed = (await agent.request(path, { ...asUser, method: 'GET' })).json();
    expect(listed.authentication_methods.map(({ type }: { type: string }) => type)).to.deep.equal([
      'passkey',
    ]);
    const ofMark = `${path}/${encodeURIComponent(leftBehindId(await idOf(person)))}`;
    expect((await agent.request(ofMark, { ...asUser, method: 'DELETE' })).status).to.equal(404);
  });
});
