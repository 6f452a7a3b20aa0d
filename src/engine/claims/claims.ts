// The claims that each scope gives (OpenID Connect Core §5.4; docs/do/claims.md), and the engine's account.
import {
  type AccessToken,
  type Account,
  type ClientCredentials,
  errors,
  type FindAccount,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import type { Frozen } from '../../records/base/record.ts';
import type { AuthenticationClasses } from '../../records/users/authentication-classes.ts';
import type { CustomClaim } from '../../records/users/custom-claims.ts';
import { PROFILE_CLAIMS, type UserRecord } from '../../records/users/users.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { primaryIdentity } from '../../users/changes.ts';
import {
  type ClaimSources,
  type ClaimsContext,
  claimsFor,
  claimValue,
  standardClaims,
  type UpdatedAt,
  withinLimit,
} from '../../users/profile.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import {
  admissionError,
  notMemberDescription,
  type Organizations,
  organizationOf,
} from '../admission/admission.ts';
import type { ReadAhead } from '../base/commit.ts';
import { engineEvents } from '../base/engine-declaration.ts';
import { OIDC_SCOPES } from '../base/request-extensions.ts';
import { endsOf, ISSUED_AT_MS } from '../base/signed-tokens.ts';
import { type ApplicationSettings, applicationSettings } from '../client/applications.ts';

/** The engine's `claims` configuration. */
export const claimsByScope = {
  openid: ['sub', 'auth_time', 'acr', 'amr', 'org_id', 'org_name'],
  profile: [...PROFILE_CLAIMS, 'updated_at'],
  email: ['email', 'email_verified'],
  phone: ['phone_number', 'phone_number_verified'],
  address: ['address'],
  sid: null,
  iss: null,
};

const SCOPE_BY_CLAIM = new Map(
  (['profile', 'email', 'phone', 'address'] as const).flatMap((scope) =>
    claimsByScope[scope].map((claim) => [claim as string, scope] as const),
  ),
);

// docs/understand/decisions/authorize.md#a-claim-in-the-claims-parameter-needs-the-same-consent-as-its-scope
/**
 * Returns the scopes whose consent covers individually requested claims (OpenID Connect Core §5.5). Claims about
 * the login (`sub`, `auth_time`, `acr` …) need none.
 */
export function scopesOfClaims(claims: Iterable<string>): string[] {
  return [...new Set([...claims].flatMap((claim) => SCOPE_BY_CLAIM.get(claim) ?? []))];
}

/**
 * Returns the names in a `claims` parameter, of `userinfo` and `id_token` together.
 * @param claims the parameter as the engine has checked it; undefined when there is none.
 */
export function requestedClaims(claims: unknown): string[] {
  if (typeof claims !== 'string' || claims === '') return [];
  const { userinfo = {}, id_token = {} } = JSON.parse(claims) as { userinfo?: object; id_token?: object };
  return [...Object.keys(userinfo), ...Object.keys(id_token)];
}

/**
 * The users that were read when the login of the current request was checked, by the engine's context: they need
 * not be read again.
 */
export type VerifiedUsers = WeakMap<object, User>;

interface AccountDependencies {
  ahead: Pick<ReadAhead, 'user'>;
  config: Config;
  verifiedUsers: VerifiedUsers;
  tokenUsers: TokenUsers;
  organizations: Pick<Organizations, 'claims' | 'isMember'>;
}

/**
 * Refuses a code or refresh token for an organization when the user is no longer a member, or the organization no
 * longer has the user's connection.
 */
async function refuseFormerMember(
  organizations: AccountDependencies['organizations'],
  ctx: KoaContextWithOIDC,
  userId: string,
): Promise<void> {
  const organization = ctx.oidc.route === 'token' ? organizationOf(ctx) : undefined;
  if (organization === undefined) return;
  const { connection } = (ctx.oidc.entities.Grant ?? {}) as { connection?: string };
  if (await organizations.isMember(organization, userId, connection)) return;
  throw new errors.AccessDenied(notMemberDescription(organization));
}

