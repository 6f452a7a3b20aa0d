// The second factor that a login may lack: what the end of a login asks, and what a feature answers.
import type { Context } from 'koa';
import type { FactorsAsked } from '../actions/factors-asked.ts';
import type { AuthError } from '../http/errors.ts';
import type { Login } from '../users/login.ts';
import type { User } from '../users/user.ts';
import type { AuthorizationDetail } from './authorization-details.ts';

/** What a token request asked for that a second factor was missing for. */
export interface CompletedRequest {
  scope: string;
  /** A resource indicator, as the engine has it. */
  resource?: string;
  /** The id of the organization that it was for. */
  organization?: string;
  gty: string;
  firstFactor: Login;
  /** What its user has allowed in the API's own terms (RFC 9396). */
  authorizationDetails?: AuthorizationDetail[];
}

/**
 * The request that a login of another kind completes: one that waited for its user elsewhere, or quotes a token.
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

/** Whether a login needs a second factor, and what is answered where it lacks one. */
export interface SecondFactor {
  /** Whether a second factor is needed that the login has not had. */
  isDemanded(login: JudgedLogin, asked: AskedOfLogin): Promise<boolean>;
  /** What stands for the second factors that a user has: another text after each change of them. */
  factorsOf(userId: string): Promise<string>;
  /** Whether a user can be asked for one of these at the pages. */
  standingOf(user: User, asked: FactorsAsked, amr: readonly string[]): Promise<FactorStanding>;
  /** Whether the user wants no second factor in this browser. */
  isRemembered(ctx: Context, login: JudgedLogin): Promise<boolean>;
  /** Whether a login has had one of these, as far as its methods tell. */
  wasGiven(asked: FactorsAsked, amr: readonly string[]): boolean;
  /**
   * Sends the browser to pages where its user gives one of these, who is at no login; once, in this browser alone.
   * @returns where it is sent. Afterwards it goes to `back.path`, with a ticket for what was given.
   */
  challenge(ctx: Context, asked: FactorChallenge): Promise<string>;
  /** The second factors that a user has, by their types. */
  enrolled(user: User): Promise<{ type: string }[]>;
  /** What an access token for an API says of its login, beside what those of all APIs say. */
  tokenClaims(audience: string, login: JudgedLogin): Promise<Record<string, unknown>>;
  /** The refusal at the token endpoint, with which the application goes on to the second factor. */
  refusal(userId: string, clientId: string, request: CompletedRequest): Promise<AuthError>;
  /** The error of such a refusal: the exchange goes on by another request. */
  error: string;
  /** What a silent request is told (OpenID Connect Core §3.1.2.6) where the second factor is missing. */
  description: string;
}

/** A second factor that is asked for beside a login. */
export interface FactorChallenge {
  user: User;
  clientId: string | undefined;
  factors: FactorsAsked;
  /** What they were at, and where they go on. */
  back: { uid: string; path: string; step: string };
}

/**
 * `open`: one can be asked for. `had`: those that were to be enrolled are. `later`: one that the user has is given before
 * another is enrolled. `none`: nobody can give one.
 */
type FactorStanding = 'open' | 'had' | 'later' | 'none';

/** What of a login tells whether its second factor was given. */
export interface JudgedLogin extends Pick<Login, 'userId' | 'amr' | 'credentialVersion'> {
  /** {@link SecondFactor.factorsOf} when its session began; undefined for a login without one, which is just over. */
  factors?: string | undefined;
  /** When its last proof was given, epoch seconds; undefined where whoever gets the tokens was not there then. */
  authTime?: number | undefined;
  /** The `sid` of its session, where there is one. */
  sessionId?: string | undefined;
  /** What stands for the grant of its tokens, those by refresh tokens included. */
  grant?: string | undefined;
}

/** What a request asks of the login that answers it. */
export interface AskedOfLogin {
  clientId: string;
  /** The connection that the login must have come by, where the request names one. */
  connection?: string | undefined;
  /** The organization that the login must be for, by id. */
  organization?: string | undefined;
  /** The ticket of the invitation that the login accepts. */
  invitation?: string | undefined;
  /** The context classes that the application asks for. */
  acrValues: readonly string[];
  /** The API that tokens are asked for; undefined for none, or the tenant's default one. */
  audience: string | undefined;
  /** The login ended at our pages, which asked for a second factor where one was needed. */
  isComplete?: boolean | undefined;
  /** In the browser a device may be known. */
  browser: boolean;
  /** At the token endpoint: where the user is; undefined when a server speaks for them and does not say. */
  userAddress?: string | undefined;
  /** The user as just read, where that was done. */
  user?: User;
  /** The request, for the browser's cookies and address. */
  ctx: Context;
}
