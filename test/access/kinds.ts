// Every kind of login, session and token there is, and how somebody gets one.
import { expect } from 'chai';
import { codeOf } from '../factors/tenant.ts';
import { managementToken } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { API, follow, responseOf, submitLogin } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { softwareKey } from '../support/software-key.ts';
import type { Level } from './entrances.ts';
import {
  APIS,
  type Api,
  accessToken,
  byGrant,
  byPage,
  bySession,
  CIBA,
  DEVICE,
  EXCHANGE,
  each,
  type Held,
  handed,
  LEGACY,
  MFA,
  OPEN_API,
  OTP,
  PASSKEY,
  PASSWORD,
  REALM,
  SECRET,
  type World,
} from './world.ts';

const afterwards = (change: (at: World, id: string, held: Held) => Promise<unknown>) => async (at: World) => {
  const email = await at.someone();
  const held = await byPage(at, email);
  const [user] = await at.server.users.withEmail(email);
  await change(at, user?.id ?? '', held);
  return held;
};

export interface Kind {
  has: Level;
  /** Entrances that treat it otherwise than its level says, and why. */
  but?: Record<string, 'allowed' | 'refused'>;
  /** The grants by which tokens of this kind are got. */
  grants: readonly string[];
  make(at: World): Promise<Held>;
}

