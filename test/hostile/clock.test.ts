// A clock that is set back: what was used stays used, and what has expired stays expired.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { steadyClock } from '../../src/runtime/clock.ts';
import { tenant as base, OTP_GRANT } from '../connections/passwordless/tenant.ts';
import { callsOf, codeOf, tenant as mfaTenant } from '../factors/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  logIn,
  PASSWORD_REQUEST,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  spaTokens,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Lets time pass so that the server notices: it reads its clock once a second, and at each request. */
async function passes(server: TestServer, ms: number): Promise<void> {
  server.tick(ms);
  await createAgent(server).get('/.well-known/jwks.json');
}

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });

const tenant = {
  ...base,
  clients: [
    ...base.clients,
    {
      client_id: 'key-client',
      name: 'Private key',
      app_type: 'non_interactive',
      client_authentication_methods: {
        private_key_jwt: {
          credentials: [{ alg: 'RS256', pem: keys.publicKey.export({ type: 'spki', format: 'pem' }) }],
        },
      },
    },
  ],
  clientGrants: [...base.clientGrants, { client_id: 'key-client', audience: API, scope: [] }],
};

describe('a clock that is set back', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startServer({ tenant });
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  const INVALID = 'invalid_grant';
  const refresh = (refresh_token: string) =>
    token(agent, { grant_type: 'refresh_token', client_id: 'spa', refresh_token });
  const byPassword = (over: Record<string, string | undefined> = {}) =>
    token(agent, {
      ...PASSWORD_REQUEST,
      scope: 'openid',
      ...over,
    });

  for (const back of [1, 5, 3600, 86_400 * 400]) {
    it(`by ${back} s revives no used refresh token, however often it is tried`, async () => {
      const first = (await spaTokens(agent, server, { scope: 'openid offline_access' })).refresh_token;
      const second = (await refresh(first)).json().refresh_token;
      for (let i = 0; i < 3; i++) {
        server.tick(-back * SECOND);
        expect((await refresh(first)).json()).to.include({ error: INVALID });
      }
      expect((await refresh(second)).json(), 'its family is revoked').to.include({ error: INVALID });
    });
  }

  it('does not extend the leeway of a rotated refresh token', async () => {
    const web = { client_id: 'leeway', client_secret: 'leeway-secret' };
    const { refresh_token } = (await byPassword({ ...web, scope: 'openid offline_access' })).json();
    const again = () => token(agent, { grant_type: 'refresh_token', refresh_token, ...web });
    expect((await again()).status).to.equal(200);
    await passes(server, 20 * SECOND);
    expect((await again()).status, 'within the leeway').to.equal(200);
    await passes(server, 11 * SECOND);
    server.tick(-MINUTE);
    expect((await again()).json()).to.include({ error: INVALID });
  });

  it('between two runs revives no used refresh token, with a leeway or without', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-clock-'));
    try {
      const before = await startServer({ tenant, dataDir });
      const used: [string, Record<string, string>][] = [];
      try {
        await passes(before, DAY);
        const ask = createAgent(before);
        for (const client of [
          { client_id: 'spa' },
          { client_id: 'leeway', client_secret: 'leeway-secret' },
        ] as Record<string, string>[]) {
          const first =
            client.client_id === 'spa'
              ? await spaTokens(ask, before, { scope: 'openid offline_access' })
              : (
                  await token(ask, {
                    ...client,
                    grant_type: 'password',
                    username: USER.email,
                    password: USER.password,
                    scope: 'openid offline_access',
                  })
                ).json();
          const done = await token(ask, {
            ...client,
            grant_type: 'refresh_token',
            refresh_token: first.refresh_token,
          });
          expect(done.status).to.equal(200);
          used.push([first.refresh_token, client]);
        }
      } finally {
        await before.stop();
      }
      // The second run has the machine's own time: a day earlier.
      const after = await startServer({ tenant, dataDir });
      try {
        for (const [refresh_token, client] of used) {
          const answer = await token(createAgent(after), {
            ...client,
            grant_type: 'refresh_token',
            refresh_token,
          });
          expect(answer.json(), client.client_id).to.include({ error: INVALID });
        }
      } finally {
        await after.stop();
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it('revives no authorization code that was used or has expired', async () => {
    const { verifier, challenge } = pkce();
    const browser = createAgent(server);
    const exchange = (code: string | undefined) =>
      token(agent, {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      });
    const used = responseOf(await logIn(browser, server, spaRequest(challenge))).code;
    expect((await exchange(used)).status).to.equal(200);
    const late = responseOf(await authorize(browser, spaRequest(challenge))).code;
    await passes(server, 61 * SECOND);
    server.tick(-2 * MINUTE);
    for (const code of [used, late]) expect((await exchange(code)).json()).to.include({ error: INVALID });
  });

  it('lets no client assertion be used twice', async () => {
    const client_assertion = await new SignJWT({
      iss: 'key-client',
      sub: 'key-client',
      aud: server.issuer,
      jti: randomUUID(),
      exp: Math.floor(Date.now() / 1000) + 60,
    })
      .setProtectedHeader({ alg: 'RS256' })
      .sign(keys.privateKey);
    const ask = () =>
      token(agent, {
        grant_type: 'client_credentials',
        audience: API,
        client_id: 'key-client',
        client_assertion,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      });
    expect((await ask()).status).to.equal(200);
    // Past the assertion's end and back: the record of its use must not be gone.
    await passes(server, 10 * MINUTE);
    expect((await ask()).status).to.equal(401);
    server.tick(-10 * MINUTE);
    expect((await ask()).status).to.equal(401);
  });

  it('revives no code of a message that was used or has expired', async () => {
    const start = async (email: string) => {
      const json = {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email,
        send: 'code',
      };
      expect((await agent.request('/passwordless/start', { json })).status).to.equal(200);
      return (await nextMessageTo(server, email)).code;
    };
    const exchange = (username: string, otp: string | undefined) =>
      token(agent, {
        grant_type: OTP_GRANT,
        client_id: 'web',
        client_secret: 'web-secret',
        realm: 'email',
        username,
        otp,
      });
    const used = await start('used@example.test');
    expect((await exchange('used@example.test', used)).status).to.equal(200);
    const late = await start('late@example.test');
    await passes(server, HOUR);
    server.tick(-2 * HOUR);
    expect((await exchange('used@example.test', used)).json()).to.include({ error: INVALID });
    expect((await exchange('late@example.test', late)).json()).to.include({ error: INVALID });
  });

  it('revives no expired session, and no login that waited too long', async () => {
    const waiting = createAgent(server);
    const page = await authorize(waiting, webRequest());
    await logIn(agent, server, webRequest());
    await passes(server, 73 * HOUR);
    server.tick(-73 * HOUR);
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    expect((await waiting.get(page.location)).status).to.equal(400);
  });

  it('makes no old login recent: max_age asks again', async () => {
    await logIn(agent, server, webRequest());
    const silent = () => authorize(agent, webRequest({ prompt: 'none', max_age: '300' }));
    expect(responseOf(await silent())).to.have.property('code');
    server.tick(-HOUR);
    // For the server the login was an hour ago.
    expect(responseOf(await silent())).to.include({ error: 'login_required' });
  });

  it('resets no counters of failed attempts and unlocks nothing', async () => {
    const { access_token } = (await byPassword()).json();
    const profile = () => agent.get('/userinfo', { authorization: `Bearer ${access_token}` });
    for (let i = 0; i < 10; i++) await profile();
    expect((await profile()).status).to.equal(429);
    for (let i = 0; i < 100; i++) await byPassword({ password: 'wrong' });
    expect((await byPassword()).status).to.equal(429);
    for (const back of [5 * SECOND, HOUR, 40 * DAY]) {
      server.tick(-back);
      expect((await profile()).status).to.equal(429);
      expect((await byPassword()).status).to.equal(429);
    }
  });
});

describe('a clock that is set back, at the second factor', () => {
  let server: TestServer;
  const WHO = 'mfa-0@example.test';
  let calls: ReturnType<typeof callsOf>;
  beforeEach(async () => {
    server = await startServer({ tenant: mfaTenant });
    calls = callsOf(server);
  });
  afterEach(() => server.stop());

  it('revives no used one-time password, nor an earlier one', async () => {
    const { secret } = await calls.enrollOtp(WHO);
    const ask = async (at: number) =>
      calls.verify('otp', { mfa_token: await calls.mfaToken(WHO), otp: codeOf(secret, at) });
    await passes(server, 2 * MINUTE);
    const usedAt = Date.now();
    expect((await ask(usedAt)).status).to.equal(200);
    for (const back of [30 * SECOND, MINUTE]) {
      server.tick(-back);
      for (const at of [usedAt, Date.now()]) expect((await ask(at)).status).to.equal(403);
    }
  });

  it('applies to values that others date: valid one-time passwords and tokens are accepted', async () => {
    await passes(server, DAY);
    await calls.mfaToken(WHO);
    server.tick(-DAY);
    const { secret } = await calls.enrollOtp(WHO);
    server.tick(31 * SECOND);
    const mfa_token = await calls.mfaToken(WHO, { audience: API });
    const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
    expect(answer.status, answer.text).to.equal(200);
    const authorization = `Bearer ${answer.json().access_token}`;
    expect((await calls.agent.get('/userinfo', { authorization })).status).to.equal(200);
  });

  it('revives no expired MFA token', async () => {
    const { secret } = await calls.enrollOtp(WHO);
    const mfa_token = await calls.mfaToken(WHO);
    await passes(server, HOUR);
    server.tick(-HOUR + 31 * SECOND);
    expect((await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).json()).to.include({
      error: 'expired_token',
    });
  });
});

describe('the steady clock', () => {
  /** A wall clock and a monotonic clock that the test moves. */
  const clocks = () => {
    const at = { wall: 1_000_000, elapsed: 0 };
    const now = steadyClock(
      () => at.wall,
      () => at.elapsed,
    );
    expect(now()).to.equal(at.wall);
    const pass = (ms: number) => {
      at.wall += ms;
      at.elapsed += ms;
      return now();
    };
    return { at, now, pass };
  };

  it('equals the wall clock while that goes forward, in steps, too', () => {
    const { at, now, pass } = clocks();
    expect(pass(500)).to.equal(1_000_500);
    at.wall += 3_600_000;
    expect(now()).to.equal(4_600_500);
  });

  it('continues at the same pace when the wall clock is set back', () => {
    const { at, now, pass } = clocks();
    at.wall -= 5_000;
    expect(now()).to.equal(1_000_000);
    expect(pass(100)).to.equal(1_000_100);
    expect(pass(10_000)).to.equal(1_010_100);
  });

  it('follows the wall clock again once that is ahead', () => {
    const { at, now } = clocks();
    at.wall -= 5_000;
    expect(now()).to.equal(1_000_000);
    at.wall += 6_000;
    expect(now()).to.equal(1_001_000);
  });
});
