// Use of a code at the token endpoint, and by both bodies of POST /passwordless/verify.
import { expect } from 'chai';
import { type Agent, createAgent } from '../../support/agent.ts';
import { API, payload, WEB_CALLBACK } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { timesAsLong } from '../../support/timing.ts';
import { OTP_GRANT, secrets, tenant } from './tenant.ts';

const WRONG = 'Wrong email or verification code.';

describe('a passwordless code', () => {
  let server: TestServer;
  let agent: Agent;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
    agent = createAgent(server);
  });
  after(() => server.stop());

  const someone = () => `person-${++people}@example.test`;
  const client = (id: string) => ({ client_id: id, ...(secrets[id] && { client_secret: secrets[id] }) });
  const codeFor = async (email: string, { clientId = 'web', connection = 'email' } = {}): Promise<string> => {
    const before = (await messagesTo(server, email)).length;
    const answer = await agent.request('/passwordless/start', {
      json: { ...client(clientId), connection, email, send: 'code' },
    });
    expect(answer.status).to.equal(200);
    return (await nextMessageTo(server, email, before + 1)).code ?? '';
  };
  const member = async (connection: string, address: string) => {
    const email = { provider: 'email', kind: 'email' as const };
    const result = await server.users.whoProved({ connection, ...email, address, mayCreate: true });
    return result!.user;
  };
  const exchange = (fields: Record<string, unknown>, { form = false } = {}) => {
    const all = {
      grant_type: OTP_GRANT,
      ...client('web'),
      realm: 'email',
      scope: 'openid profile email',
      ...fields,
    };
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return agent.request('/oauth/token', form ? { form: sent as Record<string, string> } : { json: sent });
  };
  const other = (code: string) => String((Number(code) + 1) % 10 ** code.length).padStart(code.length, '0');

  describe('at the token endpoint', () => {
    for (const form of [false, true]) {
      it(`is exchanged for tokens of a user with a verified address (${form ? 'form' : 'JSON'})`, async () => {
        const email = someone();
        const answer = await exchange({ username: email.toUpperCase(), otp: await codeFor(email) }, { form });
        expect(answer.status, answer.text).to.equal(200);
        const tokens = answer.json();
        expect(tokens).to.include({ token_type: 'Bearer' });
        const claims = payload(tokens.id_token);
        expect(claims).to.include({ aud: 'web', email, email_verified: true });
        expect(claims.sub).to.match(/^email\|[0-9a-f]{24}$/);
      });
    }

    it('verifies the address of a user who had it unverified, and creates no other user', async () => {
      const email = someone();
      const first = await exchange({ username: email, otp: await codeFor(email) });
      const { sub } = payload(first.json().id_token);
      await server.users.update(sub, { email_verified: false });
      const again = await exchange({ username: email, otp: await codeFor(email) });
      expect(payload(again.json().id_token)).to.include({ sub, email_verified: true });
      expect((await server.users.get(sub))?.email_verified).to.equal(true);
    });

    it('creates one user if codes of two applications prove a new address at the same time', async () => {
      for (let round = 0; round < 5; round++) {
        const email = someone();
        const otps = [await codeFor(email), await codeFor(email, { clientId: 'leeway' })];
        const answers = await Promise.all(
          ['web', 'leeway'].map((id, at) => exchange({ username: email, otp: otps[at], ...client(id) })),
        );
        expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
        const [one, two] = answers.map((answer) => payload(answer.json().id_token).sub);
        expect(one).to.equal(two);
      }
    });

    it('returns an access token for an API, and a refresh token', async () => {
      const email = someone();
      const answer = await exchange({
        username: email,
        otp: await codeFor(email),
        audience: API,
        scope: 'openid read:things offline_access',
        redirect_uri: WEB_CALLBACK,
      });
      const tokens = answer.json();
      expect(payload(tokens.access_token)).to.deep.include({
        scope: 'openid read:things offline_access',
        azp: 'web',
      });
      const refreshed = await agent.request('/oauth/token', {
        json: { grant_type: 'refresh_token', ...client('web'), refresh_token: tokens.refresh_token },
      });
      expect(refreshed.status).to.equal(200);
    });

    it('by SMS creates a user with a verified phone number', async () => {
      await agent.request('/passwordless/start', {
        json: { ...client('web'), connection: 'sms', phone_number: '+1 650 555-1234' },
      });
      const { code } = await nextMessageTo(server, '+16505551234');
      const answer = await exchange({
        username: '+16505551234',
        realm: 'sms',
        otp: code,
        scope: 'openid phone',
      });
      const claims = payload(answer.json().id_token);
      expect(claims.sub).to.match(/^sms\|[0-9a-f]{24}$/);
      expect(claims).to.include({ phone_number: '+16505551234', phone_number_verified: true });
    });

    it('logs in the same user the next time', async () => {
      const email = someone();
      const subs = [];
      for (let i = 0; i < 2; i++) {
        subs.push(
          payload((await exchange({ username: email, otp: await codeFor(email) })).json().id_token).sub,
        );
      }
      expect(subs[0]).to.equal(subs[1]);
    });

    it('is accepted once', async () => {
      const email = someone();
      const otp = await codeFor(email);
      expect((await exchange({ username: email, otp })).status).to.equal(200);
      const again = await exchange({ username: email, otp });
      expect(again.status).to.equal(403);
      expect(again.json()).to.deep.equal({ error: 'invalid_grant', error_description: WRONG });
    });

    it('is accepted once if fifty use it at the same time', async () => {
      const email = someone();
      const otp = await codeFor(email);
      const answers = await Promise.all(Array.from({ length: 50 }, () => exchange({ username: email, otp })));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect(answers.filter(({ status }) => status === 403)).to.have.length(49);
      const { records } = await server.store.collection('users').list({ limit: 1000 });
      expect(records.filter((user) => user.email === email)).to.have.length(1);
    });

    it('is rejected after three wrong tries, with the same error as before', async () => {
      const email = someone();
      const otp = await codeFor(email);
      const answers = [];
      for (let i = 0; i < 3; i++) answers.push(await exchange({ username: email, otp: other(otp) }));
      answers.push(await exchange({ username: email, otp }));
      for (const answer of answers) {
        expect(answer.status).to.equal(403);
        expect(answer.json()).to.deep.equal({ error: 'invalid_grant', error_description: WRONG });
      }
    });

    it('is rejected after three wrong tries at the same time', async () => {
      const email = someone();
      const otp = await codeFor(email);
      await Promise.all([1, 2, 3].map(() => exchange({ username: email, otp: other(otp) })));
      expect((await exchange({ username: email, otp })).status).to.equal(403);
    });

    it('is accepted after two wrong tries', async () => {
      const email = someone();
      const otp = await codeFor(email);
      for (let i = 0; i < 2; i++) await exchange({ username: email, otp: other(otp) });
      expect((await exchange({ username: email, otp })).status).to.equal(200);
    });

    it('is rejected after another code was sent', async () => {
      const email = someone();
      const first = await codeFor(email);
      const second = await codeFor(email);
      if (first !== second) expect((await exchange({ username: email, otp: first })).status).to.equal(403);
      expect((await exchange({ username: email, otp: second })).status).to.equal(200);
    });

    it('is valid for as long as the connection says', async () => {
      const [early, late] = [someone(), someone()];
      const codes = [await codeFor(early), await codeFor(late)];
      // Real time passes as well, on a busy machine.
      server.tick(170_000);
      expect((await exchange({ username: early, otp: codes[0] })).status).to.equal(200);
      server.tick(11_000);
      expect((await exchange({ username: late, otp: codes[1] })).status).to.equal(403);
    });

    it('is rejected for another application', async () => {
      const email = someone();
      const otp = await codeFor(email, { clientId: 'leeway' });
      expect((await exchange({ username: email, otp })).status).to.equal(403);
      const own = await exchange({ ...client('leeway'), username: email, otp });
      expect(own.status).to.equal(200);
    });

    it('is rejected for another connection', async () => {
      const email = someone();
      await member('members', email);
      const otp = await codeFor(email, { connection: 'members' });
      expect((await exchange({ username: email, otp })).status).to.equal(403);
      expect((await exchange({ username: email, otp, realm: 'members' })).status).to.equal(200);
    });

    it('is rejected for another address', async () => {
      const [victim, attacker] = [someone(), someone()];
      await codeFor(victim);
      const otp = await codeFor(attacker);
      expect((await exchange({ username: victim, otp })).status).to.equal(403);
    });

    it('does not log in a blocked user', async () => {
      const email = someone();
      const user = await member('email', email);
      await server.users.update(user.id, { blocked: true });
      const answer = await exchange({ username: email, otp: await codeFor(email) });
      expect(answer.status).to.equal(403);
      expect(answer.json()).to.deep.equal({ error: 'unauthorized', error_description: 'user is blocked' });
    });

    const faults: [string, Record<string, unknown>, number, string, string | RegExp][] = [
      [
        'no username',
        { username: undefined },
        400,
        'invalid_request',
        'Missing required parameter: username',
      ],
      ['no realm', { realm: undefined }, 400, 'invalid_request', 'Missing required parameter: realm'],
      ['no otp', { otp: undefined }, 400, 'invalid_request', 'Missing required parameter: otp'],
      ['an unknown realm', { realm: 'nope' }, 400, 'invalid_request', 'Connection does not exist'],
      ['a database realm', { realm: 'users' }, 400, 'invalid_request', /strategy/],
      ['a username that is not an address', { username: 'x y' }, 403, 'invalid_grant', WRONG],
      ['an address without a code', { username: 'unasked@example.test' }, 403, 'invalid_grant', WRONG],
      [
        'a redirect_uri that is not registered',
        { redirect_uri: 'https://evil.example/' },
        400,
        'invalid_request',
        /redirect_uri/,
      ],
      ['a wrong secret', { client_secret: 'wrong' }, 401, 'invalid_client', 'Unauthorized'],
      ['an unknown API', { audience: 'urn:nope' }, 403, 'access_denied', 'Service not found: urn:nope'],
    ];
    for (const [what, fields, status, error, description] of faults) {
      it(`returns ${status} ${error} for ${what}`, async () => {
        const email = someone();
        const otp = what === 'an unknown API' ? await codeFor(email) : '000000';
        const answer = await exchange({ username: email, otp, ...fields });
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.json().error).to.equal(error);
        if (typeof description === 'string') expect(answer.json().error_description).to.equal(description);
        else expect(answer.json().error_description).to.match(description);
      });
    }

    it('is rejected for an application without the grant', async () => {
      const answer = await exchange({
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        username: 'a@b.test',
        otp: '1',
      });
      expect(answer.status).to.equal(403);
      expect(answer.json().error_description).to.equal(
        `Grant type '${OTP_GRANT}' not allowed for the client.`,
      );
    });

    it('of a connection without sign-up does not create a user again who was removed meanwhile', async () => {
      const email = someone();
      const user = await member('members', email);
      const otp = await codeFor(email, { connection: 'members' });
      await server.store.collection('users').delete(user.id);
      expect((await exchange({ username: email, otp, realm: 'members' })).status).to.equal(403);
    });
  });

  describe('at POST /passwordless/verify', () => {
    const verify = (fields: Record<string, unknown>) =>
      agent.request('/passwordless/verify', { json: fields });

    it("is exchanged for tokens by the contract's body", async () => {
      const email = someone();
      const password = await codeFor(email);
      const fields = {
        ...client('web'),
        connection: 'email',
        grant_type: 'password',
        username: email,
        password,
        scope: 'openid email',
      };
      const answer = await verify(fields);
      expect(answer.status, answer.text).to.equal(200);
      expect(payload(answer.json().id_token)).to.include({ email, email_verified: true });
      expect((await verify(fields)).status, 'the same code again').to.equal(403);
    });

    it("needs client authentication with the contract's body", async () => {
      const email = someone();
      const password = await codeFor(email);
      const fields = {
        client_id: 'web',
        connection: 'email',
        grant_type: 'password',
        username: email,
        password,
      };
      expect((await verify(fields)).status).to.equal(401);
    });

    it("is checked but not used up by the browser SDK's body", async () => {
      const email = someone();
      const verification_code = await codeFor(email, { clientId: 'spa' });
      const fields = { client_id: 'spa', connection: 'email', email, verification_code };
      for (let i = 0; i < 2; i++) expect((await verify(fields)).status).to.equal(200);
      const answer = await exchange({
        client_id: 'spa',
        client_secret: undefined,
        username: email,
        otp: verification_code,
      });
      expect(answer.status).to.equal(200);
      expect((await verify(fields)).status).to.equal(403);
    });

    it("counts wrong tries of the browser SDK's body", async () => {
      const email = someone();
      const verification_code = await codeFor(email, { clientId: 'spa' });
      const fields = { client_id: 'spa', connection: 'email', email };
      for (let i = 0; i < 3; i++) {
        const answer = await verify({ ...fields, verification_code: other(verification_code) });
        expect(answer.status).to.equal(403);
        expect(answer.json()).to.deep.equal({ error: 'invalid_grant', error_description: WRONG });
      }
      expect((await verify({ ...fields, verification_code })).status).to.equal(403);
    });

    for (const [what, fields] of [
      ['nothing', {}],
      [
        'another grant_type',
        { grant_type: 'otp', client_id: 'web', connection: 'email', username: 'a@b.c', password: '1' },
      ],
      ['no username', { ...client('web'), grant_type: 'password', connection: 'email', password: '1' }],
      ['no password', { ...client('web'), grant_type: 'password', connection: 'email', username: 'a@b.c' }],
      ['no connection', { ...client('web'), grant_type: 'password', username: 'a@b.c', password: '1' }],
      ['no address', { client_id: 'spa', connection: 'email', verification_code: '1' }],
      [
        'an unknown connection',
        { client_id: 'spa', connection: 'nope', email: 'a@b.c', verification_code: '1' },
      ],
      [
        'a code that is not a string',
        { client_id: 'spa', connection: 'email', email: 'a@b.c', verification_code: {} },
      ],
    ] as const) {
      it(`returns 400 for ${what}`, async () => {
        const answer = await verify(fields);
        expect(answer.status).to.equal(400);
        expect(answer.json().error).to.be.a('string');
        expect(answer.json().error_description).to.be.a('string');
      });
    }
  });

  it('is rejected as fast for an address without a code as for one with a code', async () => {
    await member('members', 'timing@example.test');
    const start = (email: string) =>
      agent.request('/passwordless/start', {
        json: { ...client('web'), connection: 'members', email, send: 'code' },
      });
    const attempt = (emailOf: () => string) => async () => {
      const email = emailOf();
      await start(email);
      return () => exchange({ username: email, otp: '000000', realm: 'members' });
    };
    // Not a benchmark: differences as large as these could be measured from outside.
    const ratio = await timesAsLong(
      attempt(() => 'timing@example.test'),
      attempt(() => someone()),
    );
    expect(ratio).to.be.within(1 / 3, 3);
  });
});

describe('the limit of POST /passwordless/verify', () => {
  const spec = { grant_type: 'password', client_id: 'spa', username: 'a@b.test', password: '123456' };
  const older = { client_id: 'spa', email: 'a@b.test', verification_code: '123456' };
  it('counts both bodies together', async () => {
    const rateLimits = {
      ...tenant.attackProtection.rateLimits,
      passwordlessVerify: { capacity: 3, perMinute: 1 },
    };
    const server = await startServer({
      tenant: { ...tenant, attackProtection: { ...tenant.attackProtection, rateLimits } },
    });
    try {
      const verify = (fields: object) =>
        createAgent(server).request('/passwordless/verify', { json: { connection: 'email', ...fields } });
      for (const fields of [spec, older, spec]) expect((await verify(fields)).status).to.equal(403);
      for (const fields of [spec, older]) {
        const answer = await verify(fields);
        expect(answer.status).to.equal(429);
        expect(answer.json().error).to.equal('too_many_requests');
        expect(answer.headers['x-ratelimit-limit']).to.equal('3');
      }
    } finally {
      await server.stop();
    }
  });
});
