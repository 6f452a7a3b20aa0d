// Replaces texts of pages by those that the tenant has set. They are addressed by prompt, screen and key as in the
// hosted service; docs/reference/custom-texts.md lists them all.
// docs/understand/decisions/login-pages.md#custom-texts-are-shown-only-on-the-page-that-they-are-for
import { isolated, type Locale, type MessageValues } from './locales.ts';

/** The tenant's texts of one prompt in one language, by screen and key. */
type PromptTexts = Readonly<Record<string, unknown>>;

/** Texts by `<prompt>/<language>`. */
export type CustomTexts = ReadonlyMap<string, PromptTexts>;

const PASSWORD = { 'field.password.show': 'showPasswordText', 'field.password.hide': 'hidePasswordText' };

/** Returns a mapping from our message keys to the tenant's keys on one screen. */
const screen = (at: string, texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(texts).map(([message, key]) => [message, `${at}/${key}`]));

const titles = (base: string, more: Readonly<Record<string, string>> = {}) => ({
  [`${base}.title`]: 'pageTitle',
  [`${base}.heading`]: 'title',
  [`${base}.lead`]: 'description',
  ...more,
});

const codes = (channel: 'email' | 'sms') =>
  screen(`login-passwordless/login-passwordless-${channel === 'sms' ? 'sms-otp' : 'email-code'}`, {
    ...titles('passwordless.code', { 'passwordless.code.submit': 'buttonText' }),
    'passwordless.code.none': 'resendText',
    'passwordless.code.resend': 'resendActionText',
    'passwordless.wrong': 'invalid-code',
    'field.code': 'codePlaceholder',
  });

const factor = (prompt: string, base: string, code = 'placeholder') =>
  screen(`${prompt}/${prompt}-challenge`, {
    ...titles(base),
    'mfa.continue': 'buttonText',
    'mfa.others': 'pickAuthenticatorText',
    'mfa.remember': 'rememberMeText',
    'mfa.wrong': 'invalid-code',
    'field.code': code,
  });

/**
 * Maps our message keys to the tenant's `<prompt>/<screen>/<key>`, by template, or by template and the `channel` of
 * its model.
 */
export const SCREENS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'login/login': screen('login/login', {
    ...titles('login', { 'login.submit': 'buttonText', 'login.or': 'separatorText' }),
    'login.forgot': 'forgotPasswordText',
    'login.noAccount': 'signupActionText',
    'login.signup': 'signupActionLinkText',
    'login.with': 'federatedConnectionButtonText',
    'login.wrong': 'wrong-email-credentials',
    'login.wrongWithUsername': 'wrong-credentials',
    'login.blocked': 'user-blocked',
    'login.throttled': 'ip-blocked',
    'field.email': 'emailPlaceholder',
    'field.usernameOrEmail': 'usernamePlaceholder',
    'field.password': 'passwordPlaceholder',
    ...PASSWORD,
  }),
  'login/identifier': screen('login-id/login-id', {
    ...titles('login', { 'login.submit': 'buttonText', 'login.or': 'separatorText' }),
    'login.noAccount': 'signupActionText',
    'login.signup': 'signupActionLinkText',
    'login.with': 'federatedConnectionButtonText',
    'identifier.missing': 'no-email',
    'field.email': 'emailPlaceholder',
    'field.usernameOrEmail': 'usernamePlaceholder',
  }),
  'login/password': screen('login-password/login-password', {
    'loginPassword.title': 'pageTitle',
    'loginPassword.heading': 'title',
    'login.lead': 'description',
    'login.submit': 'buttonText',
    'login.forgot': 'forgotPasswordText',
    'login.noAccount': 'signupActionText',
    'login.signup': 'signupActionLinkText',
    'login.wrong': 'wrong-email-credentials',
    'login.wrongWithUsername': 'wrong-credentials',
    'login.blocked': 'user-blocked',
    'login.throttled': 'ip-blocked',
    'identifier.change': 'editEmailText',
    'field.password': 'passwordPlaceholder',
    ...PASSWORD,
  }),
  'login/signup': screen('signup/signup', {
    ...titles('signup', { 'signup.submit': 'buttonText' }),
    'signup.haveAccount': 'loginActionText',
    'signup.login': 'loginActionLinkText',
    'field.email': 'emailPlaceholder',
    'field.username': 'usernamePlaceholder',
    'field.password': 'passwordPlaceholder',
    ...PASSWORD,
  }),
  'account/forgot': screen('reset-password/reset-password-request', {
    ...titles('forgot', { 'forgot.submit': 'buttonText', 'forgot.lead': 'descriptionEmail' }),
    'forgot.back': 'backToLoginLinkText',
    'field.email': 'emailPlaceholder',
  }),
  'account/sent': screen('reset-password/reset-password-email', {
    'forgot.title': 'pageTitle',
    'forgot.sent.heading': 'title',
    'forgot.sent.lead': 'emailDescription',
  }),
  'account/reset': screen('reset-password/reset-password', {
    ...titles('reset', { 'reset.submit': 'buttonText', 'reset.new': 'passwordPlaceholder' }),
    'reset.repeat': 'reEnterpasswordPlaceholder',
    ...PASSWORD,
  }),
  'account/done': screen('reset-password/reset-password-success', {
    'reset.done.title': 'pageTitle',
    'reset.done.heading': 'eventTitle',
    'reset.done.lead': 'description',
  }),
  'login/consent': screen('consent/consent', {
    'consent.title': 'pageTitle',
    'consent.heading': 'title',
    'consent.lead': 'messageSingleTenant',
    'consent.accept': 'acceptButtonText',
    'consent.deny': 'declineButtonText',
  }),
  'login/organization': screen('organizations/organization-picker', titles('organization')),
  'login/organization-name': screen('organizations/organization-selection', {
    'organization.nameTitle': 'pageTitle',
    'organization.nameHeading': 'title',
    'organization.nameLead': 'description',
    'organization.emailLead': 'description',
    'organization.name': 'organizationNamePlaceholder',
    'organization.continue': 'buttonText',
    'organization.unknown': 'invalid-organization',
  }),
  'device/code': screen('device-flow/device-code-activation', {
    ...titles('device', { 'device.continue': 'buttonText' }),
    'device.code': 'placeholder',
    'device.wrong': 'invalid-expired-code',
    'device.missing': 'no-code',
  }),
  'device/confirm': screen('device-flow/device-code-confirmation', {
    ...titles('device.confirm'),
    'device.confirm.accept': 'confirmText',
    'device.confirm.deny': 'cancelText',
  }),
  'device/allowed': screen('device-flow/device-code-activation-allowed', titles('device.allowed')),
  'device/denied': screen('device-flow/device-code-activation-denied', titles('device.denied')),
  'logout/consent': screen('logout/logout', {
    'logout.title': 'pageTitle',
    'logout.heading': 'title',
    'logout.lead': 'message',
    'logout.lead.client': 'message',
    'logout.submit': 'acceptButtonText',
    'logout.cancel': 'declineButtonText',
  }),
  'logout/signed-out': screen('logout/logout-complete', {
    'signedOut.title': 'pageTitle',
    'signedOut.heading': 'eventTitle',
    'signedOut.lead': 'description',
  }),
  'passwordless/code:email': codes('email'),
  'passwordless/code:sms': codes('sms'),
  'mfa/choose': screen('mfa/mfa-login-options', {
    'mfa.choose.title': 'pageTitle',
    'mfa.choose.heading': 'title',
    'mfa.way.otp': 'authenticatorNamesOTP',
    'mfa.way.phone': 'authenticatorNamesSMS',
    'mfa.way.email': 'authenticatorNamesEmail',
    'mfa.way.push-notification': 'authenticatorNamesPush',
    'mfa.way.recovery-code': 'authenticatorNamesRecoveryCode',
  }),
  'mfa/code:otp': factor('mfa-otp', 'mfa.otp.code'),
  'mfa/code:sms': factor('mfa-sms', 'mfa.sms.code'),
  'mfa/code:email': factor('mfa-email', 'mfa.email.code'),
  'mfa/push': factor('mfa-push', 'mfa.push'),
  'mfa/recovery': factor('mfa-recovery-code', 'mfa.recovery'),
  'mfa/enroll-otp': screen('mfa-otp/mfa-otp-enrollment-qr', {
    ...titles('mfa.otp.enroll', { 'mfa.continue': 'buttonText' }),
    'mfa.otp.enroll.manual': 'codeEnrollmentText',
    'field.code': 'placeholder',
  }),
};

