// Somebody signs up with an address of another person, and creates what they can. When the owner proves the address by
// resetting the password, nothing of it is left. A new password of any user also ends what was begun before.
import { expect } from 'chai';
import { devicesOf } from '../factors/device.ts';
import { callsOf, codeOf, factors, tenant } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, logIn, responseOf, THIRD_CALLBACK, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { prepareReset, resetPassword } from '../support/reset.ts';
import { seeded, turns } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';

const NEW = 'Another-New-Word-9';
const generous = { capacity: 10_000, perMinute: 10_000 };

/** Nonces, form tokens, names of waiting requests, and the number that an error page gives its request. */
const RANDOM_TEXT = /nonce="[^"]*"|value="[\w-]{43}"|(?<=\/u\/)[\w-]{21,}|<code>[\w-]{8}-\w+<\/code>/g;

const demanding = {
  ...tenant,
  // Without e-mail: a verified address would be a factor by itself.
  guardianFactors: factors('otp', 'sms', 'push-notification', 'recovery-code'),
  attackProtection: {
    ...tenant.attackProtection,
    rateLimits: {
      ...tenant.attackProtection.rateLimits,
      changePassword: generous,
      mfaAssociate: generous,
      signup: generous,
    },
  },
};

for (const keeps of [false, true]) {
  describe(`a reset by the owner of the address${keeps ? ', where sessions are kept' : ''}`, () => {
    let server: TestServer;
    let calls: ReturnType<typeof callsOf>;
    let people = 0;
    before(async () => {
      const flags = { keep_sessions_on_password_reset: keeps };
      server = await startServer({
        tenant: { ...demanding, tenant: { ...demanding.tenant, flags } },
      });
      calls = callsOf(server);
    });
    after(() => server.stop());
    const someone = () => `mfa-${people++}@example.test`;
    const devices = devicesOf(() => ({ server, calls, someone }));
    const userOf = async (email: string) => {
      const user = await server.users.findInConnection({ name: 'users' }, email);
      if (user === undefined) throw new Error(`${email} is nobody`);
      return user;
    };
    const verified = async () => {
      const email = someone();
      await server.users.update((await userOf(email)).id, { email_verified: true });
      return email;
    };
    const kept = async (name: 'authenticators' | 'challenges' | 'browsers' | 'consents', email: string) =>
      server.store.collection(name).findBy('user', (await userOf(email)).id);
    const active = async (email: string) =>
      (await kept('authenticators', email)).filter((one) => 'active' in one && one.active);
    const hasSession = async (agent: Agent) =>
      'code' in responseOf(await authorize(agent, webRequest({ prompt: 'none' })));
    /** Enrols an app at the pages, and has the browser remembered. */
    const enrollAtPages = async (browser: Agent, email: string): Promise<Answer> => {
      const page = await logIn(browser, server, webRequest(), { email, password: USER.password });
      const path = /\/u\/[\w-]+\/mfa/.exec(page.text)?.[0] ?? '';
      const enrolling = await browser.get(`${path}/otp`);
      const { action, fields } = readForm(enrolling, 'code');
      const secret = /<code dir="ltr">([A-Z2-7]{32})</.exec(enrolling.text)?.[1] ?? '';
      const code = codeOf(secret);
      const given = await browser.request(action, { form: { ...fields, code, remember: 'yes' } });
      const saved = readForm(given, 'saved');
      const end = await browser.request(saved.action, { form: { ...saved.fields, saved: 'yes' } });
      return follow(browser, end, server.url);
    };

    describe('that proves it for the first time', () => {
      it('leaves nothing of the person who signed up with it: factors, sessions, tokens, browsers, consents, metadata', async () => {
        const email = `squatted-${people++}@example.test`;
        const signedUp = await calls.agent.request('/dbconnections/signup', {
          json: {
            client_id: 'web',
            connection: 'users',
            email,
            password: USER.password,
            name: 'Not the owner',
            given_name: 'Not',
            family_name: 'Owner',
            nickname: 'squatter',
            picture: 'https://squatter.example/pixel.png',
            user_metadata: { plan: 'mine' },
          },
        });
        expect(signedUp.status, signedUp.text).to.equal(200);
        const { id } = await userOf(email);
        await server.users.update(id, { app_metadata: { tier: 'by an administrator' } });
        const browser = createAgent(server);
        expect(responseOf(await enrollAtPages(browser, email)).code).to.be.a('string');
        expect(await hasSession(browser)).to.equal(true);
        const third = { client_id: 'third', redirect_uri: THIRD_CALLBACK, scope: 'openid email' };
        const asked = await follow(browser, await authorize(browser, webRequest(third)), server.url);
        const { action, fields } = readForm(asked);
        await browser.request(action, { form: { ...fields, decision: 'accept' } });
        const [factor] = (await active(email)).filter((one) => 'kind' in one && one.kind === 'otp');
        expect(factor).to.include({ kind: 'otp' });
        expect(await kept('browsers', email)).not.to.deep.equal([]);
        expect(await kept('consents', email)).to.have.length(1);

        await resetPassword(server, email, NEW);

        expect(await kept('authenticators', email)).to.deep.equal([]);
        expect(await kept('challenges', email)).to.deep.equal([]);
        expect(await kept('browsers', email)).to.deep.equal([]);
        expect(await kept('consents', email)).to.deep.equal([]);
        const artifacts = await server.store.collection('artifacts').findBy('account', id);
        expect(artifacts.map(({ model }) => model)).to.deep.equal([]);
        expect(await hasSession(browser)).to.equal(false);
        const { name, given_name, family_name, nickname, picture, ...after } = await userOf(email);
        expect({ name, given_name, family_name, nickname, picture }).to.deep.equal({
          name: undefined,
          given_name: undefined,
          family_name: undefined,
          nickname: undefined,
          picture: undefined,
        });
        expect(after).to.deep.include({
          email_verified: true,
          user_metadata: {},
          app_metadata: { tier: 'by an administrator' },
        });
        const login = await calls.login(email, { password: NEW });
        expect(login.json().mfa_requirements, 'the owner begins anew').to.have.property('enroll');
      });

      it('ends the refresh tokens and the tokens for the MFA API that they obtained', async () => {
        const email = someone();
        const { secret } = await calls.enrollOtp(email);
        const tokens = [];
        for (const more of [
          { scope: 'openid offline_access' },
          { audience: `${server.issuer}mfa/`, scope: 'enroll read:authenticators' },
        ]) {
          server.tick(31_000);
          const mfa_token = await calls.mfaToken(email, more);
          tokens.push((await calls.verify('otp', { mfa_token, otp: codeOf(secret) })).json());
        }
        await resetPassword(server, email, NEW);
        const [{ refresh_token }, { access_token }] = tokens as [
          Record<string, string>,
          Record<string, string>,
        ];
        const refreshed = await calls.token({ grant_type: 'refresh_token', refresh_token });
        expect(refreshed.status, refreshed.text).to.equal(400);
        const listed = await calls.agent.get('/mfa/authenticators', {
          authorization: `Bearer ${access_token}`,
        });
        expect(listed.status).to.equal(401);
      });

      it('ends their devices', async () => {
        const { user, device } = await devices.enrolled();
        expect((await devices.requests(device)).status).to.equal(200);
        await resetPassword(server, user, NEW);
        expect((await devices.requests(device)).status).to.equal(401);
      });

      it('leaves no factor that is confirmed at the same time', async () => {
        const random = seeded(8);
        for (let round = 0; round < 6; round++) {
          const email = someone();
          const mfa_token = await calls.mfaToken(email);
          const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
          const submit = await prepareReset(server, email);
          const after = async <T>(then: () => Promise<T>) => {
            await turns(Math.floor(random() * 20));
            return then();
          };
          const [done] = await Promise.all([
            after(() => submit(NEW)),
            after(() => calls.verify('otp', { mfa_token, otp: codeOf(secret) })),
            after(() => calls.associate(mfa_token, { authenticator_types: ['otp'] })),
          ]);
          expect(done.status).to.equal(200);
          expect(await active(email), `round ${round}`).to.deep.equal([]);
        }
      });
    });

    describe('that was proved before', () => {
      it('keeps factors, the recovery code and metadata', async () => {
        const email = await verified();
        const { id } = await userOf(email);
        await server.users.update(id, { name: 'Ada', user_metadata: { plan: 'mine' } });
        const { recoveryCode } = await calls.enrollOtp(email);
        await resetPassword(server, email, NEW);
        expect(await userOf(email)).to.deep.include({ name: 'Ada', user_metadata: { plan: 'mine' } });
        expect((await calls.login(email, { password: NEW })).json().mfa_requirements).to.have.property(
          'challenge',
        );
        const mfa_token = await calls.mfaToken(email, { password: NEW });
        const recovered = await calls.verify('recovery-code', { mfa_token, recovery_code: recoveryCode });
        expect(recovered.status, recovered.text).to.equal(200);
      });

      it('ends enrolments that were begun with MFA tokens, with their codes and barcodes', async () => {
        const email = await verified();
        const mfa_token = await calls.mfaToken(email);
        const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
        const phone_number = `+1650555${keeps ? '0161' : '0162'}`;
        const sms = (
          await calls.associate(mfa_token, {
            authenticator_types: ['oob'],
            oob_channels: ['sms'],
            phone_number,
          })
        ).json();
        const { code: binding_code } = await nextMessageTo(server, phone_number);
        const { ticket, body } = await devices.begin(email);
        await resetPassword(server, email, NEW);
        for (const [kind, proof] of [
          ['otp', { otp: codeOf(secret) }],
          ['oob', { oob_code: sms.oob_code, binding_code }],
          ['oob', { oob_code: body.oob_code }],
        ] as const) {
          expect((await calls.verify(kind, { mfa_token, ...proof })).status).to.equal(401);
          const fresh = await calls.mfaToken(email, { password: NEW });
          const late = await calls.verify(kind, { mfa_token: fresh, ...proof });
          expect(late.status, late.text).to.equal(403);
        }
        expect((await devices.register(ticket)).answer.status).to.equal(400);
        expect(await kept('authenticators', email)).to.deep.equal([]);
        const challenges = await kept('challenges', email);
        expect(challenges.filter((one) => 'purpose' in one && one.purpose === 'mfa_oob')).to.deep.equal([]);
      });

      it('ends enrolments that were begun at the pages, at every step', async () => {
        const email = await verified();
        const { id } = await userOf(email);
        const browser = createAgent(server);
        const page = await logIn(browser, server, webRequest(), { email, password: USER.password });
        const path = /\/u\/[\w-]+\/mfa/.exec(page.text)?.[0] ?? '';
        const enrolling = await browser.get(`${path}/otp`);
        const { action, fields } = readForm(enrolling, 'code');
        const secret = /<code dir="ltr">([A-Z2-7]{32})</.exec(enrolling.text)?.[1] ?? '';
        const begun = () => server.store.collection('artifacts').findBy('account', id);
        expect((await begun()).map(({ model }) => model)).to.deep.equal(['Interaction']);
        await resetPassword(server, email, NEW);
        if (!keeps) expect(await begun()).to.deep.equal([]);
        const answers = [
          await browser.request(action, { form: { ...fields, code: codeOf(secret) } }),
          await browser.request(`${action}/resend`, { form: fields }),
          await browser.request(`${path}/recovery-code-saved`, { form: { ...fields, saved: 'yes' } }),
          await browser.get(path),
          await browser.get(`${path}/choose`),
          await browser.get(`${path}/status`),
          await browser.get(`${path}/otp`),
          await browser.get(`${path}/push-notification`),
        ];
        for (const { status, text, location } of answers) {
          expect(status, text).to.be.oneOf([302, 303, 400]);
          // Random text (nonces, form tokens, names of requests) may contain any three letters, so it is left out.
          expect((text + location).replace(RANDOM_TEXT, '')).not.to.match(/mfa|code=|Recovery/i);
        }
        expect(await kept('authenticators', email)).to.deep.equal([]);
      });

      it('ends requests that wait on a device: none that was made with the old password can be approved', async () => {
        const { user, device } = await devices.enrolled();
        await server.users.update((await userOf(user)).id, { email_verified: true });
        const challenge = await devices.challenged(user);
        const [request] = await devices.waiting(device);
        await resetPassword(server, user, NEW);
        expect(await devices.waiting(device)).to.deep.equal([]);
        expect((await devices.answerWith(device, request?.id ?? '', 'allow')).status).to.equal(404);
        expect((await calls.verify('oob', challenge)).status).to.equal(401);
      });

      it('forgets remembered browsers', async () => {
        const email = await verified();
        const browser = createAgent(server);
        await enrollAtPages(browser, email);
        expect(await kept('browsers', email)).to.have.length(1);
        await resetPassword(server, email, NEW);
        expect(await kept('browsers', email)).to.deep.equal([]);
      });

      it('forgets a browser that is remembered at the same time', async () => {
        const email = await verified();
        const browser = createAgent(server);
        await enrollAtPages(browser, email);
        const again = (password: string) =>
          logIn(browser, server, webRequest({ prompt: 'login' }), { email, password });
        expect(responseOf(await again(USER.password)).code).to.be.a('string');
        await server.users.setPassword((await userOf(email)).id, NEW);
        expect(await kept('browsers', email)).to.have.length(1);
        expect(readForm(await again(NEW), 'code').action).to.match(/\/mfa\/otp$/);
      });

      it('adds no factor once the password has changed', async () => {
        for (let count = 0; count < 24; count++) {
          const email = await verified();
          const { id } = await userOf(email);
          const mfa_token = await calls.mfaToken(email);
          const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
          const answer = calls.verify('otp', { mfa_token, otp: codeOf(secret) });
          await turns(count % 6);
          // Only the password changes: nothing that was begun is removed because of it.
          const set = server.users.setPassword(id, NEW);
          while ((await server.users.credentialVersion(id)) === 0) await turns(1);
          const before = (await active(email)).map((one) => one.id);
          await set;
          await answer;
          expect(before, `after ${count} turns`).to.include.members(
            (await active(email)).map((one) => one.id),
          );
        }
      });

      it('leaves nothing to confirm, even when it is begun with the old password at the same time', async () => {
        const email = await verified();
        const { id } = await userOf(email);
        const old = await calls.mfaToken(email);
        const { secret } = (await calls.associate(old, { authenticator_types: ['otp'] })).json();
        await server.users.setPassword(id, NEW);
        expect((await calls.verify('otp', { mfa_token: old, otp: codeOf(secret) })).status).to.equal(401);
        const mfa_token = await calls.mfaToken(email, { password: NEW });
        const late = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
        expect(late.json().error_description).to.equal('Invalid otp_code.');
        expect(await active(email)).to.deep.equal([]);
      });

      it('happens before or after a confirmation: a refused factor does not exist', async () => {
        const random = seeded(9);
        for (let round = 0; round < 8; round++) {
          const email = await verified();
          const mfa_token = await calls.mfaToken(email);
          const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
          const submit = await prepareReset(server, email);
          const after = async <T>(then: () => Promise<T>) => {
            await turns(Math.floor(random() * 20));
            return then();
          };
          const [, answer] = await Promise.all([
            after(() => submit(NEW)),
            after(() => calls.verify('otp', { mfa_token, otp: codeOf(secret) })),
          ]);
          const { error_description: why } = answer.json();
          const left = await active(email);
          if (answer.status === 200) expect(left, `round ${round}`).to.have.length(2);
          if (why === 'Invalid otp_code.') expect(left, `round ${round}`).to.deep.equal([]);
          const late = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
          expect(late.status, 'the MFA token is dead').to.equal(401);
          expect(await active(email)).to.deep.equal(left);
        }
      });
    });
  });
}

