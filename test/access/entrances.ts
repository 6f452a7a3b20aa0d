// Every entrance that changes an account, what it needs, and how it is asked.
import { MFA_POLICY } from '../../src/records/users/authentication-classes.ts';
import { formOf } from '../account/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { CALLBACK, type Held, SECRET, type World } from './world.ts';

/**
 * What a login has: `nothing` that is accepted; a `token` that is good for applications, and for reading; the user was
 * there (`attended`); and has just given a proof (`fresh`).
 */
export const LEVELS = ['nothing', 'token', 'attended', 'fresh'] as const;
export type Level = (typeof LEVELS)[number];

/** The entrances of users, with what they need. */
export const ENTRANCES: Record<string, Level> = {
  // My Account API
  'POST /me/v1/authentication-methods': 'fresh',
  'POST /me/v1/authentication-methods/:id/verify': 'attended',
  'PATCH /me/v1/authentication-methods/:id': 'attended',
  'DELETE /me/v1/authentication-methods/:id': 'fresh',
  'POST /me/v1/connected-accounts/connect': 'attended',
  'POST /me/v1/connected-accounts/complete': 'attended',
  'DELETE /me/v1/connected-accounts/accounts/:id': 'attended',
  // MFA API
  'POST /mfa/associate': 'fresh',
  'DELETE /mfa/authenticators/:id': 'fresh',
  // account page
  'POST /account': 'attended',
  'POST /account/profile/email': 'fresh',
  'POST /account/profile/phone': 'fresh',
  'POST /account/profile/phone/code': 'fresh',
  'POST /account/security/password': 'fresh',
  'POST /account/security/rename': 'attended',
  'POST /account/security/remove': 'fresh',
  'POST /account/security/browsers': 'attended',
  'POST /account/security/recovery-code': 'fresh',
  'POST /account/security/passkey': 'fresh',
  'POST /account/security/add/:factor': 'fresh',
  'POST /account/security/add/:factor/resend': 'fresh',
  'POST /account/sessions': 'attended',
  'POST /account/sessions/others': 'attended',
  'POST /account/applications': 'attended',
  'POST /account/applications/unlink': 'fresh',
  'POST /account/applications/connected': 'attended',
  'POST /account/applications/link': 'fresh',
  'POST /account/confirm/send': 'attended',
  'POST /account/confirm': 'attended',
  'POST /account/data/copy': 'fresh',
  'POST /account/data/delete': 'fresh',
};

/** Entrances to the account that ask for no login of the session or token: with what they are opened instead. */
export const BY_OTHER_PROOF: Record<string, readonly string[]> = {
  'the waiting request’s own browser (a secret in a cookie), and the proof that the page asks for': [
    ...['organization', 'consent', 'account', 'login', 'signup', 'signup/code', 'signup/code/again'],
    ...['forgot-password', 'identifier', 'link', 'offer', 'passkey', 'mfa/:factor', 'mfa/:factor/resend'],
    ...['mfa/recovery-code-saved', 'passwordless/:connection', 'passwordless/:connection/code'],
    ...['code/:connection/:channel', 'code/:connection/:channel/code'],
  ].map((step) => `POST /u/:uid/${step}`),
  'the same, by the CSRF token of a customized login page': [
    'POST /usernamepassword/login',
    'POST /usernamepassword/challenge',
    'POST /dbconnections/signup/challenge',
    'POST /dbconnections/change_password/challenge',
    'POST /passwordless/challenge',
  ],
  'a state or ticket of the browser that began': [
    'POST /continue',
    'POST /login/callback',
    'POST /account/applications/link/confirm',
    'POST /u/mfa-challenge/recovery-code-saved',
    'POST /u/mfa-challenge/:factor',
    'POST /u/mfa-challenge/:factor/resend',
    'POST /oidc/logout',
    'POST /oidc/logout/consent',
    'POST /logout',
    'POST /approval',
    'POST /activate',
    'POST /activate/confirm',
    'POST /dev/inbox',
  ],
  'a one-time link that was sent to the owner of the address, or that an administrator hands over': [
    'POST /u/reset-password',
    'POST /u/email-verification',
    'POST /u/unblock',
    'POST /u/mfa-enrollment/recovery-code-saved',
    'POST /u/mfa-enrollment/:factor',
    'POST /u/mfa-enrollment/:factor/resend',
    'POST /passwordless/verify_redirect',
    'POST /account/email',
  ],
  'any proof, because it is the page after an enrolment': ['POST /account/security/add/recovery-code-saved'],
  'the credentials of an application, an identity provider or a device': [
    'POST /authorize',
    'POST /oauth/par',
    'POST /oauth/token',
    'POST /oauth/revoke',
    'POST /oauth/introspect',
    'POST /oauth/device/code',
    'POST /oauth/global-token-revocation/connection/:connection',
    'POST /bc-authorize',
    'POST /oauth/bc-authorize',
    'POST /mfa/challenge',
    'POST /passwordless/start',
    'POST /passwordless/verify',
    'POST /otp/challenge',
    'POST /passkey/challenge',
    'POST /passkey/register',
    'POST /authenticator/devices',
    'POST /authenticator/push',
    'POST /authenticator/requests/:id',
    'POST /anonymous/token',
    'POST /anonymous/logout',
    'POST /samlp/:client_id',
    'POST /samlp/:client_id/logout',
    'POST /userinfo',
  ],
  'the credentials of the user, for a new login or account': [
    'POST /co/authenticate',
    'POST /dbconnections/signup',
    'POST /dbconnections/change_password',
  ],
  'nothing, because it changes no account: the language of the pages, and an application that registers itself':
    ['POST /u/language', 'POST /oidc/register'],
  'the registration token of an application, for its own record': [
    'PUT /oidc/register/:client_id',
    'DELETE /oidc/register/:client_id',
  ],
};

