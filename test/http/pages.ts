// Every page in the states that users see it in, with models as the features make them.

import { DONE_PAGE } from '../../src/capabilities/pages/views.ts';
import { testProgram } from '../../src/capabilities/quickstarts/other-snippets.ts';
import {
  OWN_CONFIRM_PAGE,
  OWN_PASSKEY_PAGE,
  OWN_SECURITY_PAGE,
} from '../../src/features/account/page/account-pages.ts';
import { OWN_PROFILE_PAGE } from '../../src/features/account/page/account-profile.ts';
import { OWN_APPLICATIONS_PAGE } from '../../src/features/account/page/applications-page.ts';
import { OWN_DATA_PAGE } from '../../src/features/account/page/data-page.ts';
import { OWN_EMAIL_PAGE } from '../../src/features/account/page/email-page.ts';
import { OWN_LINK_PAGE } from '../../src/features/account/page/link-page.ts';
import { OWN_SESSIONS_PAGE } from '../../src/features/account/page/sessions-page.ts';
import {
  LOGIN_PAGE,
  LOGIN_PASSWORD_PAGE,
  LOGIN_SIGNUP_PAGE,
} from '../../src/features/connections/database/base/database-pages.ts';
import {
  ACCOUNT_FORGOT_PAGE,
  ACCOUNT_RESET_PAGE,
  ACCOUNT_SENT_PAGE,
  ACCOUNT_VERIFY_PAGE,
} from '../../src/features/connections/database/mailed-links/account-pages.ts';
import { ACCOUNT_UNBLOCK_PAGE } from '../../src/features/connections/database/unblock.ts';
import { LOGIN_IDENTIFIER_PAGE } from '../../src/features/connections/identifier/identifier-page.ts';
import { LOGIN_LINK_PAGE } from '../../src/features/connections/linking/linking-feature.ts';
import { LOGIN_CONNECTIONS_PAGE } from '../../src/features/connections/login-page.ts';
import { nameField } from '../../src/features/connections/name-field.ts';
import { LOGIN_PASSKEY_PAGE } from '../../src/features/connections/passkeys/passkeys-feature.ts';
import { PASSWORDLESS_CONTINUE_PAGE } from '../../src/features/connections/passwordless/passwordless-feature.ts';
import {
  PASSWORDLESS_ADDRESS_PAGE,
  PASSWORDLESS_CODE_PAGE,
} from '../../src/features/connections/passwordless/passwordless-hosted.ts';
import type { LoginChoice } from '../../src/features/connections/resolve.ts';
import { ADMINISTRATORS_LIST_PAGE } from '../../src/features/console/administrators/console-administrators-routes.ts';
import {
  ADMINISTRATORS_LINK_PAGE,
  ADMINISTRATORS_PASSWORD_PAGE,
} from '../../src/features/console/administrators/password.ts';
import { AGAIN_PAGE } from '../../src/features/console/console-feature.ts';
import { MOVE_PAGE } from '../../src/features/console/move/console-move-routes.ts';
import { OVERVIEW_HOME_PAGE } from '../../src/features/console/overview/console-overview-routes.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import {
  DEVELOPMENT_HOME_PAGE,
  DEVELOPMENT_TOKENS_PAGE,
} from '../../src/features/development/development-feature.ts';
import { DEVELOPMENT_SCRIPTS_PAGE } from '../../src/features/development/development-scripts.ts';
import { firstPrograms } from '../../src/features/development/first-programs.ts';
import { DEVELOPMENT_INBOX_PAGE } from '../../src/features/development/inbox.ts';
import { MFA_CODE_PAGE } from '../../src/features/factors/factor.ts';
import { MFA_ENROLL_ADDRESS_PAGE } from '../../src/features/factors/message/message-factor.ts';
import { MFA_ENROLL_OTP_PAGE } from '../../src/features/factors/otp/otp.ts';
import { MFA_CHOOSE_PAGE, MFA_RECOVERY_CODE_PAGE } from '../../src/features/factors/page-routes.ts';
import { MFA_ENROLL_PUSH_PAGE, MFA_PUSH_PAGE } from '../../src/features/factors/push/push.ts';
import { AUTHENTICATOR_PAGE } from '../../src/features/factors/push/push-feature.ts';
import { MFA_RECOVERY_PAGE } from '../../src/features/factors/recovery/recovery-code.ts';
import { MFA_ENROLL_WEBAUTHN_PAGE, MFA_WEBAUTHN_PAGE } from '../../src/features/factors/webauthn/webauthn.ts';
import { LOGIN_ACCOUNT_PAGE, LOGIN_CONSENT_PAGE } from '../../src/features/flow/flow-pages.ts';
import {
  LOGIN_ORGANIZATION_NAME_PAGE,
  LOGIN_ORGANIZATION_PAGE,
} from '../../src/features/flow/flow-routes.ts';
import {
  APPROVAL_ALLOWED_PAGE,
  APPROVAL_ASK_PAGE,
  APPROVAL_DENIED_PAGE,
  APPROVAL_NONE_PAGE,
} from '../../src/features/grants/ciba/ciba-feature.ts';
import {
  DEVICE_ALLOWED_PAGE,
  DEVICE_CODE_PAGE,
  DEVICE_CONFIRM_PAGE,
  DEVICE_DENIED_PAGE,
} from '../../src/features/grants/device/device-feature.ts';
import {
  LOGOUT_CONSENT_PAGE,
  LOGOUT_KEPT_PAGE,
  LOGOUT_SIGNED_OUT_PAGE,
} from '../../src/features/logout/logout-feature.ts';
import { AuthError } from '../../src/http/errors.ts';
import { databaseOptionsSchema } from '../../src/records/connections/connections.ts';
import type { DatabaseOptions } from '../../src/records/tenant/tenant.ts';
import { checkStrength } from '../../src/users/password-policy.ts';
import { consoleAgentsPages } from './console-agents-pages.ts';
import { consoleBrandingPages } from './console-branding-pages.ts';
import { consoleConnectionPages } from './console-connections-pages.ts';
import { consoleLogPages } from './console-log-pages.ts';
import { overviewModel } from './console-overview-pages.ts';
import { resourcesStates } from './console-resources-pages.ts';
import { consoleSecurityPages } from './console-security-pages.ts';
import { consoleUsersPages } from './console-users-pages.ts';
import { type SitePage, sitePage } from './site.ts';

