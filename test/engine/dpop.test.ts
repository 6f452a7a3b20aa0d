// DPoP (RFC 9449): access and refresh tokens that are bound to a key.
import { createSecretKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { mfaAudience } from '../../src/features/factors/bearer.ts';
import { type Answer, createAgent } from '../support/agent.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import {
  API,
  logIn,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const BOUND_API = 'bound-api';
const BOUND_FOR_PUBLIC = 'bound-for-public';

const bound = tenantWith({
  change: {
    web: (client) => ({ grant_types: [...client.grant_types, 'http://auth0.com/oauth/grant-type/mfa-otp'] }),
  },
  add: {
    clients: [
      {
        client_id: 'bound',
        name: 'Tokens are bound, always',
        app_type: 'regular_web',
        client_secret: 'bound-secret',
        callbacks: ['https://bound.example.test/callback'],
        grant_types: ['authorization_code', 'implicit', 'refresh_token', 'password', 'client_credentials'],
        require_proof_of_possession: true,
      },
    ],
    resourceServers: [
      {
        name: 'Bound API',
        identifier: BOUND_API,
        scopes: [{ value: 'read' }],
        allow_offline_access: true,
        proof_of_possession: { mechanism: 'dpop', required: true },
      },
      {
        name: 'Bound API for public applications',
        identifier: BOUND_FOR_PUBLIC,
        scopes: [{ value: 'read' }],
        proof_of_possession: { mechanism: 'dpop', required: true, required_for: 'public_clients' },
      },
    ],
    clientGrants: [
      { client_id: 'bound', audience: API, scope: ['read:things'] },
      { client_id: 'm2m', audience: 'https://tenant.example.test/api/v2/', scope: ['read:clients'] },
      { client_id: 'm2m', audience: BOUND_API, scope: ['read'] },
      { client_id: 'm2m', audience: BOUND_FOR_PUBLIC, scope: ['read'] },
    ],
  },
  enable: ['bound'],
  customDomains: [
    { domain: 'login.example.test', type: 'self_managed_certs', api_key: 'the-api-key-of-the-edge-of-login' },
  ],
});

const WEB = { client_id: 'web', client_secret: 'web-secret' };
const PASSWORD = { ...WEB, grant_type: 'password', username: USER.email, password: USER.password };
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';

describe('DPoP', () => {
  let server: TestServer;
  let prover: Prover;
  let other: Prover;
  before(async () => {
    server = await startServer({ tenant: bound });
    [prover, other] = await Promise.all([createProver(), createProver()]);
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const address = (path: string) => `${server.url}${path}`;
  const proofFor = (path = '/oauth/token', method = 'POST') => prover.proof(method, address(path));
  const tokens = async (fields: Record<string, string>, proof?: string): Promise<Answer> =>
    agent().request('/oauth/token', {
      form: fields,
      headers: proof === undefined ? {} : { dpop: proof },
    });
  const boundToken = async (fields: Record<string, string> = {}): Promise<string> => {
    const answer = await tokens({ ...PASSWORD, scope: 'openid profile', ...fields }, await proofFor());
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().access_token;
  };
  const userinfo = (accessToken: string, proof?: string, scheme = 'DPoP') =>
    agent().get('/userinfo', {
      authorization: `${scheme} ${accessToken}`,
      ...(proof === undefined ? {} : { dpop: proof }),
    });
  const userinfoProof = (accessToken: string, by = prover) =>
    by.proof('GET', address('/userinfo'), { accessToken });
  const spaCode = async (over: Record<string, string> = {}) => {
    const { verifier, challenge } = pkce();
    const request = spaRequest(challenge, { scope: 'openid offline_access', ...over });
    const { code = '' } = responseOf(await logIn(agent(), server, request));
    return {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code,
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
    };
  };
  const refused = (answer: Answer, status: number, error: string) => {
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.json().error).to.equal(error);
  };

  describe('access tokens (§5, §6)', () => {
    for (const [name, fields] of Object.entries({
      password: { ...PASSWORD, audience: API },
      'password-realm': { ...PASSWORD, grant_type: REALM, realm: 'users', audience: API },
      client_credentials: {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      },
    })) {
      it(`are bound to the key of the proof with the grant ${name}`, async () => {
        const answer = await tokens(fields, await proofFor());
        expect(answer.json().token_type).to.equal('DPoP');
        expect(payload(answer.json().access_token).cnf).to.deep.equal({ jkt: prover.thumbprint });
      });
    }

    it('are bound to the key of the proof for a code, and after a refresh', async () => {
      const first = (await tokens(await spaCode({ audience: API }), await proofFor())).json();
      expect(first.token_type).to.equal('DPoP');
      expect(payload(first.access_token).cnf).to.deep.equal({ jkt: prover.thumbprint });
      const refresh = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: first.refresh_token };
      const second = (await tokens(refresh, await proofFor())).json();
      expect(second.token_type).to.equal('DPoP');
      expect(payload(second.access_token).cnf).to.deep.equal({ jkt: prover.thumbprint });
    });

    it('are bearer tokens without a proof', async () => {
      const answer = await tokens({ ...PASSWORD, audience: API });
      expect(answer.json().token_type).to.equal('Bearer');
      expect(payload(answer.json().access_token)).not.to.have.property('cnf');
    });

    for (const alg of ['ES384', 'EdDSA', 'Ed25519', 'PS256']) {
      it(`are bound to a key for ${alg}`, async () => {
        const pair =
          alg === 'PS256'
            ? generateKeyPairSync('rsa', { modulusLength: 2048 })
            : alg === 'ES384'
              ? generateKeyPairSync('ec', { namedCurve: 'P-384' })
              : generateKeyPairSync('ed25519');
        const jwk = pair.publicKey.export({ format: 'jwk' });
        const proof = await prover.proof('POST', address('/oauth/token'), {
          header: { alg, jwk },
          signer: pair.privateKey,
        });
        expect((await tokens(PASSWORD, proof)).json().token_type).to.equal('DPoP');
      });
    }
  });

  describe('a proof is refused', () => {
    const cases: Record<string, () => Promise<string>> = {
      'for another method': () => proofFor('/oauth/token', 'GET'),
      'for another path': () => proofFor('/oauth/revoke'),
      'for another host': () => prover.proof('POST', 'https://elsewhere.example.test/oauth/token'),
      'that is six minutes old': () =>
        prover.proof('POST', address('/oauth/token'), { payload: { iat: Date.now() / 1000 - 360 } }),
      'dated two minutes ahead': () =>
        prover.proof('POST', address('/oauth/token'), { payload: { iat: Date.now() / 1000 + 120 } }),
      'dated six minutes ahead': () =>
        prover.proof('POST', address('/oauth/token'), { payload: { iat: Date.now() / 1000 + 360 } }),
      'without iat': () => prover.proof('POST', address('/oauth/token'), { payload: { iat: undefined } }),
      'without jti': () => prover.proof('POST', address('/oauth/token'), { payload: { jti: undefined } }),
      'without htm': () => prover.proof('POST', address('/oauth/token'), { payload: { htm: undefined } }),
      'without htu': () => prover.proof('POST', address('/oauth/token'), { payload: { htu: undefined } }),
      'with an htu that is no URL': () => prover.proof('POST', 'no address'),
      'with another typ': () => prover.proof('POST', address('/oauth/token'), { header: { typ: 'JWT' } }),
      'without jwk': () => prover.proof('POST', address('/oauth/token'), { header: { jwk: undefined } }),
      'with the private key in jwk': () =>
        prover.proof('POST', address('/oauth/token'), { header: { jwk: prover.privateJwk } }),
      'signed by another key than jwk': () =>
        prover.proof('POST', address('/oauth/token'), { header: { jwk: other.jwk } }),
      'signed with a shared secret': async () => {
        const secret = Buffer.alloc(32, 1);
        return prover.proof('POST', address('/oauth/token'), {
          header: { alg: 'HS256', jwk: { kty: 'oct', k: secret.toString('base64url') } },
          signer: createSecretKey(secret),
        });
      },
      'signed with RS256': async () => {
        const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
        return prover.proof('POST', address('/oauth/token'), {
          header: { alg: 'RS256', jwk: pair.publicKey.export({ format: 'jwk' }) },
          signer: pair.privateKey,
        });
      },
      'signed with alg none': async () => {
        const [, body = ''] = (await proofFor()).split('.');
        const header = { alg: 'none', typ: 'dpop+jwt', jwk: prover.jwk };
        return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${body}.`;
      },
      'whose signature was changed': async () => {
        const [head, body, signature = ''] = (await proofFor()).split('.');
        return [head, body, signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))].join('.');
      },
      'that comes twice': async () => `${await proofFor()}, ${await proofFor()}`,
      'that is no JWT': async () => 'proof',
      'with a nonce that is not ours': () => prover.proof('POST', address('/oauth/token'), { nonce: 'mine' }),
    };
    for (const [name, make] of Object.entries(cases)) {
      it(name, async () => {
        // A client whose clock is wrong can continue with a nonce (§8).
        const helps = ['with a nonce', 'that is six minutes', 'dated six', 'dated two'].some((one) =>
          name.startsWith(one),
        );
        const error = helps ? 'use_dpop_nonce' : 'invalid_dpop_proof';
        for (const fields of [
          PASSWORD,
          { grant_type: 'client_credentials', client_id: 'm2m', client_secret: 'm2m-secret', audience: API },
        ]) {
          refused(await tokens(fields, await make()), 400, error);
        }
      });
    }

    it('that was used before, with any grant', async () => {
      const machine = {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      };
      const [one, two] = [await proofFor(), await proofFor()];
      expect((await tokens(machine, one)).status).to.equal(200);
      refused(await tokens(machine, one), 400, 'invalid_dpop_proof');
      expect((await tokens(PASSWORD, two)).status).to.equal(200);
      refused(await tokens(PASSWORD, two), 400, 'invalid_dpop_proof');
    });

    it('that was used before with another grant', async () => {
      const client = { client_id: 'bound', client_secret: 'bound-secret', audience: API };
      const grants = [
        { ...client, grant_type: 'client_credentials' },
        { ...PASSWORD, ...client },
        { ...PASSWORD, ...client, grant_type: REALM, realm: 'users' },
      ];
      for (const first of grants) {
        const proof = await proofFor();
        expect((await tokens(first, proof)).status).to.equal(200);
        for (const other of grants) refused(await tokens(other, proof), 400, 'invalid_dpop_proof');
      }
    });

    it('that is dated ahead, unless it has a nonce (§8)', async () => {
      const ahead = (nonce?: string) =>
        prover.proof('POST', address('/oauth/token'), {
          payload: { iat: Date.now() / 1000 + 120 },
          ...(nonce !== undefined && { nonce }),
        });
      const nonce = String((await tokens(PASSWORD, await ahead())).headers['dpop-nonce']);
      expect((await tokens(PASSWORD, await ahead(nonce))).json().token_type).to.equal('DPoP');
      // A small difference of clocks is accepted.
      const little = await prover.proof('POST', address('/oauth/token'), {
        payload: { iat: Date.now() / 1000 + 30 },
      });
      expect((await tokens(PASSWORD, little)).json().token_type).to.equal('DPoP');
    });

    it('in all but one of fifty simultaneous requests', async () => {
      const proof = await proofFor();
      const machine = {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      };
      const statuses = (await Promise.all(Array.from({ length: 50 }, () => tokens(machine, proof)))).map(
        ({ status }) => status,
      );
      expect(statuses.filter((status) => status === 200)).to.have.length(1);
      expect(statuses.filter((status) => status === 400)).to.have.length(49);
    });

    it('before the password is tried, so that a wrong one is not counted', async () => {
      const proof = await proofFor('/elsewhere');
      refused(await tokens({ ...PASSWORD, password: 'wrong' }, proof), 400, 'invalid_dpop_proof');
    });

    it('that is too large for a header', async () => {
      const proof = await prover.proof('POST', address('/oauth/token'), {
        // More than the 128 KiB of a developer's machine.
        payload: { more: 'x'.repeat(100_000) },
      });
      expect((await tokens(PASSWORD, proof)).status).to.equal(431);
    });
  });

  it('accepts a proof for a custom domain, with each grant and at each of our APIs', async () => {
    const at = (path: string, method: string, over = {}) =>
      prover.proof(method, `https://login.example.test${path}`, over);
    const machine = {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    };
    expect((await tokens(machine, await at('/oauth/token', 'POST'))).json().token_type).to.equal('DPoP');
    const answer = await tokens({ ...PASSWORD, scope: 'openid' }, await at('/oauth/token', 'POST'));
    const accessToken = answer.json().access_token;
    expect((await userinfo(accessToken, await at('/userinfo', 'GET', { accessToken }))).status).to.equal(200);
    refused(await tokens(machine, await at('/oauth/revoke', 'POST')), 400, 'invalid_dpop_proof');
    const sub = await prover.proof('POST', 'https://sub.login.example.test/oauth/token');
    refused(await tokens(machine, sub), 400, 'invalid_dpop_proof');
    const plain = await prover.proof('POST', 'http://login.example.test/oauth/token');
    refused(await tokens(machine, plain), 400, 'invalid_dpop_proof');
  });

  describe('a pushed request', () => {
    const push = async (over: Record<string, string>, proof?: string) =>
      agent().request('/oauth/par', {
        form: { ...webRequest(), client_secret: 'web-secret', ...over },
        headers: proof === undefined ? {} : { dpop: proof },
      });
    const exchange = async (request_uri: string, proof?: string) => {
      const { code = '' } = responseOf(await logIn(agent(), server, { client_id: 'web', request_uri }));
      return tokens({ ...WEB, grant_type: 'authorization_code', code, redirect_uri: WEB_CALLBACK }, proof);
    };

    it('binds its code to the key of its proof, with or without dpop_jkt (§10.1)', async () => {
      const pushed = await push({}, await proofFor('/oauth/par'));
      expect(pushed.status, pushed.text).to.equal(201);
      const wrong = await other.proof('POST', address('/oauth/token'));
      refused(await exchange(pushed.json().request_uri, wrong), 400, 'invalid_dpop_proof');
      const named = await push({ dpop_jkt: prover.thumbprint });
      refused(await exchange(named.json().request_uri), 400, 'invalid_dpop_proof');
      const right = await push({ dpop_jkt: prover.thumbprint }, await proofFor('/oauth/par'));
      const answer = await exchange(right.json().request_uri, await proofFor());
      expect(answer.json().token_type).to.equal('DPoP');
    });

    it('is refused with a proof for another endpoint, a used one, or one of another key than dpop_jkt', async () => {
      refused(await push({}, await proofFor()), 400, 'invalid_dpop_proof');
      refused(
        await push({ dpop_jkt: other.thumbprint }, await proofFor('/oauth/par')),
        400,
        'invalid_request',
      );
      const proof = await proofFor('/oauth/par');
      expect((await push({}, proof)).status).to.equal(201);
      expect((await push({}, proof)).status).to.equal(400);
    });
  });

  describe('a code', () => {
    it('of a request with dpop_jkt can only be exchanged with that key (§10)', async () => {
      const { thumbprint } = prover;
      refused(await tokens(await spaCode({ dpop_jkt: thumbprint })), 400, 'invalid_dpop_proof');
      const wrong = await other.proof('POST', address('/oauth/token'));
      refused(await tokens(await spaCode({ dpop_jkt: thumbprint }), wrong), 400, 'invalid_dpop_proof');
      const right = await tokens(await spaCode({ dpop_jkt: thumbprint }), await proofFor());
      expect(right.json().token_type).to.equal('DPoP');
    });
  });

  describe('a refresh token', () => {
    const spaRefresh = async () => {
      const { refresh_token } = (await tokens(await spaCode(), await proofFor())).json();
      return { grant_type: 'refresh_token', client_id: 'spa', refresh_token };
    };

    it('of a public application needs its key, and stays valid after an attempt with another (§5)', async () => {
      const refresh = await spaRefresh();
      refused(await tokens(refresh), 400, 'invalid_grant');
      refused(
        await tokens(refresh, await other.proof('POST', address('/oauth/token'))),
        400,
        'invalid_grant',
      );
      const { refresh_token } = (await tokens(refresh, await proofFor())).json();
      expect(refresh_token).to.be.a('string');
      // The refresh token that replaces it is bound, too.
      refused(await tokens({ ...refresh, refresh_token }), 400, 'invalid_grant');
      expect((await tokens({ ...refresh, refresh_token }, await proofFor())).status).to.equal(200);
    });

    it('of a confidential application is bound to the client, and accepts another key', async () => {
      const first = (await tokens({ ...PASSWORD, scope: 'openid offline_access' }, await proofFor())).json();
      const refresh = { ...WEB, grant_type: 'refresh_token', refresh_token: first.refresh_token };
      const answer = await tokens(refresh, await other.proof('POST', address('/oauth/token')));
      expect(answer.json().token_type).to.equal('DPoP');
    });
  });

  describe('at /userinfo', () => {
    for (const [kind, fields] of Object.entries({ opaque: {}, JWT: { audience: API } })) {
      describe(`a bound token that is ${kind}`, () => {
        let accessToken: string;
        before(async () => {
          accessToken = await boundToken(fields);
        });
        const unauthorized = async (answer: Promise<Answer>, error: string) => {
          const { status, headers } = await answer;
          expect(status).to.equal(401);
          expect(headers['www-authenticate'])
            .to.match(/^DPoP /)
            .and.include(`error="${error}"`)
            .and.include('algs="ES256 ');
        };

        it('is accepted with a proof of its key', async () => {
          const answer = await userinfo(accessToken, await userinfoProof(accessToken));
          expect(answer.json()).to.have.property('sub');
        });

        it('is refused as a bearer token, with or without a proof (§7.2)', async () => {
          await unauthorized(userinfo(accessToken, undefined, 'Bearer'), 'invalid_token');
          await unauthorized(
            userinfo(accessToken, await userinfoProof(accessToken), 'Bearer'),
            'invalid_token',
          );
        });

        it('is refused in the query or the body', async () => {
          await unauthorized(agent().get(`/userinfo?access_token=${accessToken}`), 'invalid_token');
          await unauthorized(
            agent().request('/userinfo', { form: { access_token: accessToken } }),
            'invalid_token',
          );
        });

        it('is refused without a proof', async () => {
          await unauthorized(userinfo(accessToken), 'invalid_dpop_proof');
        });

        it('is refused with a proof of another key', async () => {
          await unauthorized(userinfo(accessToken, await userinfoProof(accessToken, other)), 'invalid_token');
        });

        it('is refused with a proof for another token, or for none', async () => {
          await unauthorized(
            userinfo(accessToken, await userinfoProof(await boundToken({ ...fields, scope: 'openid' }))),
            'invalid_dpop_proof',
          );
          await unauthorized(userinfo(accessToken, await proofFor('/userinfo', 'GET')), 'invalid_dpop_proof');
        });

        it('is refused with a proof for another URL or method', async () => {
          const elsewhere = await prover.proof('GET', address('/elsewhere'), { accessToken });
          await unauthorized(userinfo(accessToken, elsewhere), 'invalid_dpop_proof');
          const posted = await prover.proof('POST', address('/userinfo'), { accessToken });
          await unauthorized(userinfo(accessToken, posted), 'invalid_dpop_proof');
        });

        it('is refused with a proof that was used before', async () => {
          const proof = await userinfoProof(accessToken);
          expect((await userinfo(accessToken, proof)).status).to.equal(200);
          await unauthorized(userinfo(accessToken, proof), 'invalid_dpop_proof');
        });
      });
    }

    it('refuses a bearer token with the scheme DPoP', async () => {
      const accessToken = (await tokens({ ...PASSWORD, scope: 'openid' })).json().access_token;
      expect((await userinfo(accessToken, await userinfoProof(accessToken))).status).to.equal(401);
      expect((await userinfo(accessToken, undefined, 'Bearer')).status).to.equal(200);
    });

    it('offers both schemes to a request without a token', async () => {
      const { headers } = await agent().get('/userinfo');
      expect(headers['www-authenticate']).to.include('Bearer realm="Users"').and.include('DPoP algs="ES256');
    });
  });

  describe('at the Management API', () => {
    it('accepts a bound token only with a proof of its key', async () => {
      const accessToken = await boundToken({
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: `${server.issuer}api/v2/`,
        scope: 'read:clients',
      });
      const path = '/api/v2/clients';
      const ask = (scheme: string, proof?: string) =>
        agent().get(path, {
          authorization: `${scheme} ${accessToken}`,
          ...(proof === undefined ? {} : { dpop: proof }),
        });
      const proof = await prover.proof('GET', address(path), { accessToken });
      const first = await ask('DPoP', proof);
      expect(first.status, first.text).to.equal(200);
      const again = await ask('DPoP', proof);
      expect(again.status).to.equal(401);
      expect(again.headers['www-authenticate']).to.match(/^DPoP error="invalid_dpop_proof"/);
      expect(again.json()).to.include({ statusCode: 401, errorCode: 'invalid_dpop_proof' });
      expect((await ask('Bearer')).status).to.equal(401);
      expect((await ask('DPoP')).status).to.equal(401);
      const stolen = await other.proof('GET', address(path), { accessToken });
      expect((await ask('DPoP', stolen)).status).to.equal(401);
      const elsewhere = await prover.proof('GET', address('/api/v2/connections'), { accessToken });
      expect((await ask('DPoP', elsewhere)).status).to.equal(401);
    });
  });

  describe('at the MFA API', () => {
    it('accepts a bound token only with a proof of its key', async () => {
      const accessToken = await boundToken({
        audience: mfaAudience(server.issuer),
        scope: 'openid read:authenticators',
      });
      const path = '/mfa/authenticators';
      const ask = (scheme: string, proof?: string) =>
        agent().get(path, {
          authorization: `${scheme} ${accessToken}`,
          ...(proof === undefined ? {} : { dpop: proof }),
        });
      const proof = await prover.proof('GET', address(path), { accessToken });
      expect((await ask('DPoP', proof)).status).to.equal(200);
      expect((await ask('DPoP', proof)).json().error).to.equal('invalid_dpop_proof');
      expect((await ask('Bearer')).json().error).to.equal('invalid_token');
      const stolen = await other.proof('GET', address(path), { accessToken });
      expect((await ask('DPoP', stolen)).json().error).to.equal('invalid_token');
    });
  });

  it('accepts a bound token in the body of an MFA grant only with a proof of its key', async () => {
    const grant_type = 'http://auth0.com/oauth/grant-type/mfa-otp';
    const mfa_token = await boundToken({ audience: mfaAudience(server.issuer), scope: 'openid enroll' });
    const confirm = (proof?: string) => tokens({ ...WEB, grant_type, mfa_token, otp: '000000' }, proof);
    refused(await confirm(), 401, 'invalid_token');
    refused(await confirm(await other.proof('POST', address('/oauth/token'))), 401, 'invalid_token');
    // With its own key the request gets as far as the code.
    expect((await confirm(await proofFor())).json().error).not.to.equal('invalid_token');
  });

  describe('issues no bearer token', () => {
    const client = { client_id: 'bound', client_secret: 'bound-secret' };
    const machine = {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
    };

    it('to an application with require_proof_of_possession, with any grant', async () => {
      for (const fields of [
        { ...client, grant_type: 'client_credentials', audience: API },
        { ...PASSWORD, ...client },
        { ...PASSWORD, ...client, audience: API },
        { ...PASSWORD, ...client, grant_type: REALM, realm: 'users' },
      ]) {
        refused(await tokens(fields), 400, 'invalid_dpop_proof');
        expect((await tokens(fields, await proofFor())).json().token_type).to.equal('DPoP');
      }
    });

    it('to that application for a code, by a refresh, or from /authorize', async () => {
      const redirect_uri = 'https://bound.example.test/callback';
      const request = webRequest({ client_id: 'bound', redirect_uri, scope: 'openid offline_access' });
      const exchange = async (proof?: string) => {
        const { code = '' } = responseOf(await logIn(agent(), server, request));
        return tokens({ ...client, grant_type: 'authorization_code', code, redirect_uri }, proof);
      };
      refused(await exchange(), 400, 'invalid_dpop_proof');
      const { refresh_token } = (await exchange(await proofFor())).json();
      refused(
        await tokens({ ...client, grant_type: 'refresh_token', refresh_token }),
        400,
        'invalid_dpop_proof',
      );
      const direct = { ...request, response_type: 'token id_token', nonce: 'n' };
      const response = responseOf(await logIn(agent(), server, direct));
      expect(response).to.include({ error: 'invalid_request' }).and.not.have.property('access_token');
    });

    it('for an API that requires proof of possession', async () => {
      const fields = { ...machine, audience: BOUND_API };
      refused(await tokens(fields), 400, 'invalid_dpop_proof');
      expect((await tokens(fields, await proofFor())).json().token_type).to.equal('DPoP');
      refused(await tokens({ ...PASSWORD, audience: BOUND_API }), 400, 'invalid_dpop_proof');
      refused(await tokens(await spaCode({ audience: BOUND_API })), 400, 'invalid_dpop_proof');
    });

    it('to public applications for an API that requires it for these, unlike to others', async () => {
      expect((await tokens({ ...machine, audience: BOUND_FOR_PUBLIC })).json().token_type).to.equal('Bearer');
      refused(await tokens(await spaCode({ audience: BOUND_FOR_PUBLIC })), 400, 'invalid_dpop_proof');
    });
  });

  it('announces the algorithms of proofs in discovery, none of them symmetric', async () => {
    const { dpop_signing_alg_values_supported: algorithms } = (
      await agent().get('/.well-known/openid-configuration')
    ).json();
    expect(algorithms).to.deep.equal(['ES256', 'ES384', 'PS256', 'Ed25519', 'EdDSA']);
  });
});

it('a used DPoP proof is still refused after a restart', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-dpop-'));
  const machine = {
    grant_type: 'client_credentials',
    client_id: 'm2m',
    client_secret: 'm2m-secret',
    audience: API,
  };
  const prover = await createProver();
  try {
    const first = await startServer({ tenant: bound, dataDir });
    const proof = await prover.proof('POST', `${first.url}/oauth/token`);
    const ask = (server: TestServer) =>
      createAgent(server).request('/oauth/token', { form: machine, headers: { dpop: proof } });
    expect((await ask(first)).status).to.equal(200);
    await first.stop();
    const second = await startServer({ tenant: bound, dataDir, env: { PORT: new URL(first.url).port } });
    expect((await ask(second)).json()).to.include({ error: 'invalid_dpop_proof' });
    await second.stop();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

describe('DPoP nonces (RFC 9449 §8, §9)', () => {
  let server: TestServer;
  let prover: Prover;
  before(async () => {
    server = await startServer({
      tenant: { ...bound, tenant: { ...bound.tenant, flags: { require_dpop_nonce: true } } },
    });
    prover = await createProver();
  });
  after(() => server.stop());

  const ask = async (nonce?: string) =>
    createAgent(server).request('/oauth/token', {
      form: { ...PASSWORD, scope: 'openid' },
      headers: {
        dpop: await prover.proof('POST', `${server.url}/oauth/token`, nonce === undefined ? {} : { nonce }),
        origin: 'http://localhost:5173',
      },
    });

  it('are required and accepted by the token endpoint', async () => {
    const first = await ask();
    expect(first.status).to.equal(400);
    expect(first.json().error).to.equal('use_dpop_nonce');
    expect(first.headers['access-control-expose-headers'])
      .to.match(/dpop-nonce/i)
      .and.match(/www-authenticate/i);
    const nonce = String(first.headers['dpop-nonce']);
    expect((await ask(nonce)).json().token_type).to.equal('DPoP');
  });

  it('are required and accepted by /userinfo', async () => {
    const { access_token: accessToken } = (await ask(String((await ask()).headers['dpop-nonce']))).json();
    const profile = async (nonce?: string) =>
      createAgent(server).get('/userinfo', {
        authorization: `DPoP ${accessToken}`,
        dpop: await prover.proof('GET', `${server.url}/userinfo`, {
          accessToken,
          ...(nonce !== undefined && { nonce }),
        }),
      });
    const first = await profile();
    expect(first.status).to.equal(401);
    expect(first.headers['www-authenticate']).to.match(/^DPoP error="use_dpop_nonce"/);
    expect((await profile(String(first.headers['dpop-nonce']))).status).to.equal(200);
  });

  it('are refused when old, with a new one in the answer', async () => {
    const nonce = String((await ask()).headers['dpop-nonce']);
    server.tick(10 * 60_000);
    const answer = await ask(nonce);
    expect(answer.json().error).to.equal('use_dpop_nonce');
    expect((await ask(String(answer.headers['dpop-nonce']))).status).to.equal(200);
  });
});
