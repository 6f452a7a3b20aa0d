// Every page in the states that users see it in, with models as the features make them.

import { nameField } from '../../src/features/connections/name-field.ts';
import { AuthError } from '../../src/http/errors.ts';
import { databaseOptionsSchema } from '../../src/records/connections.ts';
import type { DatabaseOptions } from '../../src/records/tenant.ts';
import { checkStrength } from '../../src/users/password-policy.ts';
import { consoleBrandingPages } from './console-branding-pages.ts';
import { consoleConnectionPages } from './console-connections-pages.ts';
import { consoleLogPages } from './console-log-pages.ts';
import { overviewModel } from './console-overview-pages.ts';
import { resourcesStates } from './console-resources-pages.ts';
import { consoleSecurityPages } from './console-security-pages.ts';
import { consoleUsersPages } from './console-users-pages.ts';
import type { SitePage } from './site.ts';

const client = { name: 'Harbour Books' };
/** A picture as a data URL. */
const LOGO =
  'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"%3E%3Crect width="10" height="10" fill="%23d9480f"/%3E%3C/svg%3E';
const user = 'ada.lovelace@example.test';

const options: DatabaseOptions = databaseOptionsSchema.parse({ passwordPolicy: 'excellent' });
const unjudged = checkStrength(options, '').rules.map(({ verified: _verified, ...rule }) => rule);
const judged = checkStrength(options, 'aaa1').rules;

const login = { client, names: nameField(['email']), values: { username: '' }, signupUrl: '/signup' };
const signup = {
  client,
  email: {},
  values: { email: '', phone: '', username: '' },
  rules: unjudged,
  faults: {},
  loginUrl: '/login',
};
/** A connection whose users log in at a provider. */
function provider(name: string, more: object = {}): object {
  const [initial = ''] = [...new Intl.Segmenter().segment(name)].map(({ segment }) => segment);
  return {
    text: 'login.with',
    url: `/with/${encodeURIComponent(name)}`,
    name,
    initial,
    ...more,
  };
}

/** A picture that stands for a QR code. */
const QR =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" shape-rendering="crispEdges"><path d="M1 1h3v3H1zM5 1h3v3H5zM1 5h3v3H1zM6 6h1v1H6z"/></svg>';
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

/** The data that pages of an account share. */
const own = { root: '/account', account: 'auth0|1', isFresh: true, person: { name: 'Ada Lovelace' }, client };
const ownProfile = {
  values: {
    name: 'Ada Lovelace',
    given_name: 'Ada',
    family_name: 'Lovelace',
    nickname: 'ada',
    picture: '',
    locale: 'de',
  },
  faults: {},
  editsProfile: true,
  editsEmail: true,
  email: { address: user, isVerified: true },
  phone: { number: '+442079460000', isVerified: false },
  locales: [
    { tag: 'en', name: 'English' },
    { tag: 'de', name: 'Deutsch' },
  ],
};
const then = { iso: '2026-11-22T12:00:00.000Z', text: '22 Nov 2026, 12:00 UTC' };

/** The data that pages of the console share. */
export const consoleModel = {
  root: '/console',
  csrf: 'token',
  section: '',
  title: 'Overview',
  isFresh: true,
  administrator: { userId: 'gatehouse|1', name: 'Ada Lovelace', email: user, role: 'owner' },
  nav: ['overview', 'applications', 'apis', 'connections', 'users', 'log', 'administrators'].map((name) => ({
    path: name === 'overview' ? '/console' : `/console/${name}`,
    text: `console.nav.${name}`,
    isCurrent: name === 'overview',
  })),
};

