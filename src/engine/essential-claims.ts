// Claims that a request cannot do without (OpenID Connect Core §5.5.1): a login that cannot meet them has failed.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';

/** The part of the `claims` parameter that matters here. */
interface Claims {
  id_token?: { acr?: { essential?: unknown; value?: unknown; values?: unknown } | null };
}

/** OpenID Connect Core Error Code unmet_authentication_requirements 1.0. */
function unmet(): Error {
  return new errors.CustomOIDCProviderError(
    'unmet_authentication_requirements',
    'The requested authentication context class cannot be reached.',
  );
}

/** The context classes one of which is essential; undefined where none is. @throws errors.InvalidRequest */
function essentialClasses({ id_token }: Claims): unknown[] | undefined {
  const { essential, value, values } = id_token?.acr ?? {};
  if (essential !== true || (value === undefined && values === undefined)) return undefined;
  if (values !== undefined && !Array.isArray(values))
    throw new errors.InvalidRequest('invalid claims.id_token.acr.values type');
  return values ?? [value];
}

/**
 * The engine's check of the `claims` parameter: no class is essential that nobody can reach.
 * @param supported the classes that there are.
 */
export function assertClaims(supported: readonly string[]) {
  return async (_ctx: KoaContextWithOIDC, claims: object): Promise<void> => {
    for (const [place, members] of Object.entries(claims)) {
      if (place !== 'userinfo' && place !== 'id_token') continue;
      if (!Object.values(members as object).every(isNullOrObject))
        throw new errors.InvalidRequest(`claims.${place} members must be null or objects`);
    }
    const wanted = essentialClasses(claims);
    if (wanted !== undefined && !supported.some((one) => wanted.includes(one))) throw unmet();
  };
}

function isNullOrObject(value: unknown): boolean {
  return typeof value === 'object' && !Array.isArray(value);
}

/**
 * Whether a new login is asked for because the session's class is not the one that is essential.
 * @param isAskedForFactor whether the user is asked for a second factor, which may meet it.
 * @throws errors.OIDCProviderError, for the application, where the login of this very request does not meet it.
 */
export function lacksEssentialClass(ctx: KoaContextWithOIDC, isAskedForFactor: boolean): boolean {
  const { oidc } = ctx;
  const wanted = essentialClasses((oidc.claims ?? {}) as Claims);
  if (wanted === undefined || oidc.session?.accountId === undefined || isAskedForFactor) return false;
  if (wanted.includes(oidc.session.acr)) return false;
  // The login was made in this very request, so another one would end the same way.
  if (oidc.result?.login !== undefined) throw unmet();
  return true;
}
