// The look of the hosted pages: a form, with a preview of the pages beside it.

import type { Context } from 'koa';
import { ERROR_PAGE, type PageWithModel, pageWith } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts, textsOf } from '../../../http/server/body.ts';
import { databaseOptionsSchema } from '../../../records/connections/connections.ts';
import { checkStrength } from '../../../users/password-policy.ts';
import {
  LOGIN_PAGE,
  LOGIN_PASSWORD_PAGE,
  LOGIN_SIGNUP_PAGE,
} from '../../connections/database/base/database-pages.ts';
import {
  ACCOUNT_FORGOT_PAGE,
  ACCOUNT_RESET_PAGE,
} from '../../connections/database/mailed-links/account-pages.ts';
import { LOGIN_IDENTIFIER_PAGE } from '../../connections/identifier/identifier-page.ts';
import { nameField } from '../../connections/name-field.ts';
import { PASSWORDLESS_CODE_PAGE } from '../../connections/passwordless/passwordless-hosted.ts';
import { MFA_CODE_PAGE } from '../../factors/factor.ts';
import { MFA_ENROLL_OTP_PAGE } from '../../factors/otp/otp.ts';
import { LOGIN_CONSENT_PAGE } from '../../flow/flow-pages.ts';
import { LOGOUT_SIGNED_OUT_PAGE } from '../../logout/logout-feature.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import { redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import type { FormFault } from '../form-fault.ts';
import { fieldsBelow, refusalOf, refusalOptions } from '../forms.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import {
  brandFields,
  enteredBrand,
  enteredTheme,
  faultyLook,
  type ShownField,
  type ThemeGroup,
  themeGroups,
} from './look.ts';
import { type BrandingDependencies, languageOf, languagesOf, PATH, type ShownLanguage } from './shared.ts';

type Section = Readonly<Record<string, unknown>>;

async function currentLook(deps: BrandingDependencies, ctx: Context, session: ConsoleSession) {
  const brand = (await callApi(deps, ctx, session, 'GET /branding')).body as Section;
  const storedTheme = await callApiIfFound(deps, ctx, session, 'GET /branding/themes/default');
  if (storedTheme === undefined) return { brand, theme: {}, themeId: undefined };
  const { themeId, ...theme } = storedTheme.body as Section;
  return { brand, theme, themeId: String(themeId) };
}

export async function showLook(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await showForm(deps, ctx, session, {});
}

/** Saves the members that the form has changed. */
export async function saveLook(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { brand, theme, themeId } = await currentLook(deps, ctx, session);
  const entered = {
    brand: enteredBrand(brand, fieldsBelow(ctx, 'brand.')),
    theme: enteredTheme(theme, fieldsBelow(ctx, 'theme.')),
  };
  let part: 'brand' | 'theme' = 'brand';
  try {
    const body = changesOf(brand, entered.brand);
    if (Object.keys(body).length > 0) await callApi(deps, ctx, session, 'PATCH /branding', { body });
    part = 'theme';
    await saveTheme(deps, ctx, session, { before: theme, after: entered.theme, themeId });
    redirectAfterForm(ctx, PATH, 'console.said.saved');
  } catch (thrown) {
    await showForm(deps, ctx, session, { entered, refused: { part, fault: refusalOf(thrown) } });
  }
}

/** Deletes the theme, so that the pages use the colours of the branding again. */
export async function removeTheme(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { themeId } = await currentLook(deps, ctx, session);
  if (themeId !== undefined)
    await callApi(deps, ctx, session, 'DELETE /branding/themes/:id', { params: { id: themeId } });
  redirectAfterForm(ctx, PATH, 'console.said.deleted');
}

/** Members of a theme that the Management API requires. */
const SECTIONS = { borders: {}, colors: {}, fonts: {}, page_background: {}, widget: {} };

async function saveTheme(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { before, after, themeId }: { before: Section; after: Section; themeId: string | undefined },
): Promise<void> {
  const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
  if (changed.length === 0) return;
  const body = Object.fromEntries(changed.map((name) => [name, after[name]]));
  if (themeId === undefined)
    await callApi(deps, ctx, session, 'POST /branding/themes', { body: { ...SECTIONS, ...body } });
  else await callApi(deps, ctx, session, 'PATCH /branding/themes/:id', { params: { id: themeId }, body });
}

/** Returns the members that differ, at any depth; null for one that was removed. */
function changesOf(before: Section, after: Section): Record<string, unknown> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return Object.fromEntries(
    names.flatMap((name): [string, unknown][] => {
      const [old, currentValue] = [before[name], after[name]];
      if (old === currentValue) return [];
      if (currentValue === undefined) return [[name, null]];
      return isSection(old) && isSection(currentValue)
        ? [[name, changesOf(old, currentValue)]]
        : [[name, currentValue]];
    }),
  );
}

const isSection = (value: unknown): value is Section =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Shows a page with the saved look. The query names the page, the language and the colour scheme. */
export async function showPreview(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await preview(deps, ctx, textsOf(ctx.query), await currentLook(deps, ctx, session));
}

export async function showDraft(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { brand, theme } = await currentLook(deps, ctx, session);
  await preview(deps, ctx, bodyTexts(ctx), {
    brand: enteredBrand(brand, fieldsBelow(ctx, 'brand.')),
    theme: enteredTheme(theme, fieldsBelow(ctx, 'theme.')),
  });
}

