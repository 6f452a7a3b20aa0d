// `compliance_level`: breaks each rule of src/records/clients/compliance.ts at each level.
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { decodeProtectedHeader, SignJWT } from 'jose';
import { CLIENT_RULES, type Rule } from '../../src/records/clients/client-compliance.ts';
import {
  BACKCHANNEL_RULES,
  clauseOf,
  REQUEST_RULES,
  TOKEN_RULES,
} from '../../src/records/clients/compliance.ts';
import { PROFILES, type Profile } from '../../src/records/clients/compliance-levels.ts';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { clientCertificate } from '../support/client-certificate.ts';
import { clientKey } from '../support/client-key.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import { authorize, follow, payload, pkce, responseOf, submitLogin, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const CIBA_GRANT = 'urn:openid:params:grant-type:ciba';
const CALLBACK = 'https://bank.example.test/callback';
const SIGNED_API = 'https://accounts.example.test/';
const RS256_API = 'https://old.example.test/';

const [key, weakKey, certificate] = await Promise.all([
  clientKey('PS256'),
  clientKey('RS256'),
  clientCertificate(),
]);

const EDGE_KEY = 'the-api-key-of-the-edge-of-the-bank';
/** The headers of a reverse proxy for a client that showed the certificate. */
const SHOWN = {
  'cname-api-key': EDGE_KEY,
  'client-certificate': encodeURIComponent(certificate.cert),
  'client-certificate-ca-verified': 'FAILED:self-signed certificate',
};

type Level = keyof typeof PROFILES;
const LEVELS = Object.entries(PROFILES) as [Level, Profile][];

/** An application that keeps all rules of its level. */
function fitting(level: Level, { authentication, standards }: Profile) {
  return {
    client_id: level,
    name: level,
    app_type: 'regular_web',
    callbacks: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    compliance_level: level,
    id_token_signed_response_alg: 'PS256',
    client_authentication_methods:
      authentication === 'mtls'
        ? { self_signed_tls_client_auth: { credentials: [{ pem: certificate.cert }] } }
        : { private_key_jwt: { credentials: [key.credential] } },
    ...((standards as readonly string[]).some((one) => one !== 'fapi2') && {
      signed_request_object: { credentials: [key.credential] },
      authorization_signed_response_alg: 'PS256',
    }),
  };
}

const rulesOf = <S>(rules: readonly Rule<S>[], profile: Profile) =>
  rules.flatMap((rule) => {
    const clause = clauseOf(rule, profile);
    return clause === undefined ? [] : [{ name: rule.name, clause }];
  });

