// Access tokens for the MFA API. Their permission is checked at each use against the present state: a token from before
// a factor was enrolled, changed or removed, or from before a new password, gives no access to the present factors.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Records } from '../../src/records/collections.ts';
import { callsOf, codeOf, tenant } from '../factors/tenant.ts';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  accessTokenOf,
  authorize,
  follow,
  logIn,
  payload,
  redeem,
  responseOf,
  USER,
  webRequest,
} from '../support/flows.ts';
import { resetPassword } from '../support/reset.ts';
import { seeded, turns } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SCOPE = 'openid enroll read:authenticators remove:authenticators';
const generous = { capacity: 10_000, perMinute: 10_000 };

/** Clients: `web` requires no second factor, `leeway` requires one. */
const lenient = {
  ...tenant,
  attackProtection: {
    ...tenant.attackProtection,
    rateLimits: {
      ...tenant.attackProtection.rateLimits,
      mfaAssociate: generous,
      mfaVerify: generous,
      token: generous,
    },
  },
  clients: tenant.clients.map((client) =>
    client.client_id === 'web' ? { ...client, client_metadata: { mfa_policy: 'never' } } : client,
  ),
};

/** The calls of a user at the MFA API. */
function apiOf(server: TestServer) {
  const calls = callsOf(server);
  const list = (bearer: string) =>
    calls.agent.get('/mfa/authenticators', { authorization: `Bearer ${bearer}` });
  const remove = (bearer: string, id: string) =>
    calls.agent.request(`/mfa/authenticators/${encodeURIComponent(id)}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${bearer}` },
    });
  const begin = (bearer: string) => calls.associate(bearer, { authenticator_types: ['otp'] });
  const manage = { audience: `${server.issuer}mfa/`, scope: SCOPE };
  /** With the password alone, while that is enough. */
  const early = async (user: string): Promise<string> => {
    const answer = await calls.login(user, manage);
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().access_token;
  };
  /** With a second factor. */
  const proved = async (user: string, secret: string): Promise<string> => {
    server.tick(31_000);
    const mfa_token = await calls.mfaToken(user, manage, 'leeway');
    const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) }, 'leeway');
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().access_token;
  };
  const records = async (user: string) => {
    const found = await server.users.findInConnection({ name: 'users' }, user);
    return server.store.collection('authenticators').findBy('user', found?.id ?? '');
  };
  const active = async (user: string) =>
    (await records(user)).filter((one) => one.active && one.kind !== 'recovery-code');
  const reset = (email: string, password: string) => resetPassword(server, email, password);
  return { ...calls, list, remove, begin, early, proved, records, active, reset, manage };
}

const isRefused = (answer: Answer) => {
  expect(answer.status, answer.text).to.equal(401);
  expect(answer.json().error).to.equal('access_denied');
};

