// The API that a consent is for.
import { toAudience } from './audience.ts';
import { OIDC } from './grants.ts';

/**
 * The API that a consent's key stands for; what of OpenID Connect a user has allowed is at the userinfo endpoint.
 * @returns undefined for a key that names none.
 */
export function consentAudience(issuer: string, key: string): string | undefined {
  if (key === OIDC) return `${issuer}userinfo`;
  try {
    return toAudience(key);
  } catch {
    return undefined;
  }
}
