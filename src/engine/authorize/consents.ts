// Names the API of a consent.

import { toAudience } from '../base/requested-audience.ts';
import { OIDC_CONSENT_KEY } from '../token/grants.ts';

/**
 * Returns the identifier of the API that a consent's key means. Consents for OpenID Connect scopes belong to the
 * userinfo endpoint.
 * @returns undefined for a key that names none.
 */
export function consentAudience(issuer: string, key: string): string | undefined {
  if (key === OIDC_CONSENT_KEY) return `${issuer}userinfo`;
  try {
    return toAudience(key);
  } catch {
    return undefined;
  }
}