describe('an access token for the MFA API', () => {
  let server: TestServer;
  let api: ReturnType<typeof apiOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant: lenient });
    api = apiOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  /** Asserts that a token is of no more use, and that the user's factors stay. */
  const isDead = async (bearer: string, user: string) => {
    const before = await api.records(user);
    isRefused(await api.list(bearer));
    isRefused(await api.begin(bearer));
    for (const { id } of before) isRefused(await api.remove(bearer, id));
    expect(await api.records(user)).to.deep.equal(before);
  };

  describe('obtained with the password alone, before there was a factor,', () => {
    it('neither lists, adds nor removes once the user has one', async () => {
      const user = someone();
      const early = await api.early(user);
      await api.enrollOtp(user, 'leeway');
      await isDead(early, user);
    });

    it('does not confirm what it began', async () => {
      const user = someone();
      const early = await api.early(user);
      const { secret } = (await api.begin(early)).json();
      await api.enrollOtp(user, 'leeway');
      const answer = await api.verify('otp', { mfa_token: early, otp: codeOf(secret) });
      expect(answer.status, answer.text).to.be.oneOf([401, 403]);
      expect(await api.active(user)).to.have.length(1);
    });

    it('enrols the first factor, lists and removes unfinished ones', async () => {
      const user = someone();
      const early = await api.early(user);
      await api.begin(early);
      const [begun] = (await api.list(early)).json() as never as { id: string }[];
      expect((await api.remove(early, begun?.id ?? '')).status).to.equal(204);
      expect((await api.list(early)).json()).to.deep.equal([]);
      const { secret } = (await api.begin(early)).json();
      const done = await api.verify('otp', { mfa_token: early, otp: codeOf(secret) });
      expect(done.status, done.text).to.equal(200);
      await isDead(early, user);
      const { access_token } = done.json();
      const [own] = await api.active(user);
      expect(
        (await api.remove(access_token, own?.id ?? '')).status,
        'the one it was given for that',
      ).to.equal(204);
    });

    it('enrols nothing after a reset', async () => {
      const user = someone();
      const early = await api.early(user);
      const { secret } = (await api.begin(early)).json();
      await api.reset(user, 'Another-New-Word-9');
      await isDead(early, user);
      const answer = await api.verify('otp', { mfa_token: early, otp: codeOf(secret) });
      expect(answer.status, answer.text).to.equal(401);
      expect(await api.active(user)).to.deep.equal([]);
    });

    it('has no more access when it comes from /authorize', async () => {
      for (const response_type of ['code', 'id_token token']) {
        const user = someone();
        const browser = createAgent(server);
        const params = webRequest({ ...api.manage, response_type, nonce: 'n' });
        const end = responseOf(
          await logIn(browser, server, params, { email: user, password: USER.password }),
        );
        const early = await accessTokenOf(browser, end);
        expect((await api.list(early)).status).to.equal(200);
        await api.enrollOtp(user, 'leeway');
        await isDead(early, user);
      }
    });
  });

  describe('obtained with a second factor', () => {
    it('adds and removes in turn: its own changes do not end it', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const bearer = await api.proved(user, secret);
      for (let i = 0; i < 2; i++) {
        const added = (await api.begin(bearer)).json();
        const done = await api.verify('otp', { mfa_token: bearer, otp: codeOf(added.secret) }, 'leeway');
        expect(done.status, done.text).to.equal(200);
      }
      const ids = (await api.active(user)).map(({ id }) => id);
      expect(ids).to.have.length(3);
      for (const id of ids) expect((await api.remove(bearer, id)).status).to.equal(204);
    });

    it('removes several factors at once', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      for (let i = 0; i < 3; i++) {
        const bearer = await api.proved(user, secret);
        const added = (await api.begin(bearer)).json();
        await api.verify('otp', { mfa_token: bearer, otp: codeOf(added.secret) }, 'leeway');
      }
      const bearer = await api.proved(user, secret);
      const ids = (await api.active(user)).map(({ id }) => id);
      expect(ids).to.have.length(4);
      const answers = await Promise.all(ids.map((id) => api.remove(bearer, id)));
      expect(answers.map(({ status }) => status)).to.deep.equal([204, 204, 204, 204]);
      expect((await api.list(bearer)).json()).to.deep.equal([]);
    });

    it('ends when the owner removes what it added', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const stolen = await api.proved(user, secret);
      const added = (await api.begin(stolen)).json();
      await api.verify('otp', { mfa_token: stolen, otp: codeOf(added.secret) }, 'leeway');
      expect((await api.list(stolen)).status).to.equal(200);
      expect((await api.remove(await api.proved(user, secret), added.id)).status).to.equal(204);
      await isDead(stolen, user);
    });

    it('is also issued at /authorize, with every response type', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      for (const response_type of ['code', 'id_token token']) {
        server.tick(31_000);
        const browser = createAgent(server);
        const params = webRequest({ ...api.manage, response_type, nonce: 'n' });
        const page = await logIn(browser, server, params, { email: user, password: USER.password });
        const { action, fields } = readForm(page, 'code');
        const posted = await browser.request(action, { form: { ...fields, code: codeOf(secret) } });
        const end = responseOf(await follow(browser, posted, server.url));
        const bearer = await accessTokenOf(browser, end);
        expect(payload(bearer).amr).to.include('mfa');
        expect((await api.begin(bearer)).status).to.equal(200);
      }
    });

    it('ends when another login adds a factor', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const [old, other] = [await api.proved(user, secret), await api.proved(user, secret)];
      const added = (await api.begin(other)).json();
      await api.verify('otp', { mfa_token: other, otp: codeOf(added.secret) }, 'leeway');
      await isDead(old, user);
      expect((await api.list(other)).status, 'the one that changed it').to.equal(200);
    });

    it('ends when another login removes a factor, and is not revived by a new one', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const [old, other] = [await api.proved(user, secret), await api.proved(user, secret)];
      const [own] = await api.active(user);
      await api.remove(other, own?.id ?? '');
      await isDead(old, user);
      await api.enrollOtp(user, 'leeway');
      await isDead(old, user);
      await isDead(other, user);
    });

    it('is issued from a session until the factors change, after which a factor is required again', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const browser = createAgent(server);
      const give = async (page: Answer) => {
        const { action, fields } = readForm(page, 'code');
        const posted = await browser.request(action, { form: { ...fields, code: codeOf(secret) } });
        return responseOf(await follow(browser, posted, server.url));
      };
      const manage = webRequest(api.manage);
      const silent = async () => responseOf(await authorize(browser, { ...manage, prompt: 'none' }));
      server.tick(31_000);
      await give(await logIn(browser, server, manage, { email: user, password: USER.password }));
      server.tick(3_600_000);
      expect((await silent()).code, 'an hour later').to.be.a('string');
      const other = await api.proved(user, secret);
      const added = (await api.begin(other)).json();
      await api.verify('otp', { mfa_token: other, otp: codeOf(added.secret) }, 'leeway');
      for (const ms of [0, 3_600_000]) {
        server.tick(ms);
        expect(await silent()).to.include({ error: 'login_required' });
      }
      expect(responseOf(await authorize(browser, webRequest({ prompt: 'none' }))).code).to.be.a('string');
      const end = await give(await follow(browser, await authorize(browser, manage), server.url));
      const bearer = await accessTokenOf(browser, end);
      expect((await api.remove(bearer, added.id)).status).to.equal(204);
    });

    it('ends with a reset, and so does what it began', async () => {
      const user = someone();
      const { secret } = await api.enrollOtp(user, 'leeway');
      const record = await server.users.findInConnection({ name: 'users' }, user);
      // Verified before, so that the factors stay.
      await server.users.update(record?.id ?? '', { email_verified: true });
      const bearer = await api.proved(user, secret);
      const added = (await api.begin(bearer)).json();
      await api.reset(user, 'Another-New-Word-9');
      await isDead(bearer, user);
      const late = await api.verify('otp', { mfa_token: bearer, otp: codeOf(added.secret) }, 'leeway');
      expect(late.status).to.equal(401);
      expect(await api.active(user)).to.have.length(1);
    });

    it('is not renewed: there is no refresh token for this API', async () => {
      const user = someone();
      const browser = createAgent(server);
      const params = webRequest({ ...api.manage, scope: `${SCOPE} offline_access`, response_type: 'code' });
      const { code } = responseOf(
        await logIn(browser, server, params, { email: user, password: USER.password }),
      );
      const answer = await redeem(browser, code);
      expect(answer.json()).not.to.have.property('refresh_token');
      expect(answer.json().access_token.split('.')).to.have.length(3);
    });
  });

  it('for other APIs does not say how its user logged in', async () => {
    const user = someone();
    const { access_token } = (await api.login(user, { audience: 'https://api.example.test/' })).json();
    expect(payload(access_token)).not.to.have.any.keys('amr', 'factors_changed', 'credential_version');
  });

  describe('at the same time as', () => {
    it("the owner's first factor is confirmed never removes a confirmed factor", async () => {
      const random = seeded(4);
      for (let round = 0; round < 12; round++) {
        const user = someone();
        const early = await api.early(user);
        const mfa_token = await api.mfaToken(user, {}, 'leeway');
        const { id, secret } = (await api.begin(mfa_token)).json();
        const attack = async () => {
          await turns(Math.floor(random() * 12));
          return api.remove(early, id);
        };
        const confirm = async () => {
          await turns(Math.floor(random() * 12));
          return api.verify('otp', { mfa_token, otp: codeOf(secret) }, 'leeway');
        };
        const [confirmed] = await Promise.all([confirm(), attack(), attack(), attack()]);
        const left = await api.active(user);
        expect(left.length, `round ${round}: ${confirmed.text}`).to.equal(confirmed.status === 200 ? 1 : 0);
      }
    });

    it("the owner's and the attacker's first factor are confirmed keeps one factor, and the other's token is invalid", async () => {
      const random = seeded(5);
      for (let round = 0; round < 8; round++) {
        const user = someone();
        const early = await api.early(user);
        const mfa_token = await api.mfaToken(user, {}, 'leeway');
        const own = (await api.begin(mfa_token)).json();
        const theirs = (await api.begin(early)).json();
        const after = async <T>(then: () => Promise<T>) => {
          await turns(Math.floor(random() * 12));
          return then();
        };
        const [first, second] = await Promise.all([
          after(() => api.verify('otp', { mfa_token, otp: codeOf(own.secret) }, 'leeway')),
          after(() => api.verify('otp', { mfa_token: early, otp: codeOf(theirs.secret) })),
        ]);
        expect([first.status, second.status].filter((status) => status === 200)).to.have.length(1);
        expect(await api.active(user)).to.have.length(1);
        await isDead(early, user);
      }
    });
  });
});

describe('an access token for the MFA API, obtained with the password alone,', () => {
  it('does not remove a factor that is switched off', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-switched-off-'));
    const first = await startServer({ tenant: lenient, dataDir });
    const user = 'mfa-0@example.test';
    await callsOf(first).enrollOtp(user, 'leeway');
    await first.store.collection('tenant').update('tenant', (current) => ({
      ...(structuredClone(current) as Records['tenant']),
      guardianFactors: [{ name: 'sms' as const, enabled: true }],
    }));
    await first.stop();
    const second = await startServer({ tenant: lenient, dataDir });
    try {
      const there = apiOf(second);
      const [own] = await there.active(user);
      isRefused(await there.remove(await there.early(user), own?.id ?? ''));
      expect(await there.active(user)).to.deep.equal([own]);
    } finally {
      await second.stop();
      await rm(dataDir, { recursive: true });
    }
  });
});
