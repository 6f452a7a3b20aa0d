// Signed authentication requests (CIBA Core §7.1.1): the parameters as a JWT of the application.
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { exportSPKI, importJWK, SignJWT } from 'jose';
import { createAgent, readForm } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import { follow, submitLogin, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { CIBA_GRANT, cibaTenant, told } from './tenant.ts';

const [key, otherKey] = await Promise.all([clientKey('PS256'), clientKey('PS256')]);

const signing = (credential: object, more: object = {}) => ({
  async_approval_notification_channels: ['email'],
  signed_request_object: { credentials: [credential], ...more },
});

describe('a signed authentication request', () => {
  let server: TestServer;
  let hint: string;
  before(async () => {
    const mail = cibaTenant.clients.find(({ client_id }) => client_id === 'mail-bank');
    const bank = (id: string, more: object) => ({
      ...mail,
      client_id: id,
      name: `The ${id}`,
      client_secret: `${id}-secret`,
      ...more,
    });
    const banks = [
      bank('signing', signing(key.credential)),
      bank('strict', signing(key.credential, { required: true })),
      bank('stranger', signing(otherKey.credential)),
    ];
    server = await startServer({
      tenant: {
        ...cibaTenant,
        guardianPolicies: { policies: [] },
        // The limit is raised because the same user is asked many times.
        attackProtection: { rateLimits: { approvals: { capacity: 1000, perMinute: 1000 } } },
        clients: [...cibaTenant.clients, ...banks],
        databases: cibaTenant.databases.map((one) => ({
          ...one,
          enabled_clients: [...one.enabled_clients, 'signing', 'strict', 'stranger'],
        })),
      },
    });
    const sub = (await server.users.withEmail(USER.email))[0]?.id;
    hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
  });
  after(() => server?.stop());

  const now = () => Math.floor(Date.now() / 1000);
  const claims = (over: Record<string, unknown> = {}) => ({
    iss: 'signing',
    aud: server.issuer,
    iat: now(),
    nbf: now(),
    exp: now() + 120,
    jti: randomUUID(),
    scope: 'openid',
    login_hint: hint,
    binding_message: 'Payment 4711',
    ...over,
  });
  const sign = (payload: Record<string, unknown>, by = key, header: object = {}) =>
    new SignJWT(payload)
      .setProtectedHeader({ alg: by.alg, kid: by.credential.kid, ...header })
      .sign(by.privateKey);
  const ask = (form: Record<string, string>, client = 'signing') =>
    createAgent(server).request('/bc-authorize', {
      form: { client_id: client, client_secret: `${client}-secret`, ...form },
    });
  const refused = async (request: string, why: RegExp, client = 'signing') => {
    const answer = told(await ask({ request }, client));
    expect(answer.slice(0, 2), String(why)).to.deep.equal([400, 'invalid_request']);
    // The characters that an error_description may have (RFC 6749 §5.2).
    expect(answer[2])
      .to.match(why)
      .and.match(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/);
  };

  it('is accepted, and its binding message shown to the user', async () => {
    const answer = await ask({
      request: await sign(claims({ requested_expiry: 200 }), key, { typ: 'oauth-authz-req+jwt' }),
    });
    expect([answer.status, answer.json().expires_in]).to.deep.equal([200, 200]);
    const agent = createAgent(server);
    const login = await follow(agent, await agent.get('/approval?client_id=signing'), server.url);
    const page = await submitLogin(agent, server, login);
    expect(page.text).to.contain('Payment 4711');
    const { action, fields } = readForm(page, 'ticket');
    await agent.request(action, { form: { ...fields, decision: 'accept' } });
    const tokens = await token(createAgent(server), {
      grant_type: CIBA_GRANT,
      client_id: 'signing',
      client_secret: 'signing-secret',
      auth_req_id: answer.json().auth_req_id,
    });
    expect(tokens.json()).to.include.keys('access_token', 'id_token');
  });

  it('is refused without any of the required claims', async () => {
    for (const name of ['iss', 'aud', 'exp', 'iat', 'nbf', 'jti'])
      await refused(await sign(claims({ [name]: undefined })), new RegExp(name));
  });

  it('is refused with another issuer, another audience, or outside its lifetime', async () => {
    await refused(await sign(claims({ iss: 'stranger' })), /iss/);
    await refused(await sign(claims({ aud: 'https://elsewhere.test/' })), /aud/);
    await refused(await sign(claims({ exp: now() - 60, nbf: now() - 120 })), /exp/);
    await refused(await sign(claims({ nbf: now() + 600, exp: now() + 700 })), /nbf/);
    await refused(await sign(claims({ exp: now() + 4200 })), /too long/);
    await refused(await sign(claims({ nbf: now() - 4200, exp: now() + 60 })), /too long|too old/);
  });

  it('is accepted when dated a few seconds ahead (FAPI 2.0 Security Profile §5.3.2.1)', async () => {
    const ahead = { nbf: now() + 8, iat: now() + 8 };
    expect((await ask({ request: await sign(claims(ahead)) })).status).to.equal(200);
  });

  it('is refused when signed with another key, or another algorithm than the key’s', async () => {
    await refused(await sign(claims(), otherKey), /signature/);
    await refused(await sign(claims(), { ...key, alg: 'PS512' }).catch(() => 'a.b.c'), /invalid/);
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    await refused(`${encoded({ alg: 'none' })}.${encoded(claims())}.`, /alg/);
    // An HMAC with the public key as the secret.
    const pem = await exportSPKI(
      (await importJWK(key.credential.jwk, 'PS256', { extractable: true })) as never,
    );
    const confused = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', kid: key.credential.kid })
      .sign(new TextEncoder().encode(pem));
    await refused(confused, /alg/);
    await refused(await sign(claims({ iss: 'stranger' })), /signature/, 'stranger');
    await refused('no JWT', /JWT/);
  });

  it('is accepted once, also when sent simultaneously', async () => {
    const request = await sign(claims());
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask({ request })));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    await refused(request, /used before/);
  });

  it('is refused when it is a client assertion or a request object for /authorize', async () => {
    await refused(await sign(claims({ sub: 'signing' })), /sub/);
    await refused(
      await sign(claims({ response_type: 'code', client_id: 'signing' })),
      /authorization endpoint/,
    );
    await refused(await sign(claims({ request: 'a.b.c' })), /request/);
  });

  it('is refused with parameters beside it', async () => {
    const answer = told(await ask({ request: await sign(claims()), binding_message: 'Another one' }));
    expect(answer).to.deep.equal([
      400,
      'invalid_request',
      'binding_message must be in the request object, not beside it',
    ]);
    await refused(await sign(claims({ scope: ['openid', 'openid'] })), /scope/);
    await refused(await sign(claims({ id_token_hint: 'a.b.c' })), /id_token_hint/);
  });

  it('is required when the application is set so, and refused without registered keys', async () => {
    const plain = { scope: 'openid', login_hint: hint, binding_message: 'Payment 4711' };
    expect((await ask(plain)).status).to.equal(200);
    expect(told(await ask(plain, 'strict')).slice(0, 2)).to.deep.equal([400, 'invalid_request']);
    expect((await ask({ request: await sign(claims({ iss: 'strict' })) }, 'strict')).status).to.equal(200);
    await refused(await sign(claims({ iss: 'mail-bank' })), /signature/, 'mail-bank');
  });
});