/**
 * The engine's `findAccount`: undefined for a removed user.
 * @returns a function that throws `unauthorized` for a blocked user, in every flow.
 */
export function accounts({
  ahead,
  config,
  verifiedUsers,
  tokenUsers,
  organizations,
}: AccountDependencies): FindAccount {
  return async (ctx, sub): Promise<Account | undefined> => {
    const known = verifiedUsers.get(ctx.oidc);
    const user = known?.id === sub ? known : await ahead.user(sub);
    if (user === undefined) return undefined;
    const refusal = admissionError(user);
    if (refusal !== undefined) {
      throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
    }
    tokenUsers.set(ctx.oidc, user);
    await refuseFormerMember(organizations, ctx, sub);
    const { client } = ctx.oidc;
    const updatedAt = updatedAtFor(config, client && applicationSettings(client));
    return {
      accountId: sub,
      claims: async () => ({
        sub,
        // All claims: the engine picks those of the granted scopes and of the `claims` parameter.
        ...standardClaims(user, OIDC_SCOPES, { updatedAt }),
        // Set after the profile, so that no profile claim can pass for a membership.
        ...(await organizations.claims(organizationOf(ctx))),
      }),
    };
  };
}

// Chooses between claims as OpenID Connect Core defines them (`standard_claims`) and as the hosted service's SDKs
// read them.
// docs/understand/decisions/tokens.md#standard_claims-gives-an-application-the-claims-of-openid-connect-core

type ClaimSettings = Pick<ApplicationSettings, 'standardClaims' | 'oidcConformant'> | undefined;

/** Whether an application gets the standard's claims: its own setting, or else the tenant's. */
export function hasStandardClaims(config: Pick<Config, 'settings'>, application: ClaimSettings): boolean {
  return application?.standardClaims ?? config.settings().tenant.flags.standard_claims === true;
}

// docs/understand/decisions/tokens.md#updated_at-has-the-form-that-the-applications-settings-ask-for
/** Returns the form of `updated_at` for an application (docs/reference/wire/token.md). */
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

// `email` at /userinfo is the address at the time when the token was issued (docs/do/claims.md): a user's record keeps
// the earlier addresses. A token tells its time in seconds (`iat`). One that is issued in the same second as a change,
// and after it, also has the millisecond: otherwise a token from before the change could not be told from it.
// docs/understand/decisions/tokens.md#email-is-the-address-at-the-time-when-the-token-was-issued

/** The users for whom tokens are issued in the current request, by the engine's context. */
export type TokenUsers = WeakMap<object, Frozen<UserRecord>>;

/**
 * Returns the time of issue of a token, as a claim, if the user's address was changed in this second, or if what ended older
 * tokens did so in this second ({@link isBeforeEnd}).
 */
export function preciseIssue(
  { tokenUsers, clock }: { tokenUsers: TokenUsers; clock: Clock },
  ctx: KoaContextWithOIDC,
  token: AccessToken | ClientCredentials,
): Record<string, number> | undefined {
  const user = 'accountId' in token ? tokenUsers.get(ctx.oidc) : undefined;
  if (user === undefined) return undefined;
  const changes = [(user.email_history?.at(-1)?.until ?? 0) * 1000, ...endsOf(user)];
  const now = clock();
  const isInSecond = changes.some((at) => Math.floor(at / 1000) === Math.floor(now / 1000));
  return isInSecond ? { [ISSUED_AT_MS]: now } : undefined;
}

/**
 * Returns the user with the e-mail address at the time when a token was issued; all else is current.
 * @param issuedAt epoch seconds. @param issuedAtMs epoch milliseconds, if the token has them.
 */
