// Clauses of the FAPI standards, each broken once where no other test breaks it.
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { waitForEarlyProofs } from '../../src/engine/binding/proof-of-possession.ts';
import { type Answer, createAgent } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import {
  API,
  authorize,
  logIn,
  payload,
  pkce,
  responseOf,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const CIBA = 'urn:openid:params:grant-type:ciba';
const BANK = { client_id: 'bank', client_secret: 'bank-secret' };
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

describe('the FAPI standards', () => {
  let server: TestServer;
  let prover: Prover;
  let key: Awaited<ReturnType<typeof clientKey>>;
  before(async () => {
    [prover, key] = await Promise.all([createProver(), clientKey('PS256')]);
    const clients = [
      {
        ...BANK,
        name: 'Bank',
        app_type: 'regular_web',
        callbacks: [WEB_CALLBACK],
        grant_types: ['authorization_code', 'refresh_token', 'password', DEVICE, CIBA, EXCHANGE],
        async_approval_notification_channels: ['email'],
        authorization_signed_response_alg: 'RS256',
      },
      {
        client_id: 'signing',
        name: 'Signing',
        app_type: 'regular_web',
        callbacks: [WEB_CALLBACK],
        grant_types: ['authorization_code'],
        client_authentication_methods: { private_key_jwt: { credentials: [key.credential] } },
        signed_request_object: { credentials: [key.credential] },
      },
    ];
    server = await startServer({
      tenant: tenantWith({ add: { clients: [...clients] }, enable: ['bank', 'signing'] }),
    });
  });
  after(() => server.stop());

  const post = (path: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
    createAgent(server).request(path, { form, headers });
  const refused = (answer: Answer, status: number, error: string) => {
    expect([answer.status, answer.json().error], answer.text).to.deep.equal([status, error]);
  };
  const proof = (over = {}) => prover.proof('POST', `${server.url}/oauth/token`, over);
  const LOGIN = { username: USER.email, password: USER.password, scope: 'openid' };
  const PASSWORD = { ...BANK, ...LOGIN, grant_type: 'password' };
  const withProof = async (over = {}) => post('/oauth/token', PASSWORD, { dpop: await proof(over) });
  const assertion = (claims = {}) =>
    new SignJWT({ iss: 'signing', sub: 'signing', aud: server.issuer, jti: randomUUID(), ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.credential.kid })
      .setIssuedAt()
      .setExpirationTime('1m')
      .sign(key.privateKey);

  describe('pushed requests (RFC 9126)', () => {
    it('are refused with any method but POST (§2.3)', async () => {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const answer = await createAgent(server).request('/oauth/par', { method });
        expect(answer.status, method).to.be.oneOf([404, 405]);
      }
    });

    it('are refused with two methods of client authentication (§2.1; RFC 6749 §2.3)', async () => {
      const basic = `Basic ${Buffer.from('bank:bank-secret').toString('base64')}`;
      const form = { ...webRequest({ client_id: 'bank' }), client_secret: 'bank-secret' };
      refused(await post('/oauth/par', form, { authorization: basic }), 400, 'invalid_request');
    });

    it('are refused when they name another client than the authenticated one (§2.1)', async () => {
      const client_assertion = await assertion();
      const form = {
        ...webRequest({ client_id: 'bank' }),
        client_assertion,
        client_assertion_type: ASSERTION,
      };
      expect((await post('/oauth/par', form)).json().error).to.be.oneOf([
        'invalid_client',
        'invalid_request',
      ]);
    });
  });

  describe('request objects (RFC 9101)', () => {
    it('are refused beside a request_uri (§5)', async () => {
      const request = await assertion({ sub: undefined, ...webRequest({ client_id: 'signing' }) });
      const request_uri = 'urn:ietf:params:oauth:request_uri:x';
      const answer = await authorize(createAgent(server), { client_id: 'signing', request, request_uri });
      expect(responseOf(answer).error).to.equal('invalid_request');
    });

    it('are refused as client assertions (§10.8)', async () => {
      const client_assertion = await assertion({ sub: undefined, ...webRequest({ client_id: 'signing' }) });
      const form = { grant_type: 'authorization_code', code: 'x', client_assertion };
      refused(
        await post('/oauth/token', { ...form, client_assertion_type: ASSERTION, redirect_uri: WEB_CALLBACK }),
        401,
        'invalid_client',
      );
    });
  });

  describe('DPoP proofs (RFC 9449)', () => {
    it('are accepted with any query and fragment in htu (§4.3)', async () => {
      const dpop = await prover.proof('POST', `${server.url}/oauth/token?a=b#c`);
      expect((await post('/oauth/token', PASSWORD, { dpop })).json().token_type).to.equal('DPoP');
    });

    it('are refused after their exp and before their nbf (RFC 7519 §4.1.4)', async () => {
      const now = Math.floor(Date.now() / 1000);
      refused(await withProof({ payload: { exp: now - 60 } }), 400, 'invalid_dpop_proof');
      refused(await withProof({ payload: { nbf: now + 120 } }), 400, 'invalid_dpop_proof');
      const good = await withProof({ payload: { exp: now + 60, nbf: now } });
      expect(good.json().token_type).to.equal('DPoP');
    });

    it('are accepted when dated a few seconds ahead (FAPI 2.0 Security Profile §5.3.2.1)', async () => {
      const soon = Math.floor(Date.now() / 1000) + 8;
      const answer = await withProof({ payload: { iat: soon } });
      expect(answer.json().token_type, answer.text).to.equal('DPoP');
      const token = answer.json().access_token;
      const notBefore = { nbf: Math.floor(Date.now() / 1000) + 2 };
      const atUserinfo = await prover.proof('GET', `${server.url}/userinfo`, {
        accessToken: token,
        payload: notBefore,
      });
      const [tokens, info] = await Promise.all([
        withProof({ payload: notBefore }),
        createAgent(server).request('/userinfo', {
          headers: { authorization: `DPoP ${token}`, dpop: atUserinfo },
        }),
      ]);
      expect(tokens.json().token_type, tokens.text).to.equal('DPoP');
      expect(info.status, info.text).to.equal(200);
    });

    it('wait for their nbf only up to a number of simultaneous requests', async () => {
      const soon = Math.floor(Date.now() / 1000) + 8;
      const ahead = await prover.proof('POST', server.url, { payload: { nbf: soon } });
      const order: string[] = [];
      const pass = waitForEarlyProofs({ wallClock: () => soon * 1000 - 300 }, 1);
      const first = pass({ get: () => ahead } as never, async () => void order.push('first'));
      await pass({ get: () => ahead } as never, async () => void order.push('beyond'));
      await first;
      expect(order).to.deep.equal(['beyond', 'first']);
    });

    it('are accepted with the scheme DPoP in any case (§7.1; RFC 9110 §11.1)', async () => {
      const { access_token } = (await withProof()).json();
      for (const scheme of ['dpop', 'DPOP']) {
        const dpop = await prover.proof('GET', `${server.url}/userinfo`, { accessToken: access_token });
        const answer = await createAgent(server).get('/userinfo', {
          authorization: `${scheme} ${access_token}`,
          dpop,
        });
        expect(answer.status, answer.text).to.equal(200);
      }
    });
  });

  describe('device codes (RFC 8628)', () => {
    it('are issued only to an authenticated client (§3.1)', async () => {
      refused(
        await post('/oauth/device/code', { client_id: 'bank', client_secret: 'wrong' }),
        401,
        'invalid_client',
      );
      refused(await post('/oauth/device/code', { client_id: 'bank' }), 401, 'invalid_client');
    });

    it('are required in a token request, and refused as invalid_grant when unknown (§3.4)', async () => {
      const form = { ...BANK, grant_type: DEVICE };
      refused(await post('/oauth/token', form), 400, 'invalid_request');
      refused(await post('/oauth/token', { ...form, device_code: 'x' }), 403, 'invalid_grant');
    });
  });

  describe('backchannel requests (CIBA Core)', () => {
    const hint = async () => {
      const sub = (await server.users.withEmail(USER.email))[0]?.id ?? '';
      return JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
    };
    const ask = (fields: Record<string, string>) =>
      post('/bc-authorize', { ...BANK, scope: 'openid', binding_message: 'Pay 1', ...fields });

    it('are refused without exactly one hint (§7.1)', async () => {
      refused(await ask({}), 400, 'invalid_request');
      for (const other of ['id_token_hint', 'login_hint_token'])
        refused(await ask({ login_hint: await hint(), [other]: 'x' }), 400, 'invalid_request');
    });

    it('are refused unless an authenticated client posts a form (§7.1)', async () => {
      const login_hint = await hint();
      refused(await ask({ login_hint, client_secret: 'wrong' }), 401, 'invalid_client');
      const { status } = await createAgent(server).get(
        `/bc-authorize?${new URLSearchParams({ ...BANK, scope: 'openid', login_hint })}`,
      );
      expect(status).to.be.oneOf([404, 405]);
    });

    it('are named by auth_req_id in a token request, and refused as invalid_grant when unknown (§11)', async () => {
      refused(await post('/oauth/token', { ...BANK, grant_type: CIBA }), 400, 'invalid_request');
      refused(
        await post('/oauth/token', { ...BANK, grant_type: CIBA, auth_req_id: 'x' }),
        400,
        'invalid_grant',
      );
    });
  });

  it('refuse introspection by GET, which would put a token into a URL (RFC 7662 §2.1)', async () => {
    const { status } = await createAgent(server).get('/oauth/introspect?token=x&client_id=bank');
    expect(status).to.be.oneOf([404, 405]);
  });

  describe('token exchange (RFC 8693)', () => {
    const own = async () =>
      (await post('/oauth/token', { ...PASSWORD, audience: API, scope: 'read:things' })).json();
    const exchange = (fields: Record<string, string>) =>
      post('/oauth/token', { ...BANK, grant_type: EXCHANGE, ...fields });

    it('is refused without a token and its type (§2.1)', async () => {
      const { access_token: subject_token } = await own();
      refused(await exchange({ subject_token }), 400, 'invalid_request');
      refused(await exchange({ subject_token_type: ACCESS_TOKEN }), 400, 'invalid_request');
    });

    it('is refused with an actor token without its type, and the reverse (§2.1)', async () => {
      const { access_token: subject_token } = await own();
      const subject = { subject_token, subject_token_type: ACCESS_TOKEN };
      refused(await exchange({ ...subject, actor_token: subject_token }), 400, 'invalid_request');
      refused(await exchange({ ...subject, actor_token_type: ACCESS_TOKEN }), 400, 'invalid_request');
    });

    it('returns the type of the issued token, and forbids caching (§2.2.1)', async () => {
      const { access_token: subject_token } = await own();
      const answer = await exchange({ subject_token, subject_token_type: ACCESS_TOKEN });
      expect(answer.json(), answer.text).to.include({
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
      });
      expect(answer.headers['cache-control']).to.include('no-store');
    });
  });

  it('make a JWT response with issuer, audience and a lifetime of at most ten minutes (JARM §2.1)', async () => {
    const request = webRequest({ client_id: 'bank', response_mode: 'jwt' });
    const { response = '' } = responseOf(await logIn(createAgent(server), server, request));
    const claims = payload(response);
    expect(claims).to.include({ iss: server.issuer, aud: 'bank' });
    expect(claims.exp - Date.now() / 1000).to.be.within(0, 600);
  });

  it('refuse a code with a challenge without its S256 verifier (RFC 7636 §4.6)', async () => {
    const { challenge, verifier } = pkce();
    const code_challenge = challenge;
    const asked = webRequest({ client_id: 'bank', code_challenge, code_challenge_method: 'plain' });
    const plain = await authorize(createAgent(server), asked);
    expect(responseOf(plain).error).to.equal('invalid_request');
    const request = { ...asked, code_challenge_method: 'S256' };
    const { code = '' } = responseOf(await logIn(createAgent(server), server, request));
    const exchange = { ...BANK, grant_type: 'authorization_code', code, redirect_uri: WEB_CALLBACK };
    refused(await post('/oauth/token', exchange), 400, 'invalid_grant');
    refused(await post('/oauth/token', { ...exchange, code_verifier: `${verifier}x` }), 400, 'invalid_grant');
  });
});
