// The contract between the engine, which needs to know whether a login lacks a second factor, and the feature that
// decides it.
import type { Context } from 'koa';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { AuthError } from '../../http/errors.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { AuthorizationDetail } from '../base/authorization-details.ts';
import { requestedAudience } from '../base/request-extensions.ts';

/**
 * A token request that a later one completes: one that was refused for lack of a second factor, that waited for its
 * user (CIBA, device code), or whose scope and API come from an exchanged token.
 */
export interface CompletedRequest {
  scope: string;
  /** The API, as a resource indicator (RFC 8707). */
  resource?: string;
  /** The id of the organization that the login is for. */
  organization?: string;
  gty: string;
  firstFactor: Login;
  /** The authorization details that the user has allowed (RFC 9396). */
  authorizationDetails?: AuthorizationDetail[];
}

/**
 * Returns the request that a login by CIBA, device code or token exchange completes.
 * @param gty the grant type, as access tokens have it in `gty`.
 */
export function completedRequest(
  gty: string,
  firstFactor: Login,
  { scope, resource, organization, authorizationDetails }: RequestedAccess,
): CompletedRequest {
  return {
    scope,
    gty,
    firstFactor,
    ...(resource !== undefined && { resource }),
    ...(organization !== undefined && { organization }),
    ...(authorizationDetails !== undefined && { authorizationDetails }),
  };
}

interface RequestedAccess {
  scope: string;
  /** @see CompletedRequest.resource */
  resource: string | undefined;
  /** @see CompletedRequest.organization */
  organization: string | undefined;
  /** @see CompletedRequest.authorizationDetails */
  authorizationDetails?: AuthorizationDetail[] | undefined;
}

/** Decides whether a login needs a second factor, and how it is asked for. */
export interface SecondFactor {
  /** Whether a second factor is needed that the login has not had. */
  isRequired(login: AuthenticatedLogin, requirements: LoginRequirements): Promise<boolean>;
  /** Whether a login proves the credential and the second factors that its user has now. */
  isSufficient(login: AuthenticatedLogin, user: User): Promise<boolean>;
  /** Returns a text that changes whenever the second factors of a user change. */
  factorsOf(userId: string): Promise<string>;
  /**
   * Whether the login pages can ask a user for one of these factors.
   * @param amr the methods of the login so far.
   */
  availabilityOf(user: User, factors: RequiredFactors, amr: readonly string[]): Promise<FactorAvailability>;
  /** Whether the user has chosen to skip the second factor in this browser. */
  isRemembered(ctx: Context, login: AuthenticatedLogin): Promise<boolean>;
  includesFactor(factors: RequiredFactors, amr: readonly string[]): boolean;
  /**
   * Starts a challenge for one of these factors outside a login. It can be answered once, in this browser.
   * @returns the URL of its page, which sends the browser on to `back.path` with a ticket for the factor that was
   *   given.
   */
  challenge(ctx: Context, challenge: FactorChallenge): Promise<string>;
  enrolledFactors(user: User): Promise<{ type: string }[]>;
  /** Returns the claims that access tokens for this API have in addition to those of all APIs. */
  tokenClaims(audience: string, login: TokenLogin): Promise<Record<string, unknown>>;
  /** Returns the `mfa_required` error of the token endpoint, with the token for the MFA API. */
  refusal(userId: string, clientId: string, request: CompletedRequest): Promise<AuthError>;
  /** The error code of {@link refusal}. */
  error: string;
  /**
   * The description of `login_required` (OpenID Connect Core §3.1.2.6) for a silent request that lacks the second
   * factor.
   */
  description: string;
}

/** A challenge for a second factor outside a login. */
export interface FactorChallenge {
  user: User;
  clientId: string | undefined;
  factors: RequiredFactors;
  /** The request that waits for the factor, the path where it resumes, and its step. */
  back: { uid: string; path: string; step: string };
}

/**
 * `available`: one can be asked for. `enrolled`: the factor to enroll is enrolled already. `needs-other-factor`: the user
 * has to give a factor that they have before they enroll another. `unavailable`: no factor can be given.
 */
type FactorAvailability = 'available' | 'enrolled' | 'needs-other-factor' | 'unavailable';

/** The members of a login from which {@link SecondFactor.isRequired} decides. */
export interface AuthenticatedLogin extends Pick<Login, 'userId' | 'amr' | 'credentialVersion'> {
  /**
   * {@link SecondFactor.factorsOf} when the session began; undefined for a login that has just been completed and
   * has no session yet.
   */
  factors?: string | undefined;
  /** The `sid` of the session, where there is one. */
  sessionId?: string | undefined;
}

/** The login that an access token is issued for, as the token describes it. */
export interface TokenLogin extends AuthenticatedLogin, Pick<Login, 'presence'> {
  /** When the last proof was given, epoch seconds; undefined when that is not known. */
  authTime?: number | undefined;
  /** An identifier of the grant, which the tokens of all its refreshes share. */
  grant?: string | undefined;
}

/** The requirements of a request for the login that answers it. */
export interface LoginRequirements {
  clientId: string;
  /** The connection that the user has to log in with, where the request names one. */
  connection?: string | undefined;
  /** The organization that the login must be for, by id. */
  organization?: string | undefined;
  /** The ticket of the invitation that the login accepts. */
  invitation?: string | undefined;
  /** The authentication context classes that the application asks for. */
  acrValues: readonly string[];
  /** The identifier of the API that tokens are for; undefined for none, or for the tenant's default. */
  audience: string | undefined;
  /** Whether the login ended at our pages, which have asked for a second factor already. */
  isComplete?: boolean | undefined;
  /** Whether the request comes from the user's browser, which may be remembered. */
  browser: boolean;
  /** At the token endpoint: the user's address; undefined when a server asks and does not send it. */
  userAddress?: string | undefined;
  /** The user's record, where the caller has just read it. */
  user?: User;
  /** The request, for the browser's cookies and address. */
  ctx: Context;
}

// Reads from an authorization request what it demands of the login.

/**
 * Returns the connection, the organization, the context classes and the API that an authorization request asks for.
 * `acr` in the `claims` parameter means the same as `acr_values` (OIDC Core §5.5.1.1).
 * @param params the engine's, already checked.
 */
export function loginRequirements(
  params: Readonly<Record<string, unknown>> | undefined,
): Pick<LoginRequirements, 'connection' | 'organization' | 'invitation' | 'acrValues' | 'audience'> {
  const { acr_values: acrValues, claims, connection, organization, invitation } = params ?? {};
  return {
    connection: named(connection),
    organization: named(organization),
    invitation: named(invitation),
    acrValues: [...String(acrValues ?? '').split(' '), ...acrClaims(claims)].filter(Boolean),
    audience: requestedAudience(params),
  };
}

const named = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

function acrClaims(claims: unknown): string[] {
  if (typeof claims !== 'string' || claims === '') return [];
  const { id_token } = JSON.parse(claims) as {
    id_token?: { acr?: { value?: unknown; values?: unknown } | null };
  };
  const { value, values } = id_token?.acr ?? {};
  return [value, ...(Array.isArray(values) ? values : [])].filter((one) => typeof one === 'string');
}
