// The MFA API: what a login requires, how factors are enrolled, challenged and verified, and what is rejected.
import { expect } from 'chai';
import { API, payload } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { keptBy } from '../support/store.ts';
import { callsOf, codeOf, factors, POLICY, REALM_GRANT, tenant } from './tenant.ts';

describe('the MFA API', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          ...tenant.attackProtection,
          rateLimits: { ...tenant.attackProtection.rateLimits, token: { capacity: 1e6, perMinute: 1e6 } },
        },
      },
    });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  /** A time after all codes that were used. */
  const later = () => server.tick(31_000);

  describe('at the first factor', () => {
    it('answers 403 mfa_required with a token and what can be enrolled', async () => {
      const answer = await calls.login(someone());
      expect(answer.status).to.equal(403);
      const { mfa_token, ...body } = answer.json();
      expect(body).to.deep.equal({
        error: 'mfa_required',
        error_description: 'Multifactor authentication required',
        mfa_requirements: {
          enroll: [{ type: 'otp' }, { type: 'phone' }, { type: 'email' }, { type: 'push-notification' }],
        },
      });
      expect(mfa_token).to.be.a('string').with.length.above(40);
    });

    it('lists what can be challenged once something is enrolled', async () => {
      const user = someone();
      await calls.enrollOtp(user);
      const { mfa_requirements: required } = (await calls.login(user)).json();
      expect(required).to.deep.equal({ challenge: [{ type: 'otp' }, { type: 'recovery-code' }] });
    });
  });

  describe('with an authenticator app', () => {
    it('enrols, and completes the request that required it: scope, API, refresh token, amr and acr', async () => {
      const user = someone();
      const mfa_token = await calls.mfaToken(user, {
        scope: 'openid offline_access read:things',
        audience: API,
      });
      const enrolled = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
      expect(enrolled).to.include({ authenticator_type: 'otp' });
      expect(enrolled.secret).to.match(/^[A-Z2-7]{32}$/);
      expect(enrolled.recovery_codes).to.have.length(1);
      expect(enrolled.recovery_codes[0]).to.match(/^[A-Z0-9]{24}$/);
      const uri = new URL(enrolled.barcode_uri);
      expect(uri.protocol + uri.host).to.equal('otpauth:totp');
      expect(Object.fromEntries(uri.searchParams)).to.include({
        issuer: 'Test tenant',
        secret: enrolled.secret,
        algorithm: 'SHA1',
        digits: '6',
        period: '30',
      });
      const answer = await calls.verify('otp', { mfa_token, otp: codeOf(enrolled.secret) });
      expect(answer.status, answer.text).to.equal(200);
      const tokens = answer.json();
      expect(payload(tokens.access_token)).to.include({
        gty: 'password',
        scope: 'openid offline_access read:things',
      });
      expect(tokens.refresh_token).to.be.a('string');
      expect(payload(tokens.id_token)).to.deep.include({ amr: ['mfa'], acr: POLICY });
      const refreshed = await calls.token({
        grant_type: 'refresh_token',
        refresh_token: tokens.refresh_token,
      });
      expect(refreshed.status, 'a refresh asks for nothing').to.equal(200);
    });

    it('accepts a code of one time step before or after, and no other', async () => {
      for (const [steps, status] of [
        [-2, 403],
        [-1, 200],
        [0, 200],
        [1, 200],
        [2, 403],
      ] as const) {
        const user = someone();
        const mfa_token = await calls.mfaToken(user);
        const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
        const answer = await calls.verify('otp', {
          mfa_token,
          otp: codeOf(secret, Date.now() + steps * 30_000),
        });
        expect(answer.status, `${steps} steps`).to.equal(status);
        if (status === 403) {
          expect(answer.json()).to.deep.equal({
            error: 'invalid_grant',
            error_description: 'Invalid otp_code.',
          });
        }
      }
    });

    it('accepts a time step once, and none before it, also for ten concurrent requests', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      const again = await calls.verify('otp', { mfa_token: await calls.mfaToken(user), otp: codeOf(secret) });
      expect(again.status).to.equal(403);
      const earlier = await calls.verify('otp', {
        mfa_token: await calls.mfaToken(user),
        otp: codeOf(secret, Date.now() - 30_000),
      });
      expect(earlier.status).to.equal(403);
      later();
      const tokens = await Promise.all(Array.from({ length: 8 }, () => calls.mfaToken(user)));
      const otp = codeOf(secret);
      const answers = await Promise.all(tokens.map((mfa_token) => calls.verify('otp', { mfa_token, otp })));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    });

    it('stores the secret encrypted', async () => {
      const { secret } = await calls.enrollOtp(someone());
      const stored = await keptBy(server);
      const isSomewhere = (text: string) => stored.some((one) => one.includes(text));
      const [authenticator] = (await server.store.collection('authenticators').list()).records.slice(-1);
      expect(isSomewhere(authenticator?.user_id ?? 'nobody')).to.equal(true);
      expect(isSomewhere(secret)).to.equal(false);
    });

    it('does not require an authenticator that was not confirmed', async () => {
      const user = someone();
      const mfa_token = await calls.mfaToken(user);
      await calls.associate(mfa_token, { authenticator_types: ['otp'] });
      expect((await calls.login(user)).json().mfa_requirements).to.have.property('enroll');
      const challenged = await calls.challenge({ mfa_token });
      expect(challenged.status).to.equal(401);
      expect(challenged.json().error).to.equal('association_required');
    });
  });

  describe('by SMS and e-mail', () => {
    for (const [channel, fields, to] of [
      ['sms', { oob_channels: ['sms'], phone_number: '+1 650 555 0123' }, '+16505550123'],
      ['sms', { oob_channels: 'sms', phone_number: '+16505550124' }, '+16505550124'],
      ['email', { oob_channels: ['email'], email: 'second@example.test' }, 'second@example.test'],
    ] as const) {
      it(`enrols and verifies (${JSON.stringify(fields)})`, async () => {
        const mfa_token = await calls.mfaToken(someone());
        const enrolled = (
          await calls.associate(mfa_token, { authenticator_types: ['oob'], ...fields })
        ).json();
        expect(enrolled).to.include({
          authenticator_type: 'oob',
          oob_channel: channel,
          oob_channels: channel,
          binding_method: 'prompt',
        });
        const { code: binding_code } = await nextMessageTo(server, to);
        const wrong = await calls.verify('oob', {
          mfa_token,
          oob_code: enrolled.oob_code,
          binding_code: 'x',
        });
        expect(wrong.status).to.equal(403);
        expect(wrong.json().error_description).to.equal('Invalid binding_code.');
        const missing = await calls.verify('oob', { mfa_token, oob_code: enrolled.oob_code });
        expect(missing.json().error_description).to.equal('Missing required parameter: binding_code');
        const done = await calls.verify('oob', { mfa_token, oob_code: enrolled.oob_code, binding_code });
        expect(done.status, done.text).to.equal(200);
      });
    }

    it('sends a code that is used once and ends after three wrong tries', async () => {
      const user = someone();
      const phone_number = '+16505550125';
      const first = await calls.mfaToken(user);
      const { oob_code } = (
        await calls.associate(first, { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number })
      ).json();
      await calls.verify('oob', {
        mfa_token: first,
        oob_code,
        binding_code: (await nextMessageTo(server, phone_number)).code,
      });
      const mfa_token = await calls.mfaToken(user);
      const challenged = (await calls.challenge({ mfa_token, challenge_type: 'oob otp' })).json();
      expect(challenged).to.have.all.keys('challenge_type', 'oob_code', 'binding_method');
      expect(challenged).to.include({ challenge_type: 'oob', binding_method: 'prompt' });
      const { code: binding_code } = await nextMessageTo(server, phone_number, 2);
      for (let i = 0; i < 3; i++) {
        await calls.verify('oob', { mfa_token, oob_code: challenged.oob_code, binding_code: 'wrong' });
      }
      const dead = await calls.verify('oob', { mfa_token, oob_code: challenged.oob_code, binding_code });
      expect(dead.status).to.equal(403);
    });
  });

  describe('with a recovery code', () => {
    it('logs in once and gives a new one', async () => {
      const user = someone();
      const { recoveryCode } = await calls.enrollOtp(user);
      const written = `${recoveryCode.slice(0, 4).toLowerCase()}-${recoveryCode.slice(4)} `;
      const done = await calls.verify('recovery-code', {
        mfa_token: await calls.mfaToken(user),
        recovery_code: written,
      });
      expect(done.status, done.text).to.equal(200);
      const { recovery_code: renewed } = done.json();
      expect(renewed)
        .to.match(/^[A-Z0-9]{24}$/)
        .and.not.equal(recoveryCode);
      const again = await calls.verify('recovery-code', {
        mfa_token: await calls.mfaToken(user),
        recovery_code: recoveryCode,
      });
      expect(again.status).to.equal(403);
      expect(again.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'MFA Authorization rejected.',
      });
      const next = await calls.verify('recovery-code', {
        mfa_token: await calls.mfaToken(user),
        recovery_code: renewed,
      });
      expect(next.status).to.equal(200);
    });

    it('takes the id that the list has, as often as it is asked, and sends nothing', async () => {
      const user = someone();
      const { recoveryCode } = await calls.enrollOtp(user);
      const mfa_token = await calls.mfaToken(user);
      const listed = await calls.agent.get('/mfa/authenticators', { authorization: `Bearer ${mfa_token}` });
      const all: { id: string; authenticator_type: string }[] = listed.json() as never;
      const authenticator_id = all.find((one) => one.authenticator_type === 'recovery-code')?.id ?? '';
      for (const types of [{}, { challenge_type: 'otp recovery-code' }]) {
        const answer = await calls.challenge({ mfa_token, authenticator_id, ...types });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.json()).to.deep.equal({ challenge_type: 'recovery-code' });
      }
      const unsupported = await calls.challenge({ mfa_token, authenticator_id, challenge_type: 'oob' });
      expect(unsupported.status).to.equal(401);
      expect(unsupported.json().error).to.equal('unsupported_challenge_type');
      // Without an id it is never the recovery code.
      expect((await calls.challenge({ mfa_token })).json().challenge_type).to.equal('otp');
      const other = await calls.challenge({ mfa_token, challenge_type: 'recovery-code' });
      expect(other.status).to.equal(401);
      const done = await calls.verify('recovery-code', { mfa_token, recovery_code: recoveryCode });
      expect(done.status).to.equal(200);
      const foreign = await calls.challenge({ mfa_token: await calls.mfaToken(someone()), authenticator_id });
      expect(foreign.json().error).to.equal('association_required');
    });

    it('stores only its hash', async () => {
      const { recoveryCode } = await calls.enrollOtp(someone());
      const { records } = await server.store.collection('authenticators').list({ limit: 1000 });
      expect(JSON.stringify(records)).not.to.contain(recoveryCode);
    });
  });

  describe('an MFA token', () => {
    it('ends after a success', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const mfa_token = await calls.mfaToken(user);
      expect((await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).status).to.equal(200);
      later();
      const again = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(again.status).to.equal(401);
      expect(again.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Malformed mfa_token',
      });
    });

    it('expires after ten minutes', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      const mfa_token = await calls.mfaToken(user);
      server.tick(601_000);
      const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(answer.status).to.equal(401);
      expect(answer.json()).to.deep.equal({
        error: 'expired_token',
        error_description: 'mfa_token is expired',
      });
    });

    it('is only accepted from the application that got it', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const mfa_token = await calls.mfaToken(user);
      for (const answer of [
        await calls.verify('otp', { mfa_token, otp: codeOf(secret) }, 'leeway'),
        await calls.challenge({ mfa_token }, 'leeway'),
      ]) {
        expect(answer.status).to.equal(401);
        expect(answer.json().error_description).to.equal('Malformed mfa_token');
      }
      expect((await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).status).to.equal(200);
    });

    it('is not an access token', async () => {
      const mfa_token = await calls.mfaToken(someone());
      const answer = await calls.agent.get('/userinfo', { authorization: `Bearer ${mfa_token}` });
      expect(answer.status).to.equal(401);
    });

    it('does not enrol another authenticator for a user who has one', async () => {
      const user = someone();
      await calls.enrollOtp(user);
      const answer = await calls.associate(await calls.mfaToken(user), { authenticator_types: ['otp'] });
      expect(answer.status).to.equal(403);
      expect(answer.json()).to.deep.equal({
        error: 'access_denied',
        error_description: 'User is already enrolled.',
      });
    });

    it('does not confirm an enrolment that was begun before the user enrolled another authenticator', async () => {
      const user = someone();
      const attackers = await calls.mfaToken(user);
      const { oob_code } = (
        await calls.associate(attackers, {
          authenticator_types: ['oob'],
          oob_channels: ['sms'],
          phone_number: '+16505550166',
        })
      ).json();
      await calls.enrollOtp(user);
      const { code: binding_code } = await nextMessageTo(server, '+16505550166');
      const answer = await calls.verify('oob', { mfa_token: attackers, oob_code, binding_code });
      expect(answer.status).to.equal(403);
      expect(
        (await calls.login(user)).json().mfa_requirements.challenge.map(({ type }: { type: string }) => type),
      ).not.to.include('phone');
    });

    it('confirms one of two authenticators that are enrolled at once', async () => {
      const user = someone();
      const tokens = await Promise.all([1, 2, 3, 4].map(() => calls.mfaToken(user)));
      const started = await Promise.all(
        tokens.map(async (mfa_token) => ({
          mfa_token,
          secret: (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json().secret,
        })),
      );
      const answers = await Promise.all(
        started.map(({ mfa_token, secret }) => calls.verify('otp', { mfa_token, otp: codeOf(secret) })),
      );
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    });

    it('does not use the authenticator of another user', async () => {
      const [alice, bob] = [someone(), someone()];
      const phone_number = '+16505550177';
      const alices = await calls.mfaToken(alice);
      const { oob_code } = (
        await calls.associate(alices, { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number })
      ).json();
      const { code: binding_code } = await nextMessageTo(server, phone_number);
      const bobs = await calls.mfaToken(bob);
      const answer = await calls.verify('oob', { mfa_token: bobs, oob_code, binding_code });
      expect(answer.status).to.equal(403);
      expect((await calls.verify('oob', { mfa_token: alices, oob_code, binding_code })).status).to.equal(200);
    });

    it('is rejected after its user was blocked', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const mfa_token = await calls.mfaToken(user);
      const record = await server.users.findInConnection({ name: 'users' }, user);
      await server.users.update(record?.id ?? '', { blocked: true });
      const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(answer.status).to.equal(403);
      expect(answer.json().error).to.equal('unauthorized');
    });

    it('ends with a new password', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const mfa_token = await calls.mfaToken(user);
      await calls.agent.request('/dbconnections/change_password', {
        json: { connection: 'users', email: user },
      });
      const link = new URL((await nextMessageTo(server, user, 1, 'link')).link ?? '');
      const page = await calls.agent.get(link.pathname + link.search);
      const csrf = /name="_csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
      const password = 'Another-New-Word-9';
      await calls.agent.request('/u/reset-password', {
        form: { _csrf: csrf, ticket: link.searchParams.get('ticket') ?? '', password, repeat: password },
      });
      const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(answer.status).to.equal(401);
    });
  });

  describe('against guessing', () => {
    it('rejects codes after ten wrong ones of a user, whatever their tokens', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const statuses = [];
      for (let i = 0; i < 12; i++) {
        statuses.push(
          (await calls.verify('otp', { mfa_token: await calls.mfaToken(user), otp: '000000' })).status,
        );
      }
      expect(statuses.slice(0, 10)).to.deep.equal(Array(10).fill(403));
      expect(statuses.slice(10)).to.deep.equal([429, 429]);
      const right = await calls.verify('otp', { mfa_token: await calls.mfaToken(user), otp: codeOf(secret) });
      expect(right.status, 'even the right one waits').to.equal(429);
      server.tick(360_000);
      const later10 = await calls.verify('otp', {
        mfa_token: await calls.mfaToken(user),
        otp: codeOf(secret),
      });
      expect(later10.status, later10.text).to.equal(200);
    });

    it('ends a token after ten wrong codes', async () => {
      const user = someone();
      await calls.enrollOtp(user);
      const mfa_token = await calls.mfaToken(user);
      for (let i = 0; i < 10; i++) {
        server.tick(360_000 / 10);
        await calls.verify('otp', { mfa_token, otp: '000000' });
      }
      expect((await calls.verify('otp', { mfa_token, otp: '000000' })).status).to.equal(401);
    });
  });

  describe('challenges', () => {
    it('chooses by what the application supports and the user has', async () => {
      const user = someone();
      await calls.enrollOtp(user);
      const mfa_token = await calls.mfaToken(user);
      expect((await calls.challenge({ mfa_token })).json()).to.deep.equal({ challenge_type: 'otp' });
      expect((await calls.challenge({ mfa_token, challenge_type: 'oob otp' })).json()).to.deep.equal({
        challenge_type: 'otp',
      });
      const unsupported = await calls.challenge({ mfa_token, challenge_type: 'oob' });
      expect(unsupported.status).to.equal(401);
      expect(unsupported.json()).to.deep.equal({
        error: 'unsupported_challenge_type',
        error_description:
          'User does not have any enrolled authenticator with the supported challenge type (oob)',
      });
      const unknown = await calls.challenge({ mfa_token, authenticator_id: 'totp|dev_nothing' });
      expect(unknown.status).to.equal(400);
    });

    for (const [what, fields, status, error] of [
      ['a request without mfa_token', {}, 400, 'invalid_request'],
      ['an invalid token', { mfa_token: 'nonsense' }, 401, 'invalid_grant'],
      ['a token that is not a string', { mfa_token: {} }, 400, 'invalid_request'],
      ['a wrong secret', { mfa_token: 'x', client_secret: 'wrong' }, 401, 'invalid_client'],
    ] as const) {
      it(`rejects ${what}`, async () => {
        const answer = await calls.challenge(fields);
        expect(answer.status).to.equal(status);
        expect(answer.json().error).to.equal(error);
      });
    }
  });

  describe('for a logged-in user', () => {
    const AUDIENCE = () => `${server.issuer}mfa/`;
    const accessToken = async (user: string, secret: string, scope: string) => {
      later();
      const mfa_token = await calls.mfaToken(user, { audience: AUDIENCE(), scope });
      const answer = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
      expect(answer.json().expires_in, answer.text).to.equal(600);
      return answer.json().access_token as string;
    };
    const list = (token: string) =>
      calls.agent.get('/mfa/authenticators', { authorization: `Bearer ${token}` });
    const remove = (token: string, id: string) =>
      calls.agent.request(`/mfa/authenticators/${encodeURIComponent(id)}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}` },
      });

    it('tells users by mail of what was added, and shows when it was last used', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      const hasSubject = (what: string) => (message: { subject?: string }) =>
        message.subject?.includes(what) === true;
      expect((await nextMessageTo(server, user, 1, hasSubject('New way to log in'))).text).to.include(
        'authenticator app',
      );
      const [record] = await server.users.withEmail(user);
      const authenticator = async () => {
        const all = await server.store.collection('authenticators').findBy('user', record?.id ?? '');
        return all.find(({ kind }) => kind === 'otp');
      };
      const first = (await authenticator())?.last_used_at;
      expect(first).to.be.a('string');
      later();
      const mfa_token = await calls.mfaToken(user);
      expect((await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).status).to.equal(200);
      expect(Date.parse((await authenticator())?.last_used_at ?? '')).to.be.greaterThan(
        Date.parse(first ?? ''),
      );
    });

    it('lists authenticators in the format that SDKs read, and removes them', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      const token = await accessToken(user, secret, 'enroll read:authenticators remove:authenticators');
      const added = await calls.associate(token, {
        authenticator_types: ['oob'],
        oob_channels: ['sms'],
        phone_number: '+16505550188',
      });
      expect(added.json()).not.to.have.property('recovery_codes');
      const { code: binding_code } = await nextMessageTo(server, '+16505550188');
      const confirmed = await calls.verify('oob', {
        mfa_token: token,
        oob_code: added.json().oob_code,
        binding_code,
      });
      expect(confirmed.status, confirmed.text).to.equal(200);
      const all = (await list(token)).json();
      const shapes = all.map(({ id: _id, ...rest }: { id: string }) => rest);
      expect(shapes).to.have.deep.members([
        { authenticator_type: 'otp', active: true, type: 'otp' },
        { authenticator_type: 'recovery-code', active: true, type: 'recovery-code' },
        {
          authenticator_type: 'oob',
          active: true,
          type: 'phone',
          oob_channel: 'sms',
          name: 'XXXXXXX0188',
        },
      ]);
      const sms = all.find(({ type }: { type: string }) => type === 'phone');
      expect(sms.id).to.match(/^sms\|dev_/);
      expect((await remove(token, sms.id)).status).to.equal(204);
      const isRemoval = ({ subject }: { subject?: string }) => subject?.includes('removed') === true;
      expect((await nextMessageTo(server, user, 1, isRemoval)).text).to.include('phone number');
      expect((await remove(token, sms.id)).status).to.equal(404);
      expect((await list(token)).json()).to.have.length(2);
    });

    it('requires the scope of each call', async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      const token = await accessToken(user, secret, 'openid read:authenticators');
      expect((await list(token)).status).to.equal(200);
      const { id } = (await list(token)).json()[0];
      for (const answer of [
        await remove(token, id),
        await calls.associate(token, { authenticator_types: ['otp'] }),
      ]) {
        expect(answer.status).to.equal(403);
        expect(answer.json().error).to.equal('insufficient_scope');
      }
    });

    it('removes nothing by an MFA token, and nothing of other users', async () => {
      const [user, other] = [someone(), someone()];
      const { secret } = await calls.enrollOtp(user);
      await calls.enrollOtp(other);
      const token = await accessToken(user, secret, 'read:authenticators remove:authenticators');
      const [own] = (await list(token)).json() as never as { id: string }[];
      expect((await remove(await calls.mfaToken(user), own?.id ?? '')).status).to.equal(403);
      const others = (await list(await calls.mfaToken(other))).json() as never as { id: string }[];
      expect((await remove(token, others[0]?.id ?? '')).status).to.equal(404);
    });

    it("rejects a token of another API, a machine's token, an invalid one and a missing one", async () => {
      const user = someone();
      const { secret } = await calls.enrollOtp(user);
      later();
      const mfa_token = await calls.mfaToken(user, { audience: API, scope: 'read:things' });
      const ofUser = (await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).json().access_token;
      const machine = (audience: string) =>
        calls.agent.request('/oauth/token', {
          json: { grant_type: 'client_credentials', client_id: 'm2m', client_secret: 'm2m-secret', audience },
        });
      const ofMachine = (await machine(API)).json().access_token;
      expect([payload(ofUser).aud, payload(ofMachine).aud]).to.deep.equal([API, API]);
      expect((await machine(AUDIENCE())).status, 'a machine for the MFA API').to.equal(403);
      for (const token of [ofUser, ofMachine, 'nonsense', 'a.b.c', '']) {
        expect((await list(token)).status, token).to.equal(401);
      }
    });
  });

  for (const [what, fields] of [
    ['an empty body', {}],
    ['an unknown type', { authenticator_types: ['webauthn'] }],
    ['two types', { authenticator_types: ['otp', 'oob'] }],
    ['no channel', { authenticator_types: ['oob'] }],
    ['an unknown channel', { authenticator_types: ['oob'], oob_channels: ['pigeon'] }],
    ['no phone number', { authenticator_types: ['oob'], oob_channels: ['sms'] }],
    ['an invalid phone number', { authenticator_types: ['oob'], oob_channels: ['sms'], phone_number: '12' }],
    ['types that are not a list', { authenticator_types: { otp: true } }],
  ] as const) {
    it(`enrols nothing for ${what}`, async () => {
      const answer = await calls.associate(await calls.mfaToken(someone()), fields);
      expect(answer.status).to.equal(400);
      expect(answer.json().error).to.be.a('string');
    });
  }

  it('sends no message to a rejected phone number', async () => {
    expect(await messagesTo(server, '12')).to.deep.equal([]);
  });
});