const client = { name: 'Harbour Books' };
/** A picture as a data URL. */
const LOGO =
  'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"%3E%3Crect width="10" height="10" fill="%23d9480f"/%3E%3C/svg%3E';
const user = 'ada.lovelace@example.test';

const options: DatabaseOptions = databaseOptionsSchema.parse({ passwordPolicy: 'excellent' });
const unjudged = checkStrength(options, '').rules.map(({ verified: _verified, ...rule }) => rule);
const judged = checkStrength(options, 'aaa1').rules;

const login = {
  client,
  names: nameField(['email']),
  values: { username: '' },
  signupUrl: '/signup',
  connections: [],
};
const signup = {
  client,
  email: { isOptional: false },
  values: { email: '', phone: '', username: '' },
  isEmailFixed: false,
  hasNoPassword: false,
  rules: unjudged,
  faults: {},
  loginUrl: '/login',
};
/** A connection whose users log in at a provider. */
function provider(name: string, more: Partial<LoginChoice> = {}): LoginChoice {
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
const own = {
  root: '/account',
  account: 'auth0|1',
  isFresh: true,
  person: { name: 'Ada Lovelace' },
  client,
  allowsDeletion: false,
};
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
  editsPhone: false,
  email: { address: user, isVerified: true },
  phone: { number: '+442079460000', isVerified: false },
  locales: [
    { tag: 'en', name: 'English' },
    { tag: 'de', name: 'Deutsch' },
  ],
};
const then = { iso: '2026-11-22T12:00:00.000Z', text: '22 Nov 2026, 12:00 UTC' };