/** The facts of a page that texts may refer to. */
interface PageFacts {
  template: string;
  model: { channel?: unknown; client?: { name?: string } };
  /** The name of the tenant or the organization. */
  company: string;
}

/** Returns the locale with the tenant's texts for a page in place of the messages that they replace. */
export function withCustomTexts(locale: Locale, texts: CustomTexts, page: PageFacts): Locale {
  if (texts.size === 0) return locale;
  const { template, model, company } = page;
  const known = SCREENS[`${template}:${String(model.channel)}`] ?? SCREENS[template];
  if (known === undefined) return locale;
  return {
    ...locale,
    isTranslated: (message) =>
      customText(texts, known[message], locale.tag) !== undefined || locale.isTranslated(message),
    text: (message, values = {}) => {
      const customized = customText(texts, known[message], locale.tag);
      return customized === undefined
        ? locale.text(message, values)
        : filledIn(
            customized,
            { ...values, client: values.client ?? model.client?.name, tenant: company },
            locale.direction,
          );
    },
  };
}

function customText(texts: CustomTexts, place: string | undefined, tag: string): string | undefined {
  const [prompt, screenName = '', key = ''] = place?.split('/') ?? [];
  const found = texts.get(`${prompt}/${tag}`)?.[screenName];
  if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
  const text = (found as Record<string, unknown>)[key];
  return typeof text === 'string' && text !== '' ? text : undefined;
}

/** The placeholders of the hosted service, with the names of our values for them. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  clientName: ['client'],
  companyName: ['tenant'],
  tenantName: ['tenant'],
  connectionName: ['connection'],
  email: ['email', 'address'],
  phoneNumber: ['address'],
  userName: ['user'],
};

/** Fills in placeholders. The values are not escaped here: the template escapes the whole text. */
function filledIn(text: string, values: MessageValues, direction: Locale['direction']): string {
  return text.replace(/\$\{(\w+)\}/g, (_place, name: string) => {
    const valueNames = Object.hasOwn(VALUES, name) ? VALUES[name] : undefined;
    const value = valueNames?.map((one) => values[one]).find((one) => one !== undefined);
    return value === undefined ? '' : isolated(String(value), direction);
  });
}