export function userAtIssue(
  user: Frozen<UserRecord>,
  { issuedAt, issuedAtMs }: { issuedAt: number; issuedAtMs?: number | undefined },
): Frozen<UserRecord> {
  const then = user.email_history?.find(({ until }) =>
    issuedAtMs === undefined ? issuedAt <= Math.floor(until) : issuedAtMs < until * 1000,
  );
  if (then === undefined) return user;
  const { email: _now, ...rest } = user;
  return {
    ...rest,
    ...(then.email === undefined ? {} : { email: then.email }),
    email_verified: then.email_verified,
  };
}

// Essential claims of a request (OpenID Connect Core §5.5.1): a login that cannot provide them fails.

/** The part of the `claims` parameter that matters here. */
interface Claims {
  id_token?: { acr?: { essential?: unknown; value?: unknown; values?: unknown } | null };
}

// docs/understand/decisions/authorize.md#an-essential-acr-that-cannot-be-met-gives-unmet_authentication_requirements
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

// Claims that the tenant declares, for tokens and wherever else an application reads a user. Their values are
// always the current ones (docs/do/claims.md).

/** The user, application and place that claims are for. */
interface ClaimsAbout extends ClaimsContext {
  /** Undefined for a token that an application gets for itself. */
  userId?: string | undefined;
  /** The id of the organization that the login is for. */
  organization?: string | undefined;
}

/** A declared claim with its value. */
export interface DeclaredClaimValue {
  declared: Frozen<CustomClaim>;
  value: unknown;
}

export interface CustomClaims {
  /** Returns the claims that have a value, by name. */
  of(about: ClaimsAbout): Promise<Record<string, unknown>>;
  /** Returns the claims that have a value, each with its declaration. */
  list(about: ClaimsAbout): Promise<DeclaredClaimValue[]>;
}

interface CustomClaimsDependencies {
  config: Pick<Config, 'settings' | 'client' | 'organization' | 'connection'>;
  users: Pick<Users, 'get' | 'identitiesOf'>;
  events: Pick<Events, 'record'>;
}

const NONE: readonly never[] = [];

// docs/understand/decisions/tokens.md#declared-claims-customclaims-are-paths-not-templates
/** Makes the reader of a tenant's declared claims. It reads nothing when none is declared for the place. */
export function createCustomClaims(deps: CustomClaimsDependencies): CustomClaims {
  const declaredFor = (about: ClaimsAbout) => claimsFor(deps.config.settings().customClaims ?? NONE, about);
  const list: CustomClaims['list'] = async (about) => {
    const declaredClaims = declaredFor(about);
    if (declaredClaims.length === 0) return [];
    const sources = await sourcesOf(deps, about);
    const found = declaredClaims
      .map((declared) => ({ declared, value: claimValue(declared, sources) }))
      .filter(({ value }) => value !== undefined);
    return withinLimit(
      found,
      ({ declared, value }) => [declared.claim, value],
      (description) => {
        const { clientId: client_id, userId: user_id } = about;
        deps.events.record({
          type: engineEvents.custom_claim_left_out,
          description,
          client_id,
          ...(user_id && { user_id }),
        });
      },
    );
  };
  return {
    list,
    of: async (about) =>
      declaredFor(about).length === 0
        ? {}
        : Object.fromEntries((await list(about)).map(({ declared, value }) => [declared.claim, value])),
  };
}

async function sourcesOf(
  { config, users }: CustomClaimsDependencies,
  { userId, clientId, organization }: ClaimsAbout,
): Promise<ClaimSources> {
  const user = userId === undefined ? undefined : await users.get(userId);
  const connectionName =
    user === undefined ? undefined : primaryIdentity(await users.identitiesOf(user.id))?.connection;
  return {
    user: user && { ...user, user_id: user.id },
    client: await config.client(clientId),
    organization: organization === undefined ? undefined : await config.organization(organization),
    connection: connectionName === undefined ? undefined : await config.connection(connectionName),
  };
}