export const PAGES: Record<string, SitePage | AuthError> = {
  ...consoleConnectionPages(consoleModel),
  ...consoleBrandingPages(consoleModel),
  '/console': { template: 'console/overview-home', model: { ...consoleModel, ...overviewModel } },
  '/console-well': { template: 'console/overview-home', model: consoleModel },
  '/console-administrators': {
    template: 'console/administrators-list',
    model: {
      ...consoleModel,
      isFresh: false,
      roles: ['owner', 'editor', 'viewer', 'support'],
      isMailed: false,
      values: { email: '', role: 'viewer' },
      link: { url: 'https://login.example.test/console/link?ticket=abc', email: user, isInvitation: true },
      members: [
        {
          id: '1',
          name: 'Ada Lovelace',
          email: user,
          role: 'owner',
          isSelf: true,
          hasFactor: true,
          added: then,
          lastLogin: then,
        },
        {
          id: '2',
          name: 'Grace Hopper',
          email: 'grace@example.test',
          role: 'editor',
          hasFactor: false,
          added: then,
        },
      ],
      links: [
        { id: '3', email: 'joan@example.test', role: 'support', expires: then },
        { id: '4', email: 'grace@example.test', expires: then },
      ],
    },
  },
  '/console-password': {
    template: 'console/administrators-password',
    model: {
      ...consoleModel,
      rules: judged,
      faults: { password: 'signup.weak' },
      alert: 'No',
      factorsUrl: '/account/security',
    },
  },
  '/console-again': {
    template: 'console/again',
    model: {
      ...consoleModel,
      title: 'Send what you had filled in?',
      action: '/console/change/clients/example-spa',
      from: '/console/change/clients/example-spa',
      field: '_again',
      sent: [
        { name: 'name', text: 'Example SPA', length: 11 },
        { name: 'callbacks', text: 'https://app.example.test/callback', length: 33 },
        { name: 'client_secret', length: 43 },
      ],
    },
  },
  '/console-link': {
    template: 'console/administrators-link',
    model: {
      action: '/console/link',
      ticket: 'x',
      email: user,
      role: 'viewer',
      name: '',
      rules: unjudged,
      faults: {},
    },
  },
  ...consoleLogPages,
  ...consoleSecurityPages(consoleModel),
  ...resourcesStates(consoleModel),
  ...consoleUsersPages(consoleModel),
  '/login': { template: 'login/login', model: login },
  '/login-hinted': {
    template: 'login/login',
    model: { ...login, values: { username: user }, forgotPasswordUrl: '/forgot' },
  },
  '/login-choices': {
    template: 'login/login',
    model: {
      ...login,
      names: nameField(['email', 'username', 'phone_number']),
      forgotPasswordUrl: '/forgot',
      connections: [
        { text: 'login.with', name: 'Example Works', url: '/with/works', mark: 'marks/saml.svg' },
        { text: 'login.smsCode', url: '/with/sms', icon: 'phone' },
      ],
    },
  },
  '/identifier': {
    template: 'login/identifier',
    model: {
      client,
      names: nameField(['email', 'phone_number']),
      identifier: '',
      connections: [provider('Acme')],
      signupUrl: '/signup',
    },
  },
  '/identifier-unknown': {
    template: 'login/identifier',
    model: { client, names: nameField(['email', 'username']), identifier: user, alert: 'identifier.unknown' },
    status: 400,
  },
  '/login-password': {
    template: 'login/password',
    model: {
      ...login,
      values: { username: user },
      identifierUrl: '/identifier',
      forgotPasswordUrl: '/forgot',
    },
  },
  '/login-password-wrong': {
    template: 'login/password',
    model: {
      ...login,
      values: { username: `${'ada.'.repeat(12)}lovelace@example.test` },
      identifierUrl: '/identifier',
      connections: [{ text: 'login.emailCode', url: '/with/email', icon: 'email' }],
      alert: 'login.wrong',
    },
    status: 400,
  },
  '/login-wrong': {
    template: 'login/login',
    model: { ...login, values: { username: user }, alert: 'login.wrong' },
    status: 400,
  },
  '/signup': { template: 'login/signup', model: signup },
  '/signup-username': {
    template: 'login/signup',
    model: { ...signup, phone: { isOptional: true }, username: { min: 1, max: 15 } },
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
  '/consent-details': {
    template: 'login/consent',
    model: {
      client,
      user,
      scopes: [{ key: 'scope.openid' }, { text: 'Make payments', api: 'Payments API' }],
      details: [
        {
          type: 'payment_initiation',
          lines: [
            { name: 'actions', value: 'initiate, status' },
            { name: 'instructedAmount › currency', value: 'EUR' },
            { name: 'instructedAmount › amount', value: '123.50' },
            { name: 'creditor › name', value: 'دار النشر (Hafen) 7' },
            { name: 'creditor › account › iban', value: `DE02${'1234567890'.repeat(12)}` },
            { name: 'note', value: '' },
          ],
        },
        { type: `https://scheme.example.test/${'a-long-type-of-details/'.repeat(4)}`, lines: [] },
      ],
    },
  },
  '/consent-details-template': {
    template: 'login/consent',
    model: {
      client,
      user,
      scopes: [{ key: 'scope.openid' }],
      details: [
        {
          type: 'payment_initiation',
          lines: [],
          html: '<h2>Pay 123.50 EUR</h2><p>To Merchant A, DE02 1203 0000 0000 2020 51, <a href="/help">from your account</a>.</p><table><tr><th>Fee</th><td>0.20 EUR</td></tr></table>',
        },
        {
          type: 'account_information',
          lines: [],
          html: '<p>See the balance of your account.</p><ul><li>Current</li><li>Savings</li></ul>',
        },
        { type: 'tax_data', lines: [{ name: 'year', value: '2026' }] },
      ],
    },
  },
  '/passwordless-email': {
    template: 'passwordless/address',
    model: {
      client,
      channel: 'email',
      address: '',
      others: [
        { text: 'login.withPassword', url: '/login', icon: 'key' },
        { text: 'login.smsCode', url: '/sms', icon: 'phone' },
      ],
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
  '/mfa-choose': {
    template: 'mfa/choose',
    model: {
      client,
      factors: [
        { type: 'otp', url: '/otp' },
        { type: 'phone', url: '/sms', name: 'XXXXXXXX1234' },
        { type: 'email', url: '/email' },
        { type: 'push-notification', url: '/push' },
        { type: 'recovery-code', url: '/recovery' },
      ],
    },
  },
  '/mfa-choose-enroll': {
    template: 'mfa/choose',
    model: { client, enrolling: true, factors: [{ type: 'otp', url: '/otp' }] },
  },
  '/mfa-enroll-otp': {
    template: 'mfa/enroll-otp',
    model: { client, qr: QR, secret: 'HJ6XM2DNHJ6XM2DNHJ6XM2DNHJ6XM2DN', othersUrl: '/others' },
  },
  '/mfa-enroll-sms': {
    template: 'mfa/enroll-address',
    model: {
      client,
      channel: 'sms',
      address: '',
      country: 'DE',
      countries: [
        { code: 'DE', name: 'Germany', calling: '49' },
        { code: 'US', name: 'United States', calling: '1' },
      ],
      othersUrl: '/others',
    },
  },
  '/mfa-enroll-email': {
    template: 'mfa/enroll-address',
    model: { client, channel: 'email', address: user, othersUrl: '/others' },
  },
  '/mfa-enroll-push': {
    template: 'mfa/enroll-push',
    model: {
      client,
      qr: QR,
      barcodeUri: 'otpauth://totp/Gatehouse:ada?enrollment_tx_id=abc&base_url=https://localhost',
      authenticatorUrl: '/authenticator',
      othersUrl: '/others',
    },
  },
  '/mfa-code-otp': {
    template: 'mfa/code',
    model: { client, channel: 'otp', remember: true, othersUrl: '/others' },
  },
  '/mfa-code-sms': {
    template: 'mfa/code',
    model: {
      client,
      channel: 'sms',
      address: 'XXXXXXXX1234',
      alert: 'mfa.wrong',
      remember: true,
      resendUrl: '/resend',
      resendSeconds: 30,
      othersUrl: '/others',
    },
    status: 400,
  },
  '/mfa-push': {
    template: 'mfa/push',
    model: {
      client,
      name: 'Ada’s phone',
      number: '47',
      remember: true,
      resendUrl: '/resend',
      resendSeconds: 30,
      othersUrl: '/others',
    },
  },
  '/login-passkey': {
    template: 'login/login',
    model: {
      ...login,
      forgotPasswordUrl: '/forgot',
      passkey: { action: '/passkey', options: '{}', session: 's', autofill: true, button: true },
    },
  },
  '/own-profile': {
    template: 'own/profile',
    model: { ...own, section: '', ...ownProfile, said: 'own.said.saved' },
  },
  '/own-phone': {
    template: 'own/profile',
    model: { ...own, section: '', ...ownProfile, editsPhone: true },
  },
  '/own-phone-code': {
    template: 'own/profile',
    model: {
      ...own,
      section: '',
      ...ownProfile,
      phoneAsked: '+442079460001',
      alert: 'own.profile.failed',
      faults: { code: 'own.phone.wrong' },
    },
    status: 400,
  },
  '/own-failed': {
    template: 'own/profile',
    model: {
      ...own,
      section: '',
      ...ownProfile,
      isFresh: false,
      alert: 'own.profile.failed',
      faults: { picture: 'own.profile.noAddress', email: 'signup.email' },
    },
    status: 400,
  },
  '/own-elsewhere': {
    template: 'own/profile',
    model: {
      ...own,
      section: '',
      ...ownProfile,
      editsProfile: false,
      editsEmail: false,
      provider: 'Example Works',
    },
  },
  '/own-email': {
    template: 'own/email',
    model: { action: '/account/email', step: 'allow', email: 'ada.king@example.test', from: user },
  },
  '/own-security': {
    template: 'own/security',
    model: {
      ...own,
      section: '/security',
      editsPassword: true,
      takesPasskeys: true,
      passkeys: [
        {
          id: 'passkey|1',
          type: 'passkey',
          name: 'iCloud Keychain',
          mayRename: true,
          added: then,
          used: then,
        },
      ],
      factors: [
        { id: 'totp|1', type: 'totp', added: then },
        { id: 'sms|1', type: 'phone', name: '+44 20 7946 0000', added: then },
      ],
      recovery: true,
      addFactorUrl: '/account/security/add',
    },
  },
  '/own-recovery': {
    template: 'own/security',
    model: {
      ...own,
      section: '/security',
      passkeys: [],
      factors: [],
      recoveryCode: 'MZCRK3YX5V3AKNNYY6JEBQCL',
    },
  },
  '/own-passkey': {
    template: 'own/passkey',
    model: { ...own, section: '/security', action: '/account/security/passkey', options: '{}', session: 's' },
  },
  '/own-sessions': {
    template: 'own/sessions',
    model: {
      ...own,
      section: '/sessions',
      sessions: [
        {
          id: 'a',
          isHere: true,
          agent: { browser: 'Firefox', system: 'Linux' },
          address: '192.0.2.1',
          used: then,
          applications: ['Harbour Books'],
        },
        { id: 'b', isHere: false, agent: {}, used: then, applications: [] },
      ],
    },
  },
  '/own-applications': {
    template: 'own/applications',
    model: {
      ...own,
      section: '/applications',
      isFresh: false,
      applications: [
        {
          id: 'x',
          name: 'Harbour Books',
          scopes: 'openid, profile, read:orders',
          staysLoggedIn: true,
          used: then,
        },
      ],
      identities: [
        { id: 'users|1', name: 'users', address: user, isFirst: true },
        { id: 'works|1', name: 'Example Works', address: user, isFirst: false },
      ],
      mayLink: true,
    },
  },
  '/own-link': {
    template: 'own/link',
    model: {
      ...own,
      action: '/account/applications/link/confirm',
      ticket: 'ticket',
      stays: { name: user, way: 'users' },
      goes: { name: 'grace@example.test', way: 'Example Works' },
    },
  },
  '/own-confirm': {
    template: 'own/confirm',
    model: {
      ...own,
      action: '/account/confirm/send',
      to: '/security',
      provider: 'Example Works',
      email: user,
    },
  },
  '/own-confirm-sent': {
    template: 'own/confirm',
    model: {
      ...own,
      action: '/account/confirm',
      to: '/security',
      email: user,
      isSent: true,
      alert: 'own.confirm.wrong',
    },
  },
  '/own-confirm-none': {
    template: 'own/confirm',
    model: { ...own, action: '/account/confirm/send', to: '', provider: 'Example Works' },
  },
  '/own-data': {
    template: 'own/data',
    model: {
      ...own,
      section: '/data',
      isFresh: false,
      allowsDeletion: true,
      confirm: user,
      alert: 'own.delete.differs',
    },
    status: 400,
  },
  '/passkey-offer': { template: 'login/passkey', model: { client, options: '{}', session: 's' } },
  '/passkey-local': {
    template: 'login/passkey',
    model: { client, options: '{}', session: 's', isLocal: true },
  },
  '/mfa-webauthn': {
    template: 'mfa/webauthn',
    model: { client, kind: 'webauthn-roaming', options: '{}', remember: true, othersUrl: '/others' },
  },
  '/mfa-webauthn-platform': {
    template: 'mfa/webauthn',
    model: { client, kind: 'webauthn-platform', options: '{}', alert: 'mfa.webauthn.wrong' },
    status: 400,
  },
  '/mfa-enroll-webauthn': {
    template: 'mfa/enroll-webauthn',
    model: { client, kind: 'webauthn-roaming', options: '{}', othersUrl: '/others' },
  },
  '/mfa-recovery': { template: 'mfa/recovery', model: { client, othersUrl: '/others' } },
  '/mfa-recovery-code': {
    template: 'mfa/recovery-code',
    model: { client, recoveryCode: 'MZCR-K3YX-5V3A-KNNY-Y6JE-BQCL' },
  },
  '/authenticator': { template: 'authenticator', model: { origin: 'https://localhost' } },
  '/organization-name': { template: 'login/organization-name', model: { client, name: '', takesName: true } },
  '/organization-email': {
    template: 'login/organization-name',
    model: { client, name: '', takesName: false, takesEmail: true },
  },
  '/organization-unknown': {
    template: 'login/organization-name',
    model: {
      client,
      name: 'ada@nobody.example',
      takesName: true,
      takesEmail: true,
      alert: 'organization.unknownEmail',
    },
  },
  '/connections': {
    template: 'login/connections',
    model: {
      client,
      connections: [
        provider('Acme', { logo: LOGO }),
        provider('GitHub', { mark: 'marks/github.svg' }),
        provider('Vereinigte Hafenwerke und Donaudampfschifffahrtsgesellschaft Nord-Süd mbH'),
      ],
    },
  },
  '/connections-many': {
    template: 'login/login',
    model: {
      ...login,
      connections: [
        ...['Acme', 'Borealis', 'Coral', 'دار النشر', 'Ember'].map((name) => provider(name)),
        { text: 'login.emailCode', url: '/with/email', icon: 'email' },
        provider('Foxglove', { mark: 'marks/oidc.svg' }),
        provider('👩‍🚀 Space'),
      ],
    },
  },
  '/organization': {
    template: 'login/organization',
    model: {
      client,
      organizations: [
        { id: 'org_1', name: 'Acme' },
        { id: 'org_2', name: 'Harbour Works' },
      ],
    },
  },
  '/forgot-password': {
    template: 'account/forgot',
    model: { client, names: nameField(['email']), email: '', loginUrl: '/login' },
  },
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
  '/unblock': { template: 'account/unblock', model: { ticket: 't' } },
  '/unblock-done': { template: 'account/done', model: { done: 'unblock.done' } },
  '/email-verification': {
    template: 'account/verify',
    model: { email: user, ticket: 't', isUnproved: true },
  },
  '/account-discarded': { template: 'account/done', model: { done: 'verify.discarded' } },
  '/email-verification-done': { template: 'account/done', model: { done: 'verify.done' } },
  '/error-link': new AuthError(400, 'invalid_request', 'This link has expired or was already used.', {
    extra: { reason: 'link_expired' },
  }),
  '/link': {
    template: 'login/link',
    model: { client, action: '/link', email: user, connection: 'Passwords', alert: 'link.other' },
  },
  '/link-passwords': {
    template: 'login/link',
    model: {
      client,
      action: '/link',
      email: `${'ada.'.repeat(14)}lovelace@example.test`,
      connection: 'Acme',
    },
  },
  '/account': { template: 'login/account', model: { client, user, loginUrl: '/login' } },
  '/device': { template: 'device/code', model: { typed: '', shape: 'XXXX-XXXX', isDigits: false } },
  '/device-wrong': {
    template: 'device/code',
    model: { typed: 'BCDF-GHJ', shape: 'XXXX-XXXX', isDigits: false, alert: 'device.wrong' },
  },
  '/device-many': {
    template: 'device/code',
    model: { typed: '123-456-789', shape: '000-000-000', isDigits: true, alert: 'device.tooMany' },
  },
  '/device-empty': {
    template: 'device/code',
    model: { typed: '', shape: 'XXXX-XXXX', isDigits: false, alert: 'device.missing' },
  },
  '/device-confirm': {
    template: 'device/confirm',
    model: { client, userCode: 'WDJB-MJHT', qr: QR, ip: '203.0.113.7' },
  },
  '/device-confirm-long': {
    template: 'device/confirm',
    model: {
      client: {
        name: 'Wohnzimmerfernsehgerät mit Donaudampfschifffahrtsgesellschaftsabonnement',
        logo: LOGO,
      },
      userCode: 'ABCD-EFGH-IJKL-MNOP-QRST',
      qr: QR,
      ip: '2001:db8:85a3:8d3:1319:8a2e:370:7348',
    },
  },
  '/device-allowed': { template: 'device/allowed', model: {} },
  '/device-denied': { template: 'device/denied', model: {} },
  '/approval': {
    template: 'approval/ask',
    model: { client, ticket: 't', request: 'r', message: 'Payment 4711' },
  },
  '/approval-long': {
    template: 'approval/ask',
    model: {
      client: { ...client, logo: LOGO },
      ticket: 't',
      request: 'r',
      message: 'Überweisung an Donaudampfschifffahrtsgesellschaft 12345678901234',
      details: [
        {
          type: 'payment_initiation',
          lines: [{ name: 'creditor › name', value: 'Donaudampfschifffahrtsgesellschaft' }],
        },
      ],
    },
  },
  '/approval-plain': { template: 'approval/ask', model: { client, ticket: 't', request: 'r' } },
  '/approval-allowed': { template: 'approval/allowed', model: {} },
  '/approval-denied': { template: 'approval/denied', model: {} },
  '/approval-none': { template: 'approval/none', model: {} },
  '/logout': {
    template: 'logout/consent',
    model: { client, user, fields: [{ name: 'state', value: 's' }] },
  },
  '/logout-unnamed': { template: 'logout/consent', model: { user: '', fields: [] } },
  '/logout-kept': { template: 'logout/kept', model: {} },
  '/signed-out-frames': {
    template: 'logout/signed-out',
    // An address within the page, because it continues by itself while the tests look at it.
    model: { continueUrl: '#on', frames: [] },
  },
  '/signed-out': { template: 'logout/signed-out', model: {} },
  '/error': new AuthError(400, 'invalid_request', 'The redirect_uri is not registered for this application.'),
  '/error-request-uri': new AuthError(
    400,
    'invalid_request_uri',
    'request_uri is invalid, expired, or was already used',
  ),
  '/error-request-object': new AuthError(
    400,
    'invalid_request_object',
    `Request Object claims are invalid: https://application.example.test/${'a-long-address/'.repeat(12)}`,
  ),
  '/error-server': new AuthError(500, 'server_error', 'An unexpected error occurred.'),
  '/home': {
    template: 'development/home',
    model: {
      baseUrl: 'https://localhost:3000',
      version: '0.1.0',
      inboxUrl: '/dev/inbox',
      scriptsUrl: '/dev/scripts',
      administrator: {
        email: 'admin@example.test',
        password: 'Gatehouse-1',
        consoleUrl: 'https://localhost:3000/console',
      },
      clients: [
        { name: 'Example SPA', client_id: 'example-spa', app_type: 'spa' },
        { name: 'Example web app', client_id: 'w3bQ1nqYk2v0JZ8rT5uXcD7eFgH9aBsL', app_type: 'regular_web' },
        { name: 'Example machine', client_id: 'example-m2m', app_type: 'non_interactive' },
      ],
      connections: [{ name: 'Username-Password-Authentication', strategy: 'auth0' }],
      tryLogin,
    },
  },
  '/inbox': {
    template: 'development/inbox',
    model: {
      action: '/dev/inbox',
      csrf: 'x',
      messages: [
        {
          id: '1',
          to: user,
          channel: 'email',
          subject: 'Your code for Harbour Books',
          text: 'Your code is 482913.',
          code: '482913',
          at: '2026-11-21T05:00:00.000Z',
        },
        {
          id: '2',
          to: user,
          channel: 'email',
          subject: 'Set a new password',
          text: 'Follow the link.',
          link: 'https://localhost:3000/u/reset-password?ticket=hC0-cAvZpS9mX0pPq3H8b1pZ1n1m1k1j1h1g1f1d1s1',
          at: '2026-11-21T04:00:00.000Z',
        },
        {
          id: '3',
          to: '+16505551234',
          channel: 'sms',
          text: 'Your code is 482913.',
          code: '482913',
          at: '2026-11-21T03:00:00.000Z',
        },
      ],
    },
  },
  '/inbox-empty': { template: 'development/inbox', model: { action: '/dev/inbox', messages: [] } },
  '/scripts': {
    template: 'development/scripts',
    model: {
      runs: [
        {
          at: '2026-11-21T05:00:00.000Z',
          connection: 'harbour-id',
          script: 'fetchUserProfile',
          log: [{ level: 'info', text: 'status 200' }],
          used: { time_ms: 81, cpu_ms: 3, memory_mib: 16, requests: 1 },
          failure: { kind: 'script', message: 'The account is closed.' },
        },
      ],
    },
  },
  '/scripts-empty': { template: 'development/scripts', model: { runs: [] } },
  '/tokens': { template: 'development/tokens', model: { tryLogin } },
};
