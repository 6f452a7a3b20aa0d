// Authentication contexts (SAML AuthnContext §3.4) as far as the login's methods (RFC 8176) prove them.
import {
  MFA_POLICY,
  meetsKnownClass,
  needsFactor,
  UNSPECIFIED,
} from '../../records/authentication-classes.ts';
import type { LoginRequest } from './request.ts';

/** Returns the `acr_values` of the login: a second factor when every requested context needs one. */
export function acrValues({ classRefs: requested = [] }: LoginRequest): string | undefined {
  return requested.length > 0 && requested.every(needsFactor) ? MFA_POLICY : undefined;
}

// docs/decisions/saml.md#requestedauthncontext-is-honoured
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
  amr: readonly string[],
  configured: string,
): string | undefined {
  const isMet = (one: string) => meetsKnownClass(one, amr) ?? one === configured;
  if (requested === undefined) return isMet(configured) ? configured : UNSPECIFIED;
  return requested.find(isMet);
}
