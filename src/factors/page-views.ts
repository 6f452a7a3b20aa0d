// What the pages of the second factor show: models for views/pages/mfa.
import type { Context } from 'koa';
import QRCode from 'qrcode';
import { pageModel, renderPage, stepPath } from '../flow/request-page.ts';
import { countryOf } from '../http/languages.ts';

import { countries } from './message/countries.ts';
import type { MfaPagesDependencies, MfaVisit, Ways } from './mfa-page.ts';
import { otpauthUri } from './otp/totp.ts';
import { enabledFactors, type FactorType } from './policy.ts';
import { displayName } from './routes.ts';
import { activeAuthenticators } from './second-factor.ts';
import { findAuthenticator } from './verify.ts';

interface Again {
  alert?: string;
  status?: number;
  address?: string;
}

interface At {
  way: FactorType;
  ways: Ways;
}

const CHANNEL = { otp: 'otp', phone: 'sms', email: 'email' } as const;
const RESEND_SECONDS = 30;

/** The ways to choose from. */
export async function showChoice(
  deps: MfaPagesDependencies,
  ctx: Context,
  { visit, user }: MfaVisit,
  { enrolling, types }: Ways,
  { alert, status = 200 }: Again = {},
): Promise<void> {
  const active = await activeAuthenticators(deps, user);
  const names = new Map(
    active.map((one) => [
      one.kind === 'sms' ? 'phone' : one.kind === 'push' ? 'push-notification' : one.kind,
      displayName(one),
    ]),
  );
  const ways = types.map((type) => ({
    type,
    url: stepPath(visit.pending, `mfa/${type}`),
    ...(names.get(type) === undefined ? {} : { name: names.get(type) }),
  }));
  const model = { ...pageModel(visit, 'mfa'), ways, enrolling, ...(alert && { alert }) };
  await renderPage(deps, ctx, visit, 'mfa/choose', model, status);
}

/** Where a code is typed, or a device waited for. */
export async function showChallenge(
  deps: MfaPagesDependencies,
  ctx: Context,
  { visit, user, state }: MfaVisit,
  { way, ways }: At,
  { alert, status = 200 }: Again = {},
): Promise<void> {
  const step = `mfa/${way}`;
  const authenticator =
    state.authenticatorId === undefined
      ? undefined
      : await findAuthenticator(deps, user, state.authenticatorId);
  const model = {
    ...pageModel(visit, step),
    ...(alert && { alert }),
    ...(ways.types.length > 1 && { othersUrl: stepPath(visit.pending, 'mfa/choose') }),
    remember: !ways.enrolling,
    address: authenticator === undefined ? '' : displayName(authenticator),
    ...(way !== 'otp' && {
      resendUrl: stepPath(visit.pending, `${step}/resend`),
      resendSeconds: RESEND_SECONDS,
    }),
  };
  if (way === 'recovery-code') return renderPage(deps, ctx, visit, 'mfa/recovery', model, status);
  if (way !== 'push-notification') {
    return renderPage(deps, ctx, visit, 'mfa/code', { ...model, channel: CHANNEL[way] }, status);
  }
  const push = {
    ...model,
    name: authenticator?.name ?? '',
    number: state.number,
    statusUrl: stepPath(visit.pending, 'mfa/status'),
  };
  await renderPage(deps, ctx, visit, 'mfa/push', push, status);
}

/** Where an authenticator is set up. */
export async function showEnrollment(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
  at: At,
  again: Again = {},
): Promise<void> {
  const { visit, user, state } = mfa;
  const { way, ways } = at;
  const { alert, status = 200, address } = again;
  const model = {
    ...pageModel(visit, `mfa/${way}`),
    ...(alert && { alert }),
    ...(ways.types.length > 1 && { othersUrl: stepPath(visit.pending, 'mfa/choose') }),
  };
  const begun = state.way === way ? state.authenticatorId : undefined;
  if (way === 'otp') {
    const authenticator = begun === undefined ? undefined : await deps.authenticators.get(begun);
    const secret =
      authenticator === undefined ? undefined : await deps.authenticators.secretOf(authenticator);
    const issuer = deps.config.settings().tenant.friendly_name;
    const uri = otpauthUri(secret ?? '', issuer, user.email ?? user.username ?? user.id);
    return renderPage(deps, ctx, visit, 'mfa/enroll-otp', { ...model, qr: await qrOf(uri), secret }, status);
  }
  if (way === 'push-notification') {
    const { barcodeUri = '' } = state;
    const push = {
      ...model,
      qr: await qrOf(barcodeUri),
      barcodeUri,
      authenticatorUrl: `/authenticator#${encodeURIComponent(barcodeUri)}`,
      statusUrl: stepPath(visit.pending, 'mfa/status'),
    };
    return renderPage(deps, ctx, visit, 'mfa/enroll-push', push, status);
  }
  if (begun !== undefined && address === undefined) return showChallenge(deps, ctx, mfa, at, again);
  const form = {
    ...model,
    channel: way === 'email' ? 'email' : 'sms',
    address: address ?? (way === 'email' ? (user.email ?? '') : ''),
    ...(way === 'phone' && countryChoice(deps, ctx, mfa)),
  };
  await renderPage(deps, ctx, visit, 'mfa/enroll-address', form, status);
}

/** The countries of a phone number by name in the page's language, and the one that the browser's languages suggest. */
function countryChoice({ views }: MfaPagesDependencies, ctx: Context, { visit }: MfaVisit) {
  const all = countries(views.locale(ctx, visit.pending.params.ui_locales).tag);
  const likely = countryOf([ctx.get('Accept-Language')]);
  return { countries: all, country: all.some(({ code }) => code === likely) ? likely : 'US' };
}

/** A new recovery code, with the one before dead: whoever looks again sees one that is good. */
export async function showNewRecoveryCode(
  deps: MfaPagesDependencies,
  ctx: Context,
  { visit, user }: MfaVisit,
  alert?: string,
): Promise<void> {
  const recoveryCode = enabledFactors(deps.config).has('recovery-code')
    ? await deps.authenticators.renewRecoveryCode(user.id)
    : '';
  const model = { ...pageModel(visit, 'mfa/recovery-code-saved'), recoveryCode, ...(alert && { alert }) };
  await renderPage(deps, ctx, visit, 'mfa/recovery-code', model, alert === undefined ? 200 : 400);
}

/** A QR code as SVG of one path, dark on light. */
function qrOf(text: string): Promise<string> {
  return QRCode.toString(text, { type: 'svg', errorCorrectionLevel: 'M', margin: 0 });
}
