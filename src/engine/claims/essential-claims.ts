// Essential claims of a request (OpenID Connect Core §5.5.1): a login that cannot provide them fails.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { AuthenticationClasses } from '../../records/authentication-classes.ts';

/** The part of the `claims` parameter that matters here. */
interface Claims {
  id_token?: { acr?: { essential?: unknown; value?: unknown; values?: unknown } | null };
}

/** OpenID Connect Core Error Code unmet_authentication_requirements 1.0. */
function unmetError(): Error {
  return new errors.CustomOIDCProviderError(
    'unmet_authentication_requirements',
    'The requested authentication context class cannot be reached.',
  );
}

/**
 * Returns the context classes of which one is essential; undefined when none is.
 * @throws errors.InvalidRequest for values that are not a list.
 */
function essentialClasses({ id_token }: Claims): unknown[] | undefined {
  const { essential, value, values } = id_token?.acr ?? {};
  if (essential !== true || (value === undefined && values === undefined)) return undefined;
  if (values !== undefined && !Array.isArray(values))
    throw new errors.InvalidRequest('invalid claims.id_token.acr.values type');
  return values ?? [value];
}

/**
 * Makes the engine's check of the `claims` parameter: it refuses essential classes that no login can reach.
 * @param classesNow returns the classes of the tenant.
 */
export function assertClaims(classesNow: () => Pick<AuthenticationClasses, 'supported'>) {
  return async (_ctx: KoaContextWithOIDC, claims: object): Promise<void> => {
    for (const [place, members] of Object.entries(claims)) {
      if (place !== 'userinfo' && place !== 'id_token') continue;
      if (!Object.values(members as object).every(isNullOrObject))
        throw new errors.InvalidRequest(`claims.${place} members must be null or objects`);
    }
    const classes = essentialClasses(claims);
    if (classes !== undefined && !classesNow().supported.some((one) => classes.includes(one)))
      throw unmetError();
  };
}

function isNullOrObject(value: unknown): boolean {
  return typeof value === 'object' && !Array.isArray(value);
}

/**
 * Whether the user has to log in again because the session does not have the essential class.
 * @param lacksFactor whether the user is asked for a second factor, which may reach the class.
 * @param isMet whether a login meets a class.
 * @throws errors.OIDCProviderError, for the application, when the login of this request does not reach it.
 */
export function lacksEssentialClass(
  ctx: KoaContextWithOIDC,
  lacksFactor: boolean,
  isMet: AuthenticationClasses['isMet'],
): boolean {
  const { oidc } = ctx;
  const classes = essentialClasses((oidc.claims ?? {}) as Claims);
  if (classes === undefined || oidc.session?.accountId === undefined || lacksFactor) return false;
  const { amr = [] } = oidc.session;
  if (classes.some((one) => typeof one === 'string' && isMet(one, amr))) return false;
  // The login was made in this very request, so another one would end the same way.
  if (oidc.result?.login !== undefined) throw unmetError();
  return true;
}
