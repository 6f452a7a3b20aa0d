// Chooses between claims as OpenID Connect Core defines them (`standard_claims`) and as the hosted service's SDKs
// read them.
import type { Config } from '../../tenant/config.ts';
import type { UpdatedAt } from '../../users/profile.ts';
import type { ApplicationSettings } from '../client/applications.ts';

type ClaimSettings = Pick<ApplicationSettings, 'standardClaims' | 'oidcConformant'> | undefined;

/** Whether an application gets the standard's claims: its own setting, or else the tenant's. */
export function hasStandardClaims(config: Pick<Config, 'settings'>, application: ClaimSettings): boolean {
  return application?.standardClaims ?? config.settings().tenant.flags.standard_claims === true;
}

/** Returns the form of `updated_at` for an application (docs/wire/token.md). */
export function updatedAtFor(config: Config, application: ClaimSettings): UpdatedAt {
  if (hasStandardClaims(config, application)) return 'number';
  return application?.oidcConformant === true ? 'iso8601' : 'text';
}

/** An ID token being made: available claims, and the scopes and single claims that select from them. */
export interface IdTokenParts {
  available: Record<string, unknown>;
  scope?: string | undefined;
  mask?: Record<string, unknown> | undefined;
}

/** The context class of a login that met none of those requested (OpenID Connect Core §2). */
const NO_ASSURANCE = '0';

/**
 * Selects the claims of an ID token that the standard defines.
 * @param responseType the response type of the authorization response with the token; undefined at the token
 *   endpoint.
 */
export function standardIdToken(token: IdTokenParts, responseType: unknown): void {
  // Claims of scopes come from /userinfo whenever an access token is issued (§5.4).
  if (responseType !== 'id_token') token.scope = 'openid';
  if (token.mask !== undefined && 'acr' in token.mask && token.available.acr === undefined) {
    token.available = { ...token.available, acr: NO_ASSURANCE };
  }
}