describe('the tenant file and an application with a compliance_level', () => {
  const faultsOf = (client: object): string => {
    try {
      readTenant({ clients: [client] });
    } catch (thrown) {
      if (thrown instanceof TenantFault) return thrown.faults.join('\n');
      throw thrown;
    }
    return '';
  };

  /** Settings that break each rule. */
  const BREAKING: Record<string, object[]> = {
    authentication: [
      { client_authentication_methods: undefined, client_secret: 'a-secret-of-some-length' },
      { client_authentication_methods: undefined, token_endpoint_auth_method: 'none' },
      { client_authentication_methods: undefined, app_type: 'spa', client_secret: undefined },
    ],
    grants: [
      'password',
      'http://auth0.com/oauth/grant-type/password-realm',
      'http://auth0.com/oauth/grant-type/passwordless/otp',
      'http://auth0.com/oauth/grant-type/mfa-otp',
      'urn:ietf:params:oauth:grant-type:device_code',
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ]
      .map((grant): object => ({ grant_types: ['authorization_code', grant] }))
      .concat({ native_social_login: { apple: { enabled: true } } }),
    protocols: [{ addons: { samlp: {} } }],
    callbacks: [
      { callbacks: [CALLBACK, 'http://bank.example.test/callback'] },
      { callbacks: ['app://callback'] },
    ],
    'ID tokens': [{ id_token_signed_response_alg: undefined }, { id_token_signed_response_alg: 'RS256' }],
    responses: [
      { authorization_signed_response_alg: undefined },
      { authorization_signed_response_alg: 'RS256' },
    ],
    keys: [
      { client_authentication_methods: { private_key_jwt: { credentials: [weakKey.credential] } } },
      { signed_request_object: { credentials: [key.credential, weakKey.credential] } },
    ],
    'request object keys': [
      { signed_request_object: undefined },
      { signed_request_object: { credentials: [] } },
    ],
    'refresh tokens': [{ refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring' } }],
    'pushed requests': [{ par_request_expiry: 600 }],
  };

  for (const [level, profile] of LEVELS) {
    describe(level, () => {
      for (const { name, clause } of rulesOf(CLIENT_RULES, profile)) {
        it(`is refused when the application breaks ${name}: ${clause}`, () => {
          const breaking = BREAKING[name] ?? [];
          expect(breaking).not.to.deep.equal([]);
          for (const over of breaking)
            expect(faultsOf({ ...fitting(level, profile), ...over }), JSON.stringify(over)).to.include(
              `(${clause})`,
            );
        });
      }
      it('is accepted when the application keeps all rules', () => {
        expect(faultsOf(fitting(level, profile))).to.equal('');
      });
    });
  }

  it('is refused for an unknown level', () => {
    expect(faultsOf({ client_id: 'x', name: 'X', compliance_level: 'fapi3' })).to.include('compliance_level');
  });

  it('is refused for the implicit grant, except for the hybrid responses of FAPI 1.0', () => {
    const implicit = { grant_types: ['authorization_code', 'implicit'] };
    const sp = 'fapi2_sp_pkj_dpop';
    expect(faultsOf({ ...fitting(sp, PROFILES[sp]), ...implicit })).to.include('section 5.3.2.1 (2)');
    const adv = 'fapi1_adv_pkj_par';
    expect(faultsOf({ ...fitting(adv, PROFILES[adv]), ...implicit })).to.equal('');
  });

  it('is refused for CIBA, except at levels with FAPI-CIBA', () => {
    for (const [level, profile] of LEVELS) {
      const faults = faultsOf({ ...fitting(level, profile), grant_types: [CIBA_GRANT] });
      if (level.startsWith('fapi1')) expect(faults, level).to.equal('');
      else expect(faults, level).to.include('section 5.3.2.1 (2)');
    }
  });
});

describe('an application with a compliance_level', () => {
  let server: TestServer;
  let prover: Prover;
  let agent: Agent;
  before(async () => {
    prover = await createProver();
    const clients = LEVELS.map(([level, profile]) => ({
      ...fitting(level, profile),
      ...((profile.standards as readonly string[]).includes('fapi1') && {
        grant_types: ['authorization_code', 'implicit', 'refresh_token', 'client_credentials', CIBA_GRANT],
        async_approval_notification_channels: ['email'],
      }),
    }));
    server = await startServer({
      tenant: tenantWith({
        add: { clients: [...clients] },
        enable: [...clients.map(({ client_id }) => client_id)],
        resourceServers: [
          {
            name: 'Signed',
            identifier: SIGNED_API,
            signing_alg: 'PS256',
            scopes: [],
            allow_offline_access: true,
          },
          { name: 'RS256', identifier: RS256_API, scopes: [] },
        ],
        customDomains: [{ domain: 'login.bank.example.test', type: 'self_managed_certs', api_key: EDGE_KEY }],
        clientGrants: clients.flatMap(({ client_id }) => [
          ...[SIGNED_API, RS256_API].map((audience) => ({ client_id, audience, scope: [] })),
          { client_id, audience: 'https://tenant.example.test/api/v2/', scope: ['read:clients'] },
        ]),
      }),
    });
    agent = createAgent(server);
  });
  after(() => server.stop());

  const signed = (level: Level, claims: Record<string, unknown>) =>
    new SignJWT({ iss: level, aud: server.issuer, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.credential.kid })
      .setIssuedAt()
      .setNotBefore('0s')
      .setExpirationTime('2m')
      .sign(key.privateKey);
  const credentials = async (level: Level): Promise<Record<string, string>> =>
    PROFILES[level].authentication === 'mtls'
      ? {}
      : {
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: await signed(level, { sub: level, jti: randomUUID() }),
        };
  const { verifier, challenge } = pkce();

  /** Request parameters that keep all rules. */
  const requestOf = (level: Level, { standards }: Profile): Record<string, string> => ({
    client_id: level,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid offline_access',
    state: 'the-state',
    nonce: 'the-nonce',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...((standards as readonly string[]).some((one) => one !== 'fapi2') && { response_mode: 'jwt' }),
  });
  const without = (request: Record<string, string>, ...names: string[]) =>
    Object.fromEntries(Object.entries(request).filter(([name]) => !names.includes(name)));
  const isSigned = ({ standards }: Profile) =>
    (standards as readonly string[]).some((one) => one !== 'fapi2');
  const push = async (
    level: Level,
    profile: Profile,
    request: Record<string, string>,
    asObject = isSigned(profile),
  ): Promise<Answer> => {
    const form = asObject ? { client_id: level, request: await signed(level, request) } : request;
    const headers = profile.authentication === 'mtls' ? SHOWN : {};
    return agent.request('/oauth/par', { form: { ...form, ...(await credentials(level)) }, headers });
  };
  /** A CIBA request that keeps all rules of a level. */
  const approvalOf = async (level: Level): Promise<Record<string, string>> => {
    const [user] = await server.users.withEmail(USER.email);
    const hint = { format: 'iss_sub', iss: server.issuer, sub: user?.id };
    return {
      scope: 'openid',
      binding_message: `Payment ${level}`,
      login_hint: JSON.stringify(hint),
      jti: randomUUID(),
    };
  };
  const ask = async (level: Level, form: Record<string, string>) => {
    const headers = PROFILES[level].authentication === 'mtls' ? SHOWN : {};
    const fields = { client_id: level, ...form, ...(await credentials(level)) };
    return agent.request('/bc-authorize', { form: fields, headers });
  };
  const refused = (answer: Answer, clause: string) => {
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.json().error).to.equal('invalid_request');
    expect(answer.json().error_description)
      .to.include(`(${clause})`)
      // The characters that an error_description may have (RFC 6749 §5.2).
      .and.match(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/);
  };
  const tokens = async (
    level: Level,
    form: Record<string, string>,
    { dpop, isShown = PROFILES[level].authentication === 'mtls' }: { dpop?: string; isShown?: boolean } = {},
  ) =>
    agent.request('/oauth/token', {
      form: { ...form, client_id: level, ...(await credentials(level)) },
      headers: { ...(dpop === undefined ? {} : { dpop }), ...(isShown ? SHOWN : {}) },
    });
  /** The proof that binds the tokens of a level. */
  const possession = async (level: Level) =>
    PROFILES[level].possession === 'dpop'
      ? { dpop: await prover.proof('POST', `${server.url}/oauth/token`) }
      : { isShown: true };
  const isBound = (level: Level, { text, ...answer }: Answer) => {
    const { access_token, token_type } = answer.json();
    expect(token_type, text).to.equal(PROFILES[level].possession === 'dpop' ? 'DPoP' : 'Bearer');
    if (PROFILES[level].possession === 'mtls' && access_token.includes('.'))
      expect(payload(access_token).cnf).to.deep.equal({ 'x5t#S256': certificate.thumbprint });
  };

  /** Pushed requests that break each rule, where one can. */
  const BREAKING: Record<
    string,
    (request: Record<string, string>, profile: Profile) => Record<string, string>[]
  > = {
    'response type': (request, { standards }) =>
      (standards as readonly string[]).includes('fapi1')
        ? [
            without(request, 'response_mode'),
            { ...request, response_mode: 'query' },
            { ...request, response_type: 'id_token token' },
            { ...request, response_type: 'code token' },
          ]
        : [
            { ...request, response_type: 'code id_token' },
            { ...request, response_type: 'id_token' },
            { ...request, response_type: 'token' },
          ],
    'signed response': (request) => [
      without(request, 'response_mode'),
      { ...request, response_mode: 'query' },
      { ...request, response_mode: 'form_post' },
    ],
    PKCE: (request) => [
      without(request, 'code_challenge', 'code_challenge_method'),
      { ...request, code_challenge: verifier, code_challenge_method: 'plain' },
    ],
    redirect_uri: (request) => [without(request, 'redirect_uri')],
    scope: (request) => [without(request, 'scope')],
    nonce: (request) => [without(request, 'nonce'), { ...without(request, 'state'), scope: 'profile' }],
  };

  for (const [level, profile] of LEVELS) {
    describe(level, () => {
      for (const { name, clause } of rulesOf(REQUEST_RULES, profile)) {
        it(`gets invalid_request for a request that breaks ${name}: ${clause}`, async () => {
          const request = requestOf(level, profile);
          if (name === 'signed') return refused(await push(level, profile, request, false), clause);
          if (name === 'pushed') {
            const object = await signed(level, request);
            for (const sent of [request, { client_id: level, redirect_uri: CALLBACK, request: object }]) {
              const answer = await follow(createAgent(server), await authorize(agent, sent), server.url);
              const response = responseOf(answer);
              const said = response.response === undefined ? response : payload(response.response);
              expect(said.error).to.equal('invalid_request');
              expect(said.error_description).to.include(`(${clause})`);
              expect(said).not.to.have.property('code');
            }
            return;
          }
          const breaking = BREAKING[name]?.(request, profile) ?? [];
          expect(breaking).not.to.deep.equal([]);
          for (const broken of breaking) refused(await push(level, profile, broken), clause);
        });
      }

      const asking = rulesOf(BACKCHANNEL_RULES, profile);
      for (const { name, clause } of asking) {
        it(`gets an error for a CIBA request that breaks ${name}: ${clause}`, async () => {
          const request = await approvalOf(level);
          if (name === 'signed') return refused(await ask(level, request), clause);
          const object = await signed(level, without(request, 'binding_message'));
          refused(await ask(level, { request: object }), clause);
        });
      }
      if (asking.length > 0) {
        it('gets bound tokens by CIBA, and the standard’s errors before the approval and after the end', async () => {
          const request = await approvalOf(level);
          const asked = await ask(level, { request: await signed(level, request) });
          expect(asked.status, asked.text).to.equal(200);
          const { auth_req_id } = asked.json();
          const poll = (isShown: boolean) =>
            tokens(level, { grant_type: CIBA_GRANT, auth_req_id }, { isShown });
          const told = async () => {
            const { status, ...answer } = await poll(true);
            return [status, answer.json().error];
          };
          expect(await told()).to.deep.equal([400, 'authorization_pending']);
          expect(await told()).to.deep.equal([400, 'slow_down']);
          if (profile.authentication !== 'mtls') {
            const bearer = await poll(false);
            expect([bearer.status, bearer.json().error], 'no certificate').to.deep.equal([
              400,
              'invalid_request',
            ]);
          }
          const user = createAgent(server);
          const login = await follow(user, await user.get(`/approval?client_id=${level}`), server.url);
          const { action, fields } = readForm(await submitLogin(user, server, login), 'ticket');
          await user.request(action, { form: { ...fields, decision: 'accept' } });
          server.tick(11_000);
          isBound(level, await poll(true));
          const over = await ask(level, { request: await signed(level, { ...request, jti: randomUUID() }) });
          server.tick(301_000);
          const pollOver = { grant_type: CIBA_GRANT, auth_req_id: over.json().auth_req_id };
          const late = await tokens(level, pollOver, { isShown: true });
          expect([late.status, late.json().error]).to.deep.equal([400, 'expired_token']);
        });
      }

      it('gets a response to a request that keeps all rules', async () => {
        const answer = await push(level, profile, requestOf(level, profile));
        expect(answer.status, answer.text).to.equal(201);
      });

      const [constrained, algorithm] = rulesOf(TOKEN_RULES, profile);
      const machine = { grant_type: 'client_credentials', audience: SIGNED_API };
      const isOnlyWay = profile.authentication === 'mtls' && profile.possession === 'mtls';
      const error = profile.possession === 'dpop' ? 'invalid_dpop_proof' : 'invalid_request';

      if (!isOnlyWay) {
        it(`gets no bearer token: ${constrained?.clause}`, async () => {
          const answer = await tokens(level, machine);
          expect(answer.json().error, answer.text).to.equal(error);
          expect(answer.json().error_description).to.include(`(${constrained?.clause})`);
        });
      }

      it(`gets no token that is bound by the other method: ${constrained?.clause}`, async () => {
        const dpop = await prover.proof('POST', `${server.url}/oauth/token`);
        const other = profile.possession === 'dpop' ? { isShown: true } : { dpop, isShown: true };
        expect((await tokens(level, machine, other)).json().error).to.equal(error);
      });

      it(`gets no token signed with RS256: ${algorithm?.clause}`, async () => {
        const answer = await tokens(level, { ...machine, audience: RS256_API }, await possession(level));
        expect(answer.json().error, answer.text).to.equal('invalid_request');
        expect(answer.json().error_description).to.include(`(${algorithm?.clause})`);
      });

      it('gets tokens for our own APIs that keep all rules', async () => {
        const answer = await tokens(
          level,
          { ...machine, audience: `${server.issuer}api/v2/`, scope: 'read:clients' },
          await possession(level),
        );
        isBound(level, answer);
        expect(decodeProtectedHeader(answer.json().access_token).alg).to.equal(key.alg);
      });

      it('gets tokens that keep all rules: by client_credentials, for a code, by a refresh', async () => {
        isBound(level, await tokens(level, machine, await possession(level)));
        const { request_uri } = (await push(level, profile, requestOf(level, profile))).json();
        const browser = createAgent(server);
        const asked = await authorize(browser, { client_id: level, request_uri });
        const page = await follow(browser, asked, server.url);
        const response = responseOf(await submitLogin(browser, server, page));
        const { code } = response.response === undefined ? response : payload(response.response);
        const exchange = {
          grant_type: 'authorization_code',
          code: String(code),
          code_verifier: verifier,
          redirect_uri: CALLBACK,
        };
        const first = await tokens(level, exchange, await possession(level));
        isBound(level, first);
        const refresh = { grant_type: 'refresh_token', refresh_token: first.json().refresh_token };
        if (!isOnlyWay) expect((await tokens(level, refresh)).json().error).to.equal(error);
        isBound(level, await tokens(level, refresh, await possession(level)));
      });

      it('gets nothing by any other grant', async () => {
        const user = { username: USER.email, password: USER.password };
        for (const form of [
          { grant_type: 'password', ...user },
          { grant_type: 'http://auth0.com/oauth/grant-type/password-realm', realm: 'users', ...user },
          {
            grant_type: 'http://auth0.com/oauth/grant-type/passwordless/otp',
            realm: 'email',
            username: USER.email,
            otp: '123456',
          },
          { grant_type: 'http://auth0.com/oauth/grant-type/mfa-otp', mfa_token: 'x', otp: '123456' },
        ]) {
          const answer = await tokens(level, form, await possession(level));
          expect(answer.json().error, answer.text).to.equal('unauthorized_client');
        }
      });
    });
  }

  it('gets c_hash and s_hash in the ID token of a hybrid response at a level of FAPI 1.0', async () => {
    const level = 'fapi1_adv_pkj_par';
    const request = {
      ...without(requestOf(level, PROFILES[level]), 'response_mode'),
      response_type: 'code id_token',
    };
    const { request_uri } = (await push(level, PROFILES[level], request)).json();
    const browser = createAgent(server);
    const page = await follow(
      browser,
      await authorize(browser, { client_id: level, request_uri }),
      server.url,
    );
    const { id_token = '' } = responseOf(await submitLogin(browser, server, page));
    expect(payload(id_token)).to.include.keys('c_hash', 's_hash', 'nonce');
  });

  it('gets its x-fapi-interaction-id back from /userinfo at a level of FAPI 1.0, or a new one', async () => {
    const level = 'fapi1_adv_mtls_par';
    const { request_uri } = (await push(level, PROFILES[level], requestOf(level, PROFILES[level]))).json();
    const browser = createAgent(server);
    const asked = await authorize(browser, { client_id: level, request_uri });
    const answered = await submitLogin(browser, server, await follow(browser, asked, server.url));
    const code = String(payload(responseOf(answered).response ?? '').code);
    const form = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK };
    const { access_token } = (await tokens(level, form)).json();
    const idFor = async (given: Record<string, string>) =>
      (await agent.get('/userinfo', { authorization: `Bearer ${access_token}`, ...SHOWN, ...given })).headers[
        'x-fapi-interaction-id'
      ];
    const id = randomUUID();
    expect(await idFor({ 'x-fapi-interaction-id': id })).to.equal(id);
    expect(await idFor({})).to.match(/^[0-9a-f-]{36}$/);
    expect(await idFor({ 'x-fapi-interaction-id': 'anything' })).to.match(/^[0-9a-f-]{36}$/);
  });

  it('gets nothing when its stored record breaks the rules', async () => {
    const level = 'fapi2_sp_pkj_dpop';
    const profile = PROFILES[level];
    const clients = server.store.collection('clients');
    const before = await clients.get(level);
    const machine = { grant_type: 'client_credentials', audience: SIGNED_API };
    for (const weaker of [
      { callbacks: ['http://bank.example.test/callback'] },
      { id_token_signed_response_alg: 'RS256' as const },
      { compliance_level: 'fapi9' as never },
    ]) {
      await clients.update(level, (client) => ({ ...client, ...weaker }));
      const pushed = await push(level, profile, requestOf(level, profile));
      expect(pushed.status, pushed.text).to.equal(400);
      expect((await tokens(level, machine, await possession(level))).status).to.be.oneOf([400, 403]);
      await clients.update(level, (client) => ({ ...client, ...before }));
    }
    expect((await tokens(level, machine, await possession(level))).status).to.equal(200);
  });
});