for (const keeps of [false, true]) {
  describe(`a reset${keeps ? ', where the tenant says so,' : ''}`, () => {
    it(`${keeps ? 'keeps' : 'ends'} sessions${keeps ? '; one that is kept begins no second factor' : ''}`, async () => {
      const relaxed = await startServer({
        tenant: {
          ...demanding,
          guardianPolicies: [],
          tenant: { ...demanding.tenant, flags: { keep_sessions_on_password_reset: keeps } },
        },
      });
      try {
        const email = 'mfa-0@example.test';
        const user = await relaxed.users.findInConnection({ name: 'users' }, email);
        await relaxed.users.update(user?.id ?? '', { email_verified: true });
        const browser = createAgent(relaxed);
        await logIn(browser, relaxed, webRequest(), { email, password: USER.password });
        await resetPassword(relaxed, email, NEW);
        const silent = responseOf(await authorize(browser, webRequest({ prompt: 'none' })));
        expect('code' in silent).to.equal(keeps);
        const manage = { audience: `${relaxed.issuer}mfa/`, scope: 'openid enroll' };
        const token = responseOf(await authorize(browser, webRequest({ ...manage, prompt: 'none' })));
        expect(token.error).to.equal('login_required');
        const stepUp = { acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor' };
        for (const params of [manage, stepUp]) {
          const page = await follow(browser, await authorize(browser, webRequest(params)), relaxed.url);
          expect(readForm(page, 'password').action).to.match(/^\/u\/[\w-]+\/login$/);
        }
      } finally {
        await relaxed.stop();
      }
    });
  });
}