async function preview(
  deps: BrandingDependencies,
  ctx: Context,
  { page = '', language, scheme }: Readonly<Record<string, string>>,
  { brand, theme }: { brand: Section; theme: Section },
): Promise<void> {
  const sample = (Object.hasOwn(SAMPLES, page) ? SAMPLES[page] : undefined) ?? SAMPLES.login;
  if (sample === undefined) throw new AuthError(404, 'not_found', 'Not Found');
  const { tenant } = deps.config.settings();
  await deps.views.preview(ctx, sample, {
    settings: { tenant, branding: { colors: {}, ...brand } },
    look: { ...deps.config.look(), theme: Object.keys(theme).length === 0 ? undefined : theme },
    locale: languageOf(deps, language),
    scheme: scheme === 'dark' ? 'dark' : 'light',
  });
}

/** A form as it was filled in, and the part of it that was refused. */
interface FormState {
  entered?: { brand: Section; theme: Section };
  refused?: { part: 'brand' | 'theme'; fault: FormFault };
}

interface BrandingLookModel {
  tab: string;
  path: string;
  brand: ShownField[];
  theme: ThemeGroup[];
  hasTheme: boolean;
  mayChange: boolean;
  mayDelete: boolean;
  pages: string[];
  languages: ShownLanguage[];
  shown: { page: string; language: string; scheme: string; width: string };
  frameUrl: string;
}

export const BRANDING_LOOK_PAGE = declareConsolePage<BrandingLookModel>('console/branding-look');

async function showForm(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { entered, refused }: FormState,
): Promise<void> {
  const current = await currentLook(deps, ctx, session);
  const look = entered ?? current;
  const faultOf = (part: 'brand' | 'theme') => (refused?.part === part ? refused.fault : undefined);
  const brand = brandFields(look.brand, faultOf('brand'));
  const theme = themeGroups(look.theme, faultOf('theme'));
  const {
    page = 'login',
    language = languageOf(deps, undefined),
    scheme = 'light',
    width = 'wide',
  } = {
    ...textsOf(ctx.query),
    ...bodyTexts(ctx),
  };
  const query = new URLSearchParams({ page, language, scheme, _csrf: session.token });
  await renderConsole(deps, ctx, session, {
    page: BRANDING_LOOK_PAGE,
    title: 't:console.nav.branding',
    ...refusalOptions(refused?.fault, faultyLook(brand, theme)),
    model: {
      tab: 'look',
      path: PATH,
      brand,
      theme,
      hasTheme: current.themeId !== undefined,
      mayChange: session.can('update:branding'),
      mayDelete: session.can('delete:branding'),
      pages: Object.keys(SAMPLES),
      languages: languagesOf(deps),
      shown: { page, language, scheme, width },
      frameUrl: `${PATH}/preview?${query}`,
    },
  });
}

// Sample pages for previews, with models of a user who logs in to an application.

const client = { name: 'Harbour Books' };
const email = 'ada.lovelace@example.com';
const form = { client, action: '#', csrf: '' };

/** A picture that stands for a QR code. */
const QR =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" shape-rendering="crispEdges"><path d="M1 1h3v3H1zM5 1h3v3H5zM1 5h3v3H1zM6 6h1v1H6z"/></svg>';

const rules = checkStrength(databaseOptionsSchema.parse({}), '').rules.map(
  ({ verified: _verified, ...rule }) => rule,
);

/** The samples by name, in the order in which users see the pages. */
const SAMPLES: Readonly<Record<string, PageWithModel>> = {
  login: pageWith(LOGIN_PAGE, {
    ...form,
    names: nameField(['email']),
    values: { username: '' },
    signupUrl: '#',
    forgotPasswordUrl: '#',
    connections: [
      { text: 'login.with', name: 'Google', url: '#', mark: 'marks/google.svg' },
      { text: 'login.emailCode', url: '#', icon: 'email' },
    ],
  }),
  identifier: pageWith(LOGIN_IDENTIFIER_PAGE, {
    ...form,
    names: nameField(['email']),
    identifier: '',
    connections: [],
    signupUrl: '#',
  }),
  password: pageWith(LOGIN_PASSWORD_PAGE, {
    ...form,
    names: nameField(['email']),
    values: { username: email },
    identifierUrl: '#',
    forgotPasswordUrl: '#',
    connections: [],
    alert: 'login.wrong',
  }),
  signup: pageWith(LOGIN_SIGNUP_PAGE, {
    ...form,
    email: { isOptional: false },
    values: { email: '', phone: '', username: '' },
    isEmailFixed: false,
    hasNoPassword: false,
    rules,
    faults: {},
    loginUrl: '#',
  }),
  code: pageWith(PASSWORDLESS_CODE_PAGE, {
    ...form,
    channel: 'email',
    address: email,
    digits: 6,
    minutes: 3,
    resendUrl: '#',
    resendSeconds: 0,
    backUrl: '#',
  }),
  mfa: pageWith(MFA_CODE_PAGE, { ...form, channel: 'otp', address: '', remember: true, othersUrl: '#' }),
  enroll: pageWith(MFA_ENROLL_OTP_PAGE, {
    ...form,
    qr: QR,
    secret: 'HJ6XM2DNHJ6XM2DNHJ6XM2DNHJ6XM2DN',
    othersUrl: '#',
  }),
  consent: pageWith(LOGIN_CONSENT_PAGE, {
    ...form,
    user: email,
    details: [],
    scopes: [{ key: 'scope.openid' }, { key: 'scope.profile' }, { key: 'scope.email' }],
  }),
  forgot: pageWith(ACCOUNT_FORGOT_PAGE, { ...form, names: nameField(['email']), email: '', loginUrl: '#' }),
  reset: pageWith(ACCOUNT_RESET_PAGE, { ...form, email, ticket: '', proof: '', rules, faults: {} }),
  logout: pageWith(LOGOUT_SIGNED_OUT_PAGE, {}),
  error: pageWith(ERROR_PAGE, {
    kind: 'expired',
    error: 'invalid_request',
    description: 'This login has expired.',
    requestId: 'req-1',
    home: undefined,
  }),
};