export const KINDS: Record<string, Kind> = {
  // First, because it makes the clock go on.
  'a login at the page, eleven minutes ago': {
    has: 'attended',
    grants: ['authorization_code'],
    make: async (at) => {
      const email = await at.someone();
      const { browser } = await at.logIn(email);
      // Its session for the account page, too.
      await follow(browser, await browser.get('/account'), at.server.url);
      at.server.tick(11 * 60_000);
      return { email, browser, tokens: await bySession(at, browser) };
    },
  },
  'a login at the page': {
    has: 'fresh',
    grants: ['authorization_code', 'implicit'],
    make: async (at) => byPage(at, await at.someone()),
  },
  'a refresh token of a login at the page': {
    has: 'fresh',
    grants: ['refresh_token'],
    make: async (at) => {
      const email = await at.someone();
      const tokens = await each(async (api) => {
        const { page } = await at.logIn(email, api, { scope: `openid offline_access ${APIS[api]}` });
        const { refresh_token, access_token } = await at.redeem(page);
        // The MFA API gives none.
        if (refresh_token === undefined) return access_token as string;
        return accessToken(await at.ask({ grant_type: 'refresh_token', refresh_token }));
      });
      return { email, tokens };
    },
  },
  'the password at the token endpoint': {
    has: 'fresh',
    grants: ['password', REALM],
    make: async (at) => {
      const email = await at.someone();
      const login = { username: email, password: PASSWORD };
      return { email, tokens: await byGrant(at, { ...login, grant_type: REALM, realm: 'users' }) };
    },
  },
  'a session that was handed over': {
    has: 'token',
    grants: ['refresh_token'],
    make: async (at) => {
      const browser = createAgent(at.server);
      const email = await at.someone();
      expect(
        responseOf(await at.open(browser, { session_transfer_token: await handed(at, email) })),
      ).to.have.property('code');
      return { email, browser, tokens: await bySession(at, browser) };
    },
  },
  'a device code': {
    has: 'token',
    grants: [DEVICE],
    make: async (at) => {
      const email = await at.someone();
      const tokens = await each(async (api) => {
        const asked = {
          client_id: 'site',
          audience: `${at.server.issuer}${api}`,
          scope: `openid ${APIS[api]}`,
        };
        const begun = await createAgent(at.server).request('/oauth/device/code', {
          form: { ...asked, ...SECRET },
        });
        const { user_code, device_code } = begun.json();
        const user = createAgent(at.server);
        const page = await user.get(`/activate?${new URLSearchParams({ user_code })}`);
        const { action, fields } = readForm(page, 'user_code');
        const answer = await user.request(action, { form: { ...fields, decision: 'accept' } });
        await submitLogin(user, at.server, await follow(user, answer, at.server.url), {
          email,
          password: PASSWORD,
        });
        return accessToken(await at.ask({ grant_type: DEVICE, device_code }));
      });
      return { email, tokens };
    },
  },
  'an exchanged token': {
    has: 'token',
    grants: [EXCHANGE],
    make: async (at) => {
      const email = await at.someone();
      const { tokens = {} } = await byPage(at, email);
      return {
        email,
        tokens: await each(async (api) =>
          accessToken(
            await at.ask({
              grant_type: EXCHANGE,
              subject_token: tokens[api],
              subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
            }),
          ),
        ),
      };
    },
  },
  'a token of the application itself': {
    has: 'nothing',
    grants: ['client_credentials'],
    make: async ({ server }) => {
      const machine = await managementToken(server, 'read:users update:users');
      return { tokens: { 'me/': machine, 'mfa/': machine } };
    },
  },
  'a login whose session has ended': {
    has: 'nothing',
    grants: [],
    make: afterwards(async (_at, _id, { browser }) => browser?.get('/v2/logout')),
  },
  'a login from before a new password': {
    has: 'nothing',
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('PATCH', `/users/${encodeURIComponent(id)}`, {
        password: 'Another-Horse-2',
        connection: 'users',
      }),
    ),
  },
  'a login of a user who is blocked': {
    has: 'nothing',
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('PATCH', `/users/${encodeURIComponent(id)}`, { blocked: true }),
    ),
  },
  'a login with the password alone, of a user who has a second factor by now': {
    has: 'nothing',
    // What applications get by a login is for the tenant's policy to protect by a factor.
    but: { 'POST /activate': 'allowed', 'POST /approval': 'allowed', 'POST /u/:uid/consent': 'allowed' },
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('POST', `/users/${encodeURIComponent(id)}/authentication-methods`, {
        type: 'totp',
        totp_secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
        name: 'An app',
      }),
    ),
  },
  'the implicit grant': {
    has: 'fresh',
    grants: ['implicit'],
    make: async (at) => {
      const email = await at.someone();
      const { browser } = await at.logIn(email);
      return { email, tokens: await bySession(at, browser, 'token') };
    },
  },
  'a login ticket of the cross-origin login': {
    has: 'fresh',
    grants: [],
    make: async (at) => {
      const email = await at.someone();
      const browser = createAgent(at.server);
      const answer = await browser.request('/co/authenticate', {
        json: {
          client_id: 'site',
          username: email,
          password: PASSWORD,
          realm: 'users',
          credential_type: REALM,
        },
        headers: { origin: 'https://site.example.test' },
      });
      expect(answer.status, answer.text).to.equal(200);
      const { login_ticket } = answer.json();
      expect(responseOf(await at.open(browser, { login_ticket, realm: 'users' }))).to.have.property('code');
      return { email, browser, tokens: await bySession(at, browser) };
    },
  },
  'a passkey at the token endpoint': {
    has: 'fresh',
    grants: [PASSKEY],
    make: async (at) => {
      const { server, ask } = at;
      const email = `key-${at.next()}@example.test`;
      const key = softwareKey();
      let count = 0;
      const by = async (path: string, more: object, extra: Record<string, string>) => {
        const json = { client_id: 'site', ...SECRET, realm: 'keys', ...more };
        const begun = await createAgent(server).request(path, { json });
        expect(begun.status, begun.text).to.equal(200);
        const { auth_session, authn_params_public_key: asked } = begun.json();
        const said = { count: ++count };
        const origin = 'https://site.example.test';
        const answer = path.endsWith('register')
          ? key.create(asked, origin, said)
          : key.get(asked, origin, said);
        const authn_response = JSON.stringify(answer);
        return accessToken(await ask({ grant_type: PASSKEY, auth_session, authn_response, ...extra }));
      };
      await by('/passkey/register', { user_profile: { email } }, { scope: 'openid' });
      await at.consent((await server.users.withEmail(email))[0]?.id ?? '');
      return { email, tokens: await each(async (api) => by('/passkey/challenge', {}, at.wanted(api))) };
    },
  },
  'a code by e-mail at the token endpoint': {
    has: 'fresh',
    grants: [OTP],
    make: async (at) => {
      const email = `code-${at.next()}@example.test`;
      const made = await at.server.users.create({
        identity: { connection: 'email', provider: 'email', addresses: { email }, unique: ['email'] },
        profile: { email_verified: true },
      });
      await at.consent('user' in made ? made.user.id : '');
      let sent = 0;
      const tokens = await each(async (api) => {
        await createAgent(at.server).request('/passwordless/start', {
          json: { client_id: 'site', ...SECRET, connection: 'email', email, send: 'code' },
        });
        const { code: otp } = await nextMessageTo(at.server, email, ++sent, 'code');
        return accessToken(
          await at.ask({ grant_type: OTP, realm: 'email', username: email, otp, ...at.wanted(api) }),
        );
      });
      return { email, tokens };
    },
  },
  'an authenticator app at the token endpoint': {
    has: 'fresh',
    grants: [MFA('otp')],
    make: async (at) => {
      const email = await at.someone({ factor: { type: 'totp', name: 'An app', totp_secret: TOTP } });
      let step = -2;
      return {
        email,
        tokens: await byMfa(at, email, async (mfa_token) => {
          step += 1;
          const otp = codeOf(TOTP, Date.now() + step * 30_000);
          return { grant_type: MFA('otp'), mfa_token, otp };
        }),
      };
    },
  },
  'a code by SMS at the token endpoint': {
    has: 'fresh',
    grants: [MFA('oob')],
    make: async (at) => {
      const phone_number = `+49151234${50_000 + at.next()}`;
      const email = await at.someone({ factor: { type: 'phone', name: 'A phone', phone_number } });
      let sent = 0;
      return {
        email,
        tokens: await byMfa(at, email, async (mfa_token) => {
          const begun = await createAgent(at.server).request('/mfa/challenge', {
            json: { client_id: 'site', ...SECRET, mfa_token, challenge_type: 'oob' },
          });
          const { oob_code } = begun.json();
          const { code: binding_code = '' } = await nextMessageTo(at.server, phone_number, ++sent, 'code');
          return { grant_type: MFA('oob'), mfa_token, oob_code, binding_code };
        }),
      };
    },
  },
  'a recovery code at the token endpoint': {
    has: 'fresh',
    grants: [MFA('recovery-code')],
    make: async (at) => {
      const email = await at.someone({ factor: { type: 'totp', name: 'An app', totp_secret: TOTP } });
      const [user] = await at.server.users.withEmail(email);
      const path = `/users/${encodeURIComponent(user?.id ?? '')}/recovery-code-regeneration`;
      let { recovery_code } = (await at.admin('POST', path, {})).json();
      const tokens = await byMfa(
        at,
        email,
        async (mfa_token) => ({ grant_type: MFA('recovery-code'), mfa_token, recovery_code }),
        (answer) => {
          ({ recovery_code } = answer);
        },
      );
      return { email, tokens };
    },
  },
  'a CIBA request that was approved at the page': {
    has: 'token',
    grants: [CIBA],
    make: async (at) => {
      const email = await at.someone();
      const [user] = await at.server.users.withEmail(email);
      await at.server.users.update(user?.id ?? '', { email_verified: true });
      let sent = 0;
      const tokens = await each(async (api) => {
        const { begun, link } = await at.askForApproval(user?.id ?? '', at.wanted(api), ++sent);
        const { auth_req_id } = begun.json();
        const browser = createAgent(at.server);
        const login = await follow(browser, await browser.get(link), at.server.url);
        const page = await submitLogin(browser, at.server, login, { email, password: PASSWORD });
        const { action, fields } = readForm(page, 'ticket');
        await browser.request(action, { form: { ...fields, decision: 'accept' } });
        return accessToken(await at.ask({ grant_type: CIBA, auth_req_id }));
      });
      return { email, tokens };
    },
  },
  'a token of another system that an action took': {
    has: 'token',
    grants: [EXCHANGE],
    make: async (at) => {
      await at.takeLegacyTokens();
      const email = await at.someone();
      const [user] = await at.server.users.withEmail(email);
      const given = { grant_type: EXCHANGE, subject_token_type: LEGACY, subject_token: user?.id ?? '' };
      return { email, tokens: await byGrant(at, given) };
    },
  },
  "a token of a provider's SDK in an app": {
    has: 'attended',
    grants: [EXCHANGE],
    make: async (at) => {
      const email = `native-${at.next()}@example.test`;
      const sign = () => at.provider.sign({ sub: email, email, email_verified: true });
      const given = async () => ({
        grant_type: EXCHANGE,
        subject_token_type: 'http://auth0.com/oauth/token-type/google-id-token',
        subject_token: await sign(),
      });
      accessToken(await at.ask({ ...(await given()), scope: 'openid' }));
      await at.consent((await at.server.users.withEmail(email))[0]?.id ?? '');
      return { email, tokens: await byGrant(at, await given()) };
    },
  },
  'a login at a provider that does not say when': {
    has: 'attended',
    grants: [],
    make: (at) => atProvider(at, {}),
  },
  'a login at a provider that did not ask again, as it says': {
    has: 'attended',
    grants: [],
    make: (at) => atProvider(at, { auth_time: Math.floor(Date.now() / 1000) - 3_600 }),
  },
  'a login at a provider that asked in this moment, as it says': {
    has: 'fresh',
    grants: [],
    make: (at) => atProvider(at, { auth_time: Math.floor(Date.now() / 1000) }),
  },
  'an anonymous session': {
    has: 'nothing',
    grants: [],
    make: async ({ server }) => {
      const begun = await createAgent(server).request('/anonymous/token', {
        json: { client_id: 'site', ...SECRET, audience: OPEN_API },
      });
      expect(begun.status, begun.text).to.equal(200);
      const { access_token } = begun.json();
      return { tokens: everywhere(access_token) };
    },
  },
  // By a client grant of the tenant and the user's consent, at an API of the account.
  'a login at a third-party application': {
    has: 'fresh',
    but: {
      // It could not confirm what it begins, and what protects an account is not for others to remove.
      'POST /mfa/associate': 'refused',
      'DELETE /mfa/authenticators/:id': 'refused',
      // Who can log in to an account is not for others to change.
      'POST /users/:id/identities': 'refused',
      'DELETE /users/:id/identities/:provider/:identity_id': 'refused',
      'DELETE /users/:id': 'refused',
      'POST /device-credentials': 'refused',
    },
    grants: ['authorization_code'],
    make: async (at) => {
      const email = await at.someone();
      await at.consent((await at.server.users.withEmail(email))[0]?.id ?? '', 'stranger');
      const { browser } = await at.logIn(email);
      return { email, tokens: await bySession(at, browser, 'code', 'stranger') };
    },
  },
  'a token for another API': {
    has: 'nothing',
    grants: ['password'],
    make: async (at) => ({ tokens: everywhere((await plainLogin(at)).access_token) }),
  },
  'an ID token': {
    has: 'nothing',
    grants: ['password'],
    make: async (at) => ({ tokens: everywhere((await plainLogin(at)).id_token) }),
  },
  'a refresh token': {
    has: 'nothing',
    grants: ['password'],
    make: async (at) => ({ tokens: everywhere((await plainLogin(at)).refresh_token) }),
  },
  'the mfa_token of a password': {
    has: 'nothing',
    // The first factor of a login that needs one.
    but: { 'POST /mfa/associate': 'allowed' },
    grants: ['password'],
    make: async (at) => {
      const email = await at.someone({ needsFactor: true });
      const answer = await at.ask({ grant_type: 'password', username: email, password: PASSWORD });
      expect(answer.status, answer.text).to.equal(403);
      return { email, tokens: everywhere(answer.json().mfa_token) };
    },
  },
};

