// A login that is about to end, and the second factor that it may lack: what a feature answers, and what it is asked.
import type { Context } from 'koa';
import type { AuthError } from '../http/errors.ts';
import type { Login } from '../users/login.ts';

/** The login that a vendor grant was. */
export interface AuthenticatedUser extends Login {
  /** Authentication context class, in the ID token's `acr` where given. */
  acr?: string;
  /** The request that this one completes: its scopes, API and grant type are what tokens are issued for. */
  completes?: CompletedRequest;
  /** Further members of the token response. */
  extra?: Record<string, unknown>;
}

/** What a token request asked for that a second factor was missing for. */
export interface CompletedRequest {
  scope: string;
  /** A resource indicator, as the engine has it. */
  resource?: string;
  gty: string;
  firstFactor: Login;
}

/** Whether a login needs a second factor, and what is answered where it lacks one. */
export interface SecondFactor {
  /**
   * @param login.ctx the request, for the browser's cookies and address.
   * @returns whether a second factor is needed that the login has not had.
   */
  isDemanded(login: LoginToJudge): Promise<boolean>;
  /** What stands for the second factors that a user has: another text after each change of them. */
  factorsOf(userId: string): Promise<string>;
  /** What an access token for an API says of its login, beside what those of all APIs say. */
  tokenClaims(audience: string, login: JudgedLogin): Promise<Record<string, unknown>>;
  /** The refusal at the token endpoint, with which the application goes on to the second factor. */
  refusal(userId: string, clientId: string, request: CompletedRequest): Promise<AuthError>;
}

/** A login that tokens were issued for. */
export interface JudgedLogin extends Pick<Login, 'userId' | 'amr' | 'credentialVersion'> {
  /** {@link SecondFactor.factorsOf} when its session began; undefined for a login without one, which is just over. */
  factors?: string | undefined;
}

/** A login that is about to end. */
export interface LoginToJudge {
  userId: string;
  clientId: string;
  /** What the login has had so far. */
  amr: readonly string[];
  /** The context classes that the application asks for. */
  acrValues: readonly string[];
  /** The API that tokens are asked for; undefined for none, or the tenant's default one. */
  audience: string | undefined;
  /** The version of the credential that the login was proved by. */
  credentialVersion: number;
  /** Of a session: {@link SecondFactor.factorsOf} when it began. */
  factors?: string | undefined;
  /** In the browser a device may be known. */
  browser: boolean;
  /** At the token endpoint: where the user is; undefined when a server speaks for them and does not say. */
  userAddress?: string | undefined;
  ctx: Context;
}