/** The data that pages of the console share. */
export const consoleModel: ConsoleFrame = {
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
  ...consoleAgentsPages(consoleModel),
  ...consoleConnectionPages(consoleModel),
  ...consoleBrandingPages(consoleModel),
  '/console': sitePage(OVERVIEW_HOME_PAGE, { ...consoleModel, ...overviewModel }),
  '/console-well': sitePage(OVERVIEW_HOME_PAGE, { ...consoleModel, attention: [] }),
  '/console-move': sitePage(MOVE_PAGE, {
    ...consoleModel,
    isFresh: false,
    section: 'move',
    title: 'Moving in',
    path: '/console/move',
    mayChange: true,
    origin: 'https://harbour-books.eu.auth0.com',
    isOpen: true,
    until: { iso: '2027-04-01T00:00:00.000Z', text: 'Apr 1, 2027, 12:00 AM UTC' },
    unreachable: 'its Management API answered 429 (too_many_requests)',
    bridges: (['passwords', 'sessions', 'refresh_tokens'] as const).map((kind, index) => ({
      kind,
      connection: kind === 'passwords' ? 'Username-Password-Authentication' : '',
      isOpen: index < 2,
      isEnded: index === 2,
      end: { iso: '2027-04-01T00:00:00.000Z', text: 'Apr 1, 2027, 12:00 AM UTC' },
      last: { iso: '2026-11-29T20:00:00.000Z', text: 'Nov 29, 2026, 8:00 PM UTC' },
      rows: ['moved', kind === 'passwords' ? 'wrong' : 'refused', 'failed'].map((outcome, row) => ({
        text: `console.move.${outcome}`,
        all: 120_345 - row * 40_000,
        hour: 321 - row * 100,
      })),
      ...(kind === 'passwords' && { there: 200_000, left: 79_655 }),
    })),
  }),
  '/console-administrators': sitePage(ADMINISTRATORS_LIST_PAGE, {
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
        isSelf: false,
        hasFactor: false,
        added: then,
      },
    ],
    links: [
      { id: '3', email: 'joan@example.test', role: 'support', expires: then },
      { id: '4', email: 'grace@example.test', expires: then },
    ],
  }),
  '/console-password': sitePage(ADMINISTRATORS_PASSWORD_PAGE, {
    ...consoleModel,
    rules: judged,
    faults: { password: 'signup.weak' },
    alert: 'No',
    factorsUrl: '/account/security',
    programsPath: '/console/agents/programs',
  }),
  '/console-again': sitePage(AGAIN_PAGE, {
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
  }),
  '/console-link': sitePage(ADMINISTRATORS_LINK_PAGE, {
    action: '/console/link',
    ticket: 'x',
    email: user,
    role: 'viewer',
    name: '',
    rules: unjudged,
    faults: {},
  }),
  ...consoleLogPages,
  ...consoleSecurityPages(consoleModel),
  ...resourcesStates(consoleModel),
  ...consoleUsersPages(consoleModel),
  '/login': sitePage(LOGIN_PAGE, login),
  '/login-hinted': sitePage(LOGIN_PAGE, {
    ...login,
    values: { username: user },
    forgotPasswordUrl: '/forgot',
  }),
  '/login-choices': sitePage(LOGIN_PAGE, {
    ...login,
    names: nameField(['email', 'username', 'phone_number']),
    forgotPasswordUrl: '/forgot',
    connections: [
      { text: 'login.with', name: 'Example Works', url: '/with/works', mark: 'marks/saml.svg' },
      { text: 'login.smsCode', url: '/with/sms', icon: 'phone' },
    ],
  }),
  '/identifier': sitePage(LOGIN_IDENTIFIER_PAGE, {
    client,
    names: nameField(['email', 'phone_number']),
    identifier: '',
    connections: [provider('Acme')],
    signupUrl: '/signup',
  }),
  '/identifier-unknown': sitePage(
    LOGIN_IDENTIFIER_PAGE,
    {
      client,
      names: nameField(['email', 'username']),
      identifier: user,
      connections: [],
      alert: 'identifier.unknown',
    },
    { status: 400 },
  ),
  '/login-password': sitePage(LOGIN_PASSWORD_PAGE, {
    ...login,
    values: { username: user },
    identifierUrl: '/identifier',
    forgotPasswordUrl: '/forgot',
  }),
  '/login-password-wrong': sitePage(
    LOGIN_PASSWORD_PAGE,
    {
      ...login,
      values: { username: `${'ada.'.repeat(12)}lovelace@example.test` },
      identifierUrl: '/identifier',
      connections: [{ text: 'login.emailCode', url: '/with/email', icon: 'email' }],
      alert: 'login.wrong',
    },
    { status: 400 },
  ),
  '/login-wrong': sitePage(
    LOGIN_PAGE,
    { ...login, values: { username: user }, alert: 'login.wrong' },
    { status: 400 },
  ),
  '/signup': sitePage(LOGIN_SIGNUP_PAGE, signup),
  '/signup-username': sitePage(LOGIN_SIGNUP_PAGE, {
    ...signup,
    phone: { isOptional: true },
    username: { isOptional: false, min: 1, max: 15 },
  }),
  '/signup-failed': sitePage(
    LOGIN_SIGNUP_PAGE,
    {
      ...signup,
      values: { email: 'ada@', phone: '', username: 'ada lovelace' },
      username: { isOptional: false, min: 1, max: 15 },
      rules: judged,
      alert: 'signup.failed',
      faults: { email: 'signup.email', username: 'signup.username', password: 'signup.weak' },
    },
    { status: 400 },
  ),
  '/signup-refused': sitePage(
    LOGIN_SIGNUP_PAGE,
    { ...signup, values: { email: user, phone: '', username: '' }, alert: 'signup.refused' },
    { status: 400 },
  ),
  '/consent': sitePage(LOGIN_CONSENT_PAGE, {
    client: { ...client, logo: LOGO },
    user,
    details: [],
    scopes: [
      { key: 'scope.openid' },
      { key: 'scope.profile' },
      { key: 'scope.offline_access' },
      { text: 'Read your orders', api: 'Orders API' },
      { text: 'write:orders', api: 'Orders API' },
    ],
  }),
  '/consent-more': sitePage(LOGIN_CONSENT_PAGE, {
    client: { name: 'Notes agent' },
    user,
    stranger: { documentHost: 'a-long-name-of-a-host.documents.example.test', isUnverified: true },
    details: [{ type: 'tax_data', lines: [{ name: 'year', value: '2026' }] }],
    scopes: [{ key: 'scope.email' }, { text: 'Write notes for you', api: 'Notes' }],
    allowed: [{ key: 'scope.openid' }, { text: 'Read your notes', api: 'Notes' }],
  }),
  '/consent-stranger': sitePage(LOGIN_CONSENT_PAGE, {
    client: { name: 'Claude[U+202E]' },
    user,
    stranger: { host: 'a-long-name-of-a-host.agents.example.test:8443', isUnverified: true },
    details: [],
    scopes: [{ text: 'tools:read', api: 'Tools' }],
  }),
  '/consent-device': sitePage(LOGIN_CONSENT_PAGE, {
    client,
    user,
    stranger: { documentHost: 'a-long-name-of-a-host.documents.example.test', isUnverified: false },
    details: [],
    scopes: [{ text: 'tools:read', api: 'Tools' }],
  }),
  '/consent-app': sitePage(LOGIN_CONSENT_PAGE, {
    client,
    user,
    stranger: { scheme: 'com.example.tool:', isUnverified: true },
    details: [],
    scopes: [{ key: 'scope.openid' }],
  }),
  '/consent-details': sitePage(LOGIN_CONSENT_PAGE, {
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
  }),
  '/consent-details-template': sitePage(LOGIN_CONSENT_PAGE, {
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
  }),
  '/passwordless-email': sitePage(PASSWORDLESS_ADDRESS_PAGE, {
    client,
    channel: 'email',
    address: '',
    others: [
      { text: 'login.withPassword', url: '/login', icon: 'key' },
      { text: 'login.smsCode', url: '/sms', icon: 'phone' },
    ],
  }),
  '/passwordless-passkey': sitePage(PASSWORDLESS_ADDRESS_PAGE, {
    client,
    channel: 'email',
    address: '',
    others: [],
    passkey: { action: '/passkey', options: '{}', session: 's', autofill: true, button: true },
  }),
  '/passwordless-sms': sitePage(
    PASSWORDLESS_ADDRESS_PAGE,
    { client, channel: 'sms', address: '12', others: [], alert: 'passwordless.sms.invalid' },
    { status: 400 },
  ),
  '/passwordless-code': sitePage(PASSWORDLESS_CODE_PAGE, code),
  '/passwordless-code-wrong': sitePage(
    PASSWORDLESS_CODE_PAGE,
    { ...code, resendSeconds: 0, alert: 'passwordless.wrong' },
    { status: 400 },
  ),
  '/passwordless-continue': sitePage(PASSWORDLESS_CONTINUE_PAGE, {
    client,
    address: user,
    fields: [['state', 's']],
  }),
  '/mfa-choose': sitePage(MFA_CHOOSE_PAGE, {
    client,
    enrolling: false,
    factors: [
      { type: 'otp', url: '/otp' },
      { type: 'phone', url: '/sms', name: 'XXXXXXXX1234' },
      { type: 'email', url: '/email' },
      { type: 'push-notification', url: '/push' },
      { type: 'recovery-code', url: '/recovery' },
    ],
  }),
  '/mfa-choose-enroll': sitePage(MFA_CHOOSE_PAGE, {
    client,
    enrolling: true,
    factors: [{ type: 'otp', url: '/otp' }],
  }),
  '/mfa-enroll-otp': sitePage(MFA_ENROLL_OTP_PAGE, {
    client,
    qr: QR,
    secret: 'HJ6XM2DNHJ6XM2DNHJ6XM2DNHJ6XM2DN',
    othersUrl: '/others',
  }),
  '/mfa-enroll-sms': sitePage(MFA_ENROLL_ADDRESS_PAGE, {
    client,
    channel: 'sms',
    address: '',
    country: 'DE',
    countries: [
      { code: 'DE', name: 'Germany', calling: '49' },
      { code: 'US', name: 'United States', calling: '1' },
    ],
    othersUrl: '/others',
  }),
  '/mfa-enroll-email': sitePage(MFA_ENROLL_ADDRESS_PAGE, {
    client,
    channel: 'email',
    address: user,
    othersUrl: '/others',
  }),
  '/mfa-enroll-push': sitePage(MFA_ENROLL_PUSH_PAGE, {
    client,
    qr: QR,
    barcodeUri: 'otpauth://totp/Gatehouse:ada?enrollment_tx_id=abc&base_url=https://localhost',
    authenticatorUrl: '/authenticator',
    statusUrl: '/status',
    othersUrl: '/others',
  }),
  '/mfa-code-otp': sitePage(MFA_CODE_PAGE, {
    client,
    channel: 'otp',
    address: '',
    remember: true,
    othersUrl: '/others',
  }),
  '/mfa-code-sms': sitePage(
    MFA_CODE_PAGE,
    {
      client,
      channel: 'sms',
      address: 'XXXXXXXX1234',
      alert: 'mfa.wrong',
      remember: true,
      resendUrl: '/resend',
      resendSeconds: 30,
      othersUrl: '/others',
    },
    { status: 400 },
  ),
  '/mfa-push': sitePage(MFA_PUSH_PAGE, {
    client,
    name: 'Ada’s phone',
    address: '',
    number: '47',
    statusUrl: '/status',
    remember: true,
    resendUrl: '/resend',
    resendSeconds: 30,
    othersUrl: '/others',
  }),
  '/login-passkey': sitePage(LOGIN_PAGE, {
    ...login,
    forgotPasswordUrl: '/forgot',
    passkey: { action: '/passkey', options: '{}', session: 's', autofill: true, button: true },
  }),
  '/own-profile': sitePage(OWN_PROFILE_PAGE, { ...own, section: '', ...ownProfile, said: 'own.said.saved' }),
  '/own-phone': sitePage(OWN_PROFILE_PAGE, { ...own, section: '', ...ownProfile, editsPhone: true }),
  '/own-phone-code': sitePage(
    OWN_PROFILE_PAGE,
    {
      ...own,
      section: '',
      ...ownProfile,
      phoneAsked: '+442079460001',
      alert: 'own.profile.failed',
      faults: { code: 'own.phone.wrong' },
    },
    { status: 400 },
  ),
  '/own-failed': sitePage(
    OWN_PROFILE_PAGE,
    {
      ...own,
      section: '',
      ...ownProfile,
      isFresh: false,
      alert: 'own.profile.failed',
      faults: { picture: 'own.profile.noAddress', email: 'signup.email' },
    },
    { status: 400 },
  ),
  '/own-elsewhere': sitePage(OWN_PROFILE_PAGE, {
    ...own,
    section: '',
    ...ownProfile,
    editsProfile: false,
    editsEmail: false,
    provider: 'Example Works',
  }),
  '/own-email': sitePage(OWN_EMAIL_PAGE, {
    action: '/account/email',
    ticket: 'ticket',
    step: 'allow',
    email: 'ada.king@example.test',
    from: user,
  }),
  '/own-security': sitePage(OWN_SECURITY_PAGE, {
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
      { id: 'totp|1', type: 'totp', mayRename: false, added: then },
      { id: 'sms|1', type: 'phone', name: '+44 20 7946 0000', mayRename: false, added: then },
    ],
    recovery: true,
    addFactorUrl: '/account/security/add',
  }),
  '/own-recovery': sitePage(OWN_SECURITY_PAGE, {
    ...own,
    section: '/security',
    editsPassword: false,
    takesPasskeys: false,
    passkeys: [],
    factors: [],
    recovery: false,
    recoveryCode: 'MZCRK3YX5V3AKNNYY6JEBQCL',
  }),
  '/own-passkey': sitePage(OWN_PASSKEY_PAGE, {
    ...own,
    section: '/security',
    action: '/account/security/passkey',
    options: '{}',
    session: 's',
  }),
  '/own-sessions': sitePage(OWN_SESSIONS_PAGE, {
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
  }),
  '/own-applications': sitePage(OWN_APPLICATIONS_PAGE, {
    ...own,
    section: '/applications',
    isFresh: false,
    applications: [
      {
        id: 'x',
        name: 'Harbour Books',
        hosts: [],
        documentHost: undefined,
        isUnverified: false,
        scopes: [{ key: 'scope.openid' }, { text: 'Read your orders', api: 'Orders' }],
        staysLoggedIn: true,
        used: then,
      },
      {
        id: 'y',
        name: 'Donaudampfschifffahrtsgesellschaftsagent',
        documentHost: 'agents.example.test',
        hosts: ['agent.example.test', 'donaudampfschifffahrtsgesellschaftsagent.example.test:8443'],
        isUnverified: true,
        scopes: [{ text: 'Use the tools', api: 'Tools' }],
        staysLoggedIn: false,
        used: undefined,
      },
    ],
    identities: [
      { id: 'users|1', name: 'users', address: user, isFirst: true },
      { id: 'works|1', name: 'Example Works', address: user, isFirst: false },
    ],
    connected: [],
    mayLink: true,
  }),
  '/own-link': sitePage(OWN_LINK_PAGE, {
    ...own,
    action: '/account/applications/link/confirm',
    ticket: 'ticket',
    stays: { name: user, way: 'users' },
    goes: { name: 'grace@example.test', way: 'Example Works' },
  }),
  '/own-confirm': sitePage(OWN_CONFIRM_PAGE, {
    ...own,
    action: '/account/confirm/send',
    to: '/security',
    provider: 'Example Works',
    email: user,
    isSent: false,
  }),
  '/own-confirm-sent': sitePage(OWN_CONFIRM_PAGE, {
    ...own,
    action: '/account/confirm',
    to: '/security',
    provider: 'Example Works',
    email: user,
    isSent: true,
    alert: 'own.confirm.wrong',
  }),
  '/own-confirm-none': sitePage(OWN_CONFIRM_PAGE, {
    ...own,
    action: '/account/confirm/send',
    to: '',
    provider: 'Example Works',
    isSent: false,
  }),
  '/own-data': sitePage(
    OWN_DATA_PAGE,
    {
      ...own,
      section: '/data',
      isFresh: false,
      allowsDeletion: true,
      confirm: user,
      alert: 'own.delete.differs',
    },
    { status: 400 },
  ),
  '/passkey-offer': sitePage(LOGIN_PASSKEY_PAGE, { client, options: '{}', session: 's', isLocal: false }),
  '/passkey-local': sitePage(LOGIN_PASSKEY_PAGE, { client, options: '{}', session: 's', isLocal: true }),
  '/mfa-webauthn': sitePage(MFA_WEBAUTHN_PAGE, {
    client,
    kind: 'webauthn-roaming',
    options: '{}',
    address: '',
    remember: true,
    othersUrl: '/others',
  }),
  '/mfa-webauthn-platform': sitePage(
    MFA_WEBAUTHN_PAGE,
    {
      client,
      kind: 'webauthn-platform',
      options: '{}',
      address: '',
      remember: false,
      alert: 'mfa.webauthn.wrong',
    },
    { status: 400 },
  ),
  '/mfa-enroll-webauthn': sitePage(MFA_ENROLL_WEBAUTHN_PAGE, {
    client,
    kind: 'webauthn-roaming',
    options: '{}',
    othersUrl: '/others',
  }),
  '/mfa-recovery': sitePage(MFA_RECOVERY_PAGE, {
    client,
    address: '',
    remember: false,
    othersUrl: '/others',
  }),
  '/mfa-recovery-code': sitePage(MFA_RECOVERY_CODE_PAGE, {
    client,
    recoveryCode: 'MZCR-K3YX-5V3A-KNNY-Y6JE-BQCL',
  }),
  '/authenticator': sitePage(AUTHENTICATOR_PAGE, { origin: 'https://localhost' }),
  '/organization-name': sitePage(LOGIN_ORGANIZATION_NAME_PAGE, {
    client,
    name: '',
    takesName: true,
    takesEmail: false,
  }),
  '/organization-email': sitePage(LOGIN_ORGANIZATION_NAME_PAGE, {
    client,
    name: '',
    takesName: false,
    takesEmail: true,
  }),
  '/organization-unknown': sitePage(LOGIN_ORGANIZATION_NAME_PAGE, {
    client,
    name: 'ada@nobody.example',
    takesName: true,
    takesEmail: true,
    alert: 'organization.unknownEmail',
  }),
  '/connections': sitePage(LOGIN_CONNECTIONS_PAGE, {
    client,
    connections: [
      provider('Acme', { logo: LOGO }),
      provider('GitHub', { mark: 'marks/github.svg' }),
      provider('Vereinigte Hafenwerke und Donaudampfschifffahrtsgesellschaft Nord-Süd mbH'),
    ],
  }),
  '/connections-many': sitePage(LOGIN_PAGE, {
    ...login,
    connections: [
      ...['Acme', 'Borealis', 'Coral', 'دار النشر', 'Ember'].map((name) => provider(name)),
      { text: 'login.emailCode', url: '/with/email', icon: 'email' },
      provider('Foxglove', { mark: 'marks/oidc.svg' }),
      provider('👩‍🚀 Space'),
    ],
  }),
  '/organization': sitePage(LOGIN_ORGANIZATION_PAGE, {
    client,
    organizations: [
      { id: 'org_1', name: 'Acme' },
      { id: 'org_2', name: 'Harbour Works' },
    ],
  }),
  '/forgot-password': sitePage(ACCOUNT_FORGOT_PAGE, {
    client,
    names: nameField(['email']),
    email: '',
    loginUrl: '/login',
  }),
  '/forgot-password-sent': sitePage(ACCOUNT_SENT_PAGE, {
    client,
    names: nameField(['email']),
    email: user,
    action: '/forgot',
    loginUrl: '/login',
  }),
  '/reset-password': sitePage(ACCOUNT_RESET_PAGE, {
    email: user,
    ticket: 't',
    proof: '',
    rules: unjudged,
    faults: {},
  }),
  '/reset-password-failed': sitePage(
    ACCOUNT_RESET_PAGE,
    {
      email: user,
      ticket: 't',
      proof: '',
      rules: judged,
      alert: 'reset.failed',
      faults: { password: 'signup.weak', repeat: 'reset.differ' },
    },
    { status: 400 },
  ),
  '/reset-password-done': sitePage(DONE_PAGE, { done: 'reset.done' }),
  '/unblock': sitePage(ACCOUNT_UNBLOCK_PAGE, { ticket: 't' }),
  '/unblock-done': sitePage(DONE_PAGE, { done: 'unblock.done' }),
  '/email-verification': sitePage(ACCOUNT_VERIFY_PAGE, { email: user, ticket: 't', isUnproved: true }),
  '/account-discarded': sitePage(DONE_PAGE, { done: 'verify.discarded' }),
  '/email-verification-done': sitePage(DONE_PAGE, { done: 'verify.done' }),
  '/error-link': new AuthError(400, 'invalid_request', 'This link has expired or was already used.', {
    extra: { reason: 'link_expired' },
  }),
  '/link': sitePage(LOGIN_LINK_PAGE, {
    client,
    action: '/link',
    email: user,
    connection: 'Passwords',
    alert: 'link.other',
  }),
  '/link-passwords': sitePage(LOGIN_LINK_PAGE, {
    client,
    action: '/link',
    email: `${'ada.'.repeat(14)}lovelace@example.test`,
    connection: 'Acme',
  }),
  '/account': sitePage(LOGIN_ACCOUNT_PAGE, { client, user, loginUrl: '/login' }),
  '/device': sitePage(DEVICE_CODE_PAGE, { typed: '', shape: 'XXXX-XXXX', isDigits: false }),
  '/device-wrong': sitePage(DEVICE_CODE_PAGE, {
    typed: 'BCDF-GHJ',
    shape: 'XXXX-XXXX',
    isDigits: false,
    alert: 'device.wrong',
  }),
  '/device-many': sitePage(DEVICE_CODE_PAGE, {
    typed: '123-456-789',
    shape: '000-000-000',
    isDigits: true,
    alert: 'device.tooMany',
  }),
  '/device-empty': sitePage(DEVICE_CODE_PAGE, {
    typed: '',
    shape: 'XXXX-XXXX',
    isDigits: false,
    alert: 'device.missing',
  }),
  '/device-confirm': sitePage(DEVICE_CONFIRM_PAGE, {
    client,
    userCode: 'WDJB-MJHT',
    qr: QR,
    ip: '203.0.113.7',
  }),
  '/device-confirm-long': sitePage(DEVICE_CONFIRM_PAGE, {
    client: {
      name: 'Wohnzimmerfernsehgerät mit Donaudampfschifffahrtsgesellschaftsabonnement',
      logo: LOGO,
    },
    userCode: 'ABCD-EFGH-IJKL-MNOP-QRST',
    qr: QR,
    ip: '2001:db8:85a3:8d3:1319:8a2e:370:7348',
  }),
  '/device-allowed': sitePage(DEVICE_ALLOWED_PAGE, {}),
  '/device-denied': sitePage(DEVICE_DENIED_PAGE, {}),
  '/approval': sitePage(APPROVAL_ASK_PAGE, {
    client,
    ticket: 't',
    request: 'r',
    message: 'Payment 4711',
    scopes: [],
    details: [],
  }),
  '/approval-long': sitePage(APPROVAL_ASK_PAGE, {
    client: { ...client, logo: LOGO },
    ticket: 't',
    request: 'r',
    scopes: [],
    message: 'Überweisung an Donaudampfschifffahrtsgesellschaft 12345678901234',
    details: [
      {
        type: 'payment_initiation',
        lines: [{ name: 'creditor › name', value: 'Donaudampfschifffahrtsgesellschaft' }],
      },
    ],
  }),
  '/approval-plain': sitePage(APPROVAL_ASK_PAGE, {
    client,
    ticket: 't',
    request: 'r',
    scopes: [],
    details: [],
  }),
  '/approval-allowed': sitePage(APPROVAL_ALLOWED_PAGE, {}),
  '/approval-denied': sitePage(APPROVAL_DENIED_PAGE, {}),
  '/approval-none': sitePage(APPROVAL_NONE_PAGE, {}),
  '/logout': sitePage(LOGOUT_CONSENT_PAGE, { client, user, fields: [{ name: 'state', value: 's' }] }),
  '/logout-unnamed': sitePage(LOGOUT_CONSENT_PAGE, { user: '', fields: [] }),
  '/logout-kept': sitePage(LOGOUT_KEPT_PAGE, {}),
  '/signed-out-frames': sitePage(LOGOUT_SIGNED_OUT_PAGE, { continueUrl: '#on', frames: [] }),
  '/signed-out': sitePage(LOGOUT_SIGNED_OUT_PAGE, {}),
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
  '/home': sitePage(DEVELOPMENT_HOME_PAGE, {
    initCommand: 'node src/cli.ts init',
    baseUrl: 'https://localhost:3000',
    version: '0.1.0',
    inboxUrl: '/dev/inbox',
    scriptsUrl: '/dev/scripts',
    documentsUrl: '/docs',
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
    programs: firstPrograms(
      [
        { client_id: 'example-spa', app_type: 'spa', callbacks: ['http://localhost:5173'] },
        { client_id: 'example-web', app_type: 'regular_web', callbacks: ['http://localhost:3001/callback'] },
      ],
      'https://localhost:3000/',
    ),
    test: testProgram('config/tenant.yaml'),
    connections: [{ name: 'Username-Password-Authentication', strategy: 'auth0' }],
    tryLogin,
  }),
  '/inbox': sitePage(DEVELOPMENT_INBOX_PAGE, {
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
  }),
  '/inbox-empty': sitePage(DEVELOPMENT_INBOX_PAGE, { action: '/dev/inbox', messages: [] }),
  '/scripts': sitePage(DEVELOPMENT_SCRIPTS_PAGE, {
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
  }),
  '/scripts-empty': sitePage(DEVELOPMENT_SCRIPTS_PAGE, { runs: [] }),
  '/tokens': sitePage(DEVELOPMENT_TOKENS_PAGE, { tryLogin }),
};
