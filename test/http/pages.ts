// Every page in the states that people meet it in, with models as the features make them.
import { AuthError } from '../../src/http/errors.ts';
import type { DatabaseOptions } from '../../src/tenant/schema.ts';
import { databaseOptionsSchema } from '../../src/tenant/schema.ts';
import { judgeStrength } from '../../src/users/password-policy.ts';
import type { SitePage } from './site.ts';

const client = { name: 'Harbour Books' };
/** A picture without an address of its own. */
export const LOGO =
  'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"%3E%3Crect width="10" height="10" fill="%23d9480f"/%3E%3C/svg%3E';
const user = 'ada.lovelace@example.test';

const options: DatabaseOptions = databaseOptionsSchema.parse({ passwordPolicy: 'excellent' });
const unjudged = judgeStrength(options, '').rules.map(({ verified: _verified, ...rule }) => rule);
const judged = judgeStrength(options, 'aaa1').rules;

const login = { client, requiresUsername: false, values: { username: '' }, signupUrl: '/signup' };
const signup = {
  client,
  values: { email: '', username: '' },
  rules: unjudged,
  faults: {},
  loginUrl: '/login',
};
const code = {
  client,
  channel: 'email',
  address: user,
  digits: 6,
  minutes: 3,
  resendUrl: '/resend',
  resendSeconds: 30,
  backUrl: '/back',
};
const tryLogin = { clientId: 'gatehouse-try-login', callback: 'https://localhost/dev/callback' };

export const PAGES: Record<string, SitePage | AuthError> = {
  '/login': { template: 'login/login', model: login },
  '/login-hinted': {
    template: 'login/login',
    model: { ...login, values: { username: user }, forgotPasswordUrl: '/forgot' },
  },
  '/login-choices': {
    template: 'login/login',
    model: {
      ...login,
      requiresUsername: true,
      forgotPasswordUrl: '/forgot',
      connections: [
        { text: 'login.with', name: 'Example Works', url: '/with/works' },
        { text: 'login.smsCode', url: '/with/sms' },
      ],
    },
  },
  '/login-wrong': {
    template: 'login/login',
    model: { ...login, values: { username: user }, alert: 'login.wrong' },
    status: 400,
  },
  '/signup': { template: 'login/signup', model: signup },
  '/signup-username': {
    template: 'login/signup',
    model: { ...signup, username: { min: 1, max: 15 } },
  },
  '/signup-failed': {
    template: 'login/signup',
    model: {
      ...signup,
      values: { email: 'ada@', username: 'ada lovelace' },
      username: { min: 1, max: 15 },
      rules: judged,
      alert: 'signup.failed',
      faults: { email: 'signup.email', username: 'signup.username', password: 'signup.weak' },
    },
    status: 400,
  },
  '/signup-refused': {
    template: 'login/signup',
    model: { ...signup, values: { email: user, username: '' }, alert: 'signup.refused' },
    status: 400,
  },
  '/consent': {
    template: 'login/consent',
    model: {
      client: { ...client, logo: LOGO },
      user,
      scopes: [
        { key: 'scope.openid' },
        { key: 'scope.profile' },
        { key: 'scope.offline_access' },
        { text: 'Read your orders', api: 'Orders API' },
        { text: 'write:orders', api: 'Orders API' },
      ],
    },
  },
  '/passwordless-email': {
    template: 'passwordless/address',
    model: {
      client,
      channel: 'email',
      address: '',
      others: [{ text: 'login.smsCode', url: '/sms' }],
      loginUrl: '/login',
    },
  },
  '/passwordless-sms': {
    template: 'passwordless/address',
    model: { client, channel: 'sms', address: '12', others: [], alert: 'passwordless.sms.invalid' },
    status: 400,
  },
  '/passwordless-code': { template: 'passwordless/code', model: code },
  '/passwordless-code-wrong': {
    template: 'passwordless/code',
    model: { ...code, resendSeconds: 0, alert: 'passwordless.wrong' },
    status: 400,
  },
  '/passwordless-continue': {
    template: 'passwordless/continue',
    model: { client, address: user, fields: [['state', 's']] },
  },
  '/forgot-password': { template: 'account/forgot', model: { client, email: '', loginUrl: '/login' } },
  '/forgot-password-sent': {
    template: 'account/sent',
    model: { client, email: user, action: '/forgot', loginUrl: '/login' },
  },
  '/reset-password': {
    template: 'account/reset',
    model: { email: user, ticket: 't', rules: unjudged, faults: {} },
  },
  '/reset-password-failed': {
    template: 'account/reset',
    model: {
      email: user,
      ticket: 't',
      rules: judged,
      alert: 'reset.failed',
      faults: { password: 'signup.weak', repeat: 'reset.differ' },
    },
    status: 400,
  },
  '/reset-password-done': { template: 'account/done', model: { done: 'reset.done' } },
  '/email-verification': { template: 'account/verify', model: { email: user, ticket: 't' } },
  '/email-verification-done': { template: 'account/done', model: { done: 'verify.done' } },
  '/error-link': new AuthError(400, 'invalid_request', 'This link has expired or was already used.', {
    extra: { reason: 'link_expired' },
  }),
  '/account': { template: 'login/account', model: { client, user, loginUrl: '/login' } },
  '/signed-out': { template: 'signed-out', model: {} },
  '/error': new AuthError(400, 'invalid_request', 'The redirect_uri is not registered for this application.'),
  '/error-server': new AuthError(500, 'server_error', 'An unexpected error occurred.'),
  '/home': {
    template: 'development/home',
    model: {
      baseUrl: 'https://localhost:3000',
      version: '0.1.0',
      inboxUrl: '/dev/inbox',
      clients: [
        { name: 'Example SPA', client_id: 'example-spa', app_type: 'spa' },
        { name: 'Example web app', client_id: 'w3bQ1nqYk2v0JZ8rT5uXcD7eFgH9aBsL', app_type: 'regular_web' },
        { name: 'Example machine', client_id: 'example-m2m', app_type: 'non_interactive' },
      ],
      connections: [{ name: 'Username-Password-Authentication', strategy: 'auth0' }],
      tryLogin,
    },
  },
  '/tokens': { template: 'development/tokens', model: { tryLogin } },
};