/** The calls of the Management API with a user's own token. */
export const OWN_CALLS: Record<string, Level> = {
  'GET /users/:id': 'token',
  'GET /users/:id/enrollments': 'token',
  'PATCH /users/:id': 'attended',
  'POST /users/:id/identities': 'fresh',
  'DELETE /users/:id/identities/:provider/:identity_id': 'fresh',
  'POST /device-credentials': 'attended',
  'DELETE /device-credentials/:credential_id': 'attended',
  // Last, because it ends the others.
  'DELETE /users/:id': 'fresh',
};

/** A valid body for each call with a token. */
const BODIES: Record<string, object | undefined> = {
  'POST /me/v1/authentication-methods': { type: 'totp' },
  'POST /me/v1/authentication-methods/:id/verify': { auth_session: 'x'.repeat(43), otp_code: '123456' },
  'PATCH /me/v1/authentication-methods/:id': { name: 'Mine' },
  'POST /me/v1/connected-accounts/connect': { connection: 'none', redirect_uri: CALLBACK, state: 's' },
  'POST /me/v1/connected-accounts/complete': { auth_session: 'x', connect_code: 'x', redirect_uri: CALLBACK },
  'POST /mfa/associate': { authenticator_types: ['otp'] },
};

const filled = (path: string) => path.replace(':factor', 'otp').replaceAll(/:\w+/g, 'totp%7Cnone');

export function call(server: TestServer, tokens: NonNullable<Held['tokens']>, key: string): Promise<Answer> {
  const [method = '', path = ''] = key.split(' ');
  const bearer = tokens[path.startsWith('/mfa/') ? 'mfa/' : 'me/'] ?? '';
  const json = BODIES[key];
  return createAgent(server).request(filled(path), {
    method,
    ...(json && { json }),
    headers: { authorization: `Bearer ${bearer}` },
  });
}

/** Calls the Management API with a user's token, for that user. */
export function ownCall(server: TestServer, bearer: string, key: string, id: string): Promise<Answer> {
  const [method = '', path = ''] = key.split(' ');
  const bodies: Record<string, object> = {
    'PATCH /users/:id': { user_metadata: { seen: true } },
    'POST /users/:id/identities': { link_with: 'x.y.z' },
  };
  const json = bodies[key] ?? (method === 'POST' ? {} : undefined);
  return createAgent(server).request(`/api/v2${filled(path.replace(':id', encodeURIComponent(id)))}`, {
    method,
    ...(json && { json }),
    headers: { authorization: `Bearer ${bearer}` },
  });
}

/** Sends a form of the account page, as its own page would. */
export async function sendForm(server: TestServer, browser: Agent, key: string): Promise<Answer> {
  const page = await follow(browser, await browser.get('/account/data'), server.url);
  const copy = '/account/data/copy';
  const form = page.text.includes(`action="${copy}"`) ? formOf(page, copy) : readForm(page, '_csrf').fields;
  const { _csrf = '', account = '' } = form;
  return browser.request(filled(key.split(' ')[1] ?? ''), { form: { _csrf, account } });
}

/** Pages on which a browser's session stands for its user, without a new login. */
export const SESSION_PAGES: Record<
  string,
  { needs: Level; open(at: World, browser: Agent, userId: string): Promise<Answer> }
> = {
  'POST /activate': {
    needs: 'attended',
    open: async ({ server }, browser) => {
      const asked = { client_id: 'site', ...SECRET, scope: 'openid' };
      const begun = await createAgent(server).request('/oauth/device/code', { form: asked });
      const { user_code } = begun.json();
      const page = await browser.get(`/activate?${new URLSearchParams({ user_code })}`);
      const { action, fields } = readForm(page, 'user_code');
      const answer = await browser.request(action, { form: { ...fields, decision: 'accept' } });
      return follow(browser, answer, server.url);
    },
  },
  'POST /approval': {
    needs: 'attended',
    open: async ({ server, askForApproval }, browser, userId) => {
      await server.users.update(userId, { email_verified: true });
      const { begun, link } = await askForApproval(userId, { scope: 'openid' }, 1);
      return begun.status === 200 ? follow(browser, await browser.get(link), server.url) : begun;
    },
  },
  'POST /u/:uid/consent': {
    needs: 'attended',
    open: ({ open }, browser) => open(browser, { client_id: 'stranger', scope: 'openid profile' }),
  },
  'POST /u/:uid/mfa/:factor': {
    needs: 'attended',
    open: ({ open }, browser) => open(browser, { acr_values: MFA_POLICY }),
  },
};
