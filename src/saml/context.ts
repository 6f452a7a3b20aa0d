// Authentication contexts (SAML AuthnContext §3.4) as far as the login's methods (RFC 8176) prove them.
import type { LoginRequest } from './request.ts';

const CLASS_PREFIX = 'urn:oasis:names:tc:SAML:2.0:ac:classes:';
const UNSPECIFIED = `${CLASS_PREFIX}unspecified`;

type Methods = readonly string[];

const isPassword = (amr: Methods) => amr.includes('pwd');
const isMultiFactor = (amr: Methods) => amr.includes('mfa');
/**
 * With a password and `mfa`, `otp` is that of an authenticator app. Without a password the code may have been sent.
 */
const isAppCode = (amr: Methods) => isMultiFactor(amr) && isPassword(amr) && amr.includes('otp');
/** The class means a registered mobile contract, which is not checked here. */
const isNever = () => false;

const MULTI_FACTOR = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

/** The known contexts, and whether a login meets them. Every connection uses TLS. */
const CLASSES: ReadonlyMap<string, (amr: Methods) => boolean> = new Map([
  [UNSPECIFIED, () => true],
  [`${CLASS_PREFIX}PasswordProtectedTransport`, isPassword],
  [`${CLASS_PREFIX}Password`, isPassword],
  [MULTI_FACTOR, isMultiFactor],
  ['https://refeds.org/profile/mfa', isMultiFactor],
  [`${CLASS_PREFIX}TimeSyncToken`, isAppCode],
  [`${CLASS_PREFIX}MobileTwoFactorContract`, isNever],
]);

const NEEDS_FACTOR = new Set([isMultiFactor, isAppCode]);

/** Returns the `acr_values` of the login: a second factor when every requested context needs one. */
export function acrValues({ classRefs: requested = [] }: LoginRequest): string | undefined {
  const needsFactor =
    requested.length > 0 && requested.every((one) => NEEDS_FACTOR.has(CLASSES.get(one) ?? isNever));
  return needsFactor ? MULTI_FACTOR : undefined;
}

/**
 * Returns the context to state for a login.
 * @param requested acceptable contexts; undefined for any.
 * @param amr the login's methods.
 * @param configured the application's own; a context that is unknown here is stated because its administrator
 *   configured it.
 * @returns undefined when no acceptable context was met.
 */
export function statedContext(
  requested: readonly string[] | undefined,
  amr: Methods,
  configured: string,
): string | undefined {
  const isMet = (one: string) => CLASSES.get(one)?.(amr) ?? one === configured;
  if (requested === undefined) return isMet(configured) ? configured : UNSPECIFIED;
  return requested.find(isMet);
}
