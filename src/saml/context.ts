// How somebody logged in, in the words of authentication contexts (SAML AuthnContext §3.4): what the methods of the
// login show (RFC 8176), and nothing that they do not.
import type { LoginRequest } from './request.ts';

const CLASS = 'urn:oasis:names:tc:SAML:2.0:ac:classes:';
const UNSPECIFIED = `${CLASS}unspecified`;

type Methods = readonly string[];

const isPassword = (amr: Methods) => amr.includes('pwd');
const isMultiFactor = (amr: Methods) => amr.includes('mfa');
/** A code beside a password is of an authenticator app; a code alone may have been sent. */
const isAppCode = (amr: Methods) => isMultiFactor(amr) && isPassword(amr) && amr.includes('otp');
/** It stands for a mobile contract's registration, of which nobody here knows. */
const isNever = () => false;

const MULTI_FACTOR = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

/** The contexts that can be judged, each with when it is met. Every connection is by TLS. */
const JUDGES: ReadonlyMap<string, (amr: Methods) => boolean> = new Map([
  [UNSPECIFIED, () => true],
  [`${CLASS}PasswordProtectedTransport`, isPassword],
  [`${CLASS}Password`, isPassword],
  [MULTI_FACTOR, isMultiFactor],
  ['https://refeds.org/profile/mfa', isMultiFactor],
  [`${CLASS}TimeSyncToken`, isAppCode],
  [`${CLASS}MobileTwoFactorContract`, isNever],
]);

const ASKS_MORE = new Set([isMultiFactor, isAppCode]);

/** The `acr_values` that ask for a second factor, where every context asked for means one. */
export function acrValues({ classRefs: asked = [] }: LoginRequest): string | undefined {
  const asksMore = asked.length > 0 && asked.every((one) => ASKS_MORE.has(JUDGES.get(one) ?? isNever));
  return asksMore ? MULTI_FACTOR : undefined;
}

/**
 * The context to be stated for a login.
 * @param asked those that would do; undefined when any would.
 * @param amr the login's methods.
 * @param configured the application's own; one that cannot be judged is the word of whoever configured it.
 * @returns undefined when nothing asked for was met.
 */
export function statedContext(
  asked: readonly string[] | undefined,
  amr: Methods,
  configured: string,
): string | undefined {
  const isMet = (one: string) => JUDGES.get(one)?.(amr) ?? one === configured;
  if (asked === undefined) return isMet(configured) ? configured : UNSPECIFIED;
  return asked.find(isMet);
}