const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

/** The same token at every API. */
function everywhere(token: string | undefined): Record<Api, string> {
  expect(token).to.be.a('string');
  return Object.fromEntries(Object.keys(APIS).map((api) => [api, token])) as Record<Api, string>;
}

/** The tokens of a login with a password for an API that is not ours. */
async function plainLogin(at: World): Promise<Record<string, string>> {
  const login = { grant_type: 'password', username: await at.someone(), password: PASSWORD };
  const answer = await at.ask({ ...login, audience: API, scope: 'openid offline_access read:things' });
  expect(answer.status, answer.text).to.equal(200);
  return answer.json();
}

/** Tokens by the password and a second factor. @param prove returns the second request. */
function byMfa(
  at: World,
  username: string,
  prove: (mfaToken: string) => Promise<Record<string, string>>,
  after: (answer: Record<string, string>) => void = () => undefined,
) {
  return each(async (api) => {
    const login = { grant_type: 'password', username, password: PASSWORD };
    const asked = await at.ask({ ...login, ...at.wanted(api) });
    expect(asked.status, asked.text).to.equal(403);
    const answer = await at.ask(await prove(asked.json().mfa_token));
    expect(answer.status, answer.text).to.equal(200);
    after(answer.json());
    return answer.json().access_token;
  });
}

/** A login at the page by an OpenID provider. */
async function atProvider(at: World, claims: object): Promise<Held> {
  const email = `upstream-${at.next()}@example.test`;
  const userInfo = { sub: email, email, email_verified: true };
  Object.assign(at.provider, { userInfo, claims: { ...userInfo, ...claims } });
  const browser = createAgent(at.server);
  const away = await at.open(browser, { connection: 'acme' });
  const back = await fetch(away.location, { redirect: 'manual' });
  const page = await follow(browser, await browser.get(back.headers.get('location') ?? ''), at.server.url);
  expect(responseOf(page), page.text).to.have.property('code');
  await at.consent((await at.server.users.withEmail(email))[0]?.id ?? '');
  return { email, browser, tokens: await bySession(at, browser) };
}