describe('the policy of the second factor', () => {
  const demanded = async (
    file: object,
    login: (calls: ReturnType<typeof callsOf>) => Promise<{ status: number }>,
  ) => {
    const server = await startServer({ tenant: { ...tenant, ...file } });
    try {
      return (await login(callsOf(server))).status === 403;
    } finally {
      await server.stop();
    }
  };
  const user = 'mfa-0@example.test';
  const login = (calls: ReturnType<typeof callsOf>) => calls.login(user);

  it('requires none when the tenant says never, or has no factor on', async () => {
    expect(await demanded({ guardianPolicies: { policies: [] } }, login)).to.equal(false);
    expect(await demanded({ guardianPolicies: ['never'] }, login)).to.equal(false);
    expect(await demanded({ guardianFactors: [] }, login)).to.equal(false);
    expect(await demanded({ guardianFactors: factors('recovery-code') }, login)).to.equal(false);
  });

  it("prefers the application's setting to the tenant's, and the user's to both", async () => {
    const clients = (mfa_policy: string) => ({
      clients: tenant.clients.map((client) => ({ ...client, client_metadata: { mfa_policy } })),
    });
    expect(await demanded(clients('never'), login)).to.equal(false);
    expect(await demanded({ ...clients('always'), guardianPolicies: [] }, login)).to.equal(true);
    const users = tenant.users.map((one) => ({ ...one, multifactor: ['guardian'] }));
    expect(await demanded({ ...clients('never'), users }, login)).to.equal(true);
  });

  it('applies to the password-realm grant', async () => {
    const byRealm = (calls: ReturnType<typeof callsOf>) =>
      calls.login(user, { grant_type: REALM_GRANT, realm: 'users' });
    expect(await demanded({}, byRealm)).to.equal(true);
  });
});
