// Authenticates the caller of the Management API and checks the scopes of the token.
import type { Context } from 'koa';
import type { SecondFactor } from '../../engine/admission/second-factor.ts';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import { type CallerTokenReader, loginOfToken } from '../../engine/token/api-tokens.ts';
import type { AuthError } from '../../http/errors.ts';
import { isAdministratorId } from '../../records/administrators.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import type { Config } from '../../tenant/config.ts';
import { FIRST_PARTY_ACTS, lackFor } from '../../users/user-acts.ts';
import type { Caller, CallRules } from './call.ts';
import { apiError } from './errors.ts';

export interface CallerDependencies {
  /** The identifier of the Management API. */
  audience: string;
  readToken: CallerTokenReader;
  config: Pick<Config, 'client'>;
  /** @see SecondFactor.isSufficient */
  isSufficient: SecondFactor['isSufficient'];
  wallClock: Clock;
}

// docs/decisions/management-api.md#a-users-token-for-the-management-api-is-judged-like-one-for-the-my-account-api
/**
 * Reads the access token of a request (RFC 6750 §2.1; RFC 9449 §7.1).
 * @throws AuthError 401 if there is no token, the token is invalid or has ended, or the proof of possession fails; 401
 *   `insufficient_user_authentication` if a user's token does not prove their second factor; 400 if the Authorization
 *   header has another scheme.
 */
export async function callerOf(deps: CallerDependencies, ctx: Context): Promise<Caller> {
  const header = ctx.get('Authorization');
  if (header === '') throw apiError(401, 'Missing authentication');
  const token = presentedToken(ctx);
  if (token === undefined) throw apiError(400, 'Bad HTTP authentication header format', 'Bearer');
  const result = await deps.readToken(ctx, token.value, deps.audience);
  if ('fault' in result) throw refusal(result.fault);
  const { subject, clientId, scopes, ofUser } = result;
  // A token ends with the client that it was issued to.
  const client = await deps.config.client(clientId);
  if (client === undefined) throw refusal('invalid');
  const caller = { subject, clientId, scopes: new Set(scopes), isUser: ofUser !== undefined };
  if (ofUser === undefined) {
    raiseStanding('trusted');
    return caller;
  }
  // Administrators change their accounts at the console.
  if (isAdministratorId(subject)) throw refusal('invalid');
  const login = loginOfToken(ofUser);
  if (!(await deps.isSufficient(login, ofUser.user))) throw insufficientLogin();
  raiseStanding('known');
  return {
    ...caller,
    isThirdParty: client.is_first_party === false,
    mayDo: (act) => lackFor(act, login, epochSeconds(deps.wallClock)) === undefined,
  };
}

/** The error for a login that is too old or lacks the second factor (RFC 9470 §3), as for the My Account API. */
function insufficientLogin(): AuthError {
  const message = 'A recent login by the user, with their second factor, is required.';
  return apiError(401, message, 'insufficient_user_authentication');
}

/**
 * Checks that a user's token is enough for what a call does: its application, and its login.
 * @throws AuthError 403; 401 `insufficient_user_authentication`
 */
function requireLogin({ currentUserAct, method }: CallRules, { isThirdParty, mayDo }: Caller): void {
  if (currentUserAct === undefined && method === 'GET') return;
  if (isThirdParty === true && currentUserAct !== undefined && FIRST_PARTY_ACTS.has(currentUserAct))
    throw apiError(403, 'Third-party applications cannot do this.', 'operation_not_supported');
  if (currentUserAct === undefined || mayDo?.(currentUserAct) !== true) throw insufficientLogin();
}

function refusal(fault: 'expired' | 'signature' | 'invalid'): AuthError {
  const messages = {
    expired: 'Expired token received for JSON Web Token validation',
    signature: 'Invalid signature received for JSON Web Token validation',
    invalid: 'Invalid token',
  };
  return apiError(401, messages[fault]);
}

/**
 * Checks that the caller may make a call.
 * @throws AuthError 403 `insufficient_scope`, with the message that deploy tools parse; 403 if a user's token is used
 *   at another user's path; 401 `insufficient_user_authentication` if its login is not enough for the call.
 */
export function authorize(call: CallRules, caller: Caller, params: Readonly<Record<string, string>>): void {
  const { scopes, allScopes, currentUserScopes = [] } = call;
  const has = (scope: string) => caller.scopes.has(scope);
  if (caller.isUser) {
    // Whatever other scopes it has, a user's token reaches that user alone.
    if (!currentUserScopes.some(has))
      throw insufficient(currentUserScopes.length > 0 ? currentUserScopes : scopes);
    // The owner is the first parameter: in `/users/:id/identities/:provider/:user_id`, the last one is the linked
    // identity's.
    const owner = /^\/users\/:(\w+)/.exec(call.path)?.[1];
    if (owner !== undefined && params[owner] !== caller.subject) {
      throw apiError(403, 'User to be acted on does not match subject in bearer token.');
    }
    requireLogin(call, caller);
    return;
  }
  const isAllowed = caller.administrator === undefined ? hasScopes(call, has) : allowsRole(call, has);
  if (!isAllowed) throw insufficient([...(allScopes ?? scopes), ...currentUserScopes]);
}

function hasScopes({ scopes, allScopes }: CallRules, has: (scope: string) => boolean): boolean {
  return allScopes === undefined ? scopes.some(has) : allScopes.every(has);
}

/** Whether an administrator whose role has the scopes may make a call. */
export function allowsRole(call: CallRules, has: (scope: string) => boolean): boolean {
  return hasScopes(call, has) && (call.roleScopes ?? []).every(has);
}

function insufficient(scopes: readonly string[]): AuthError {
  return apiError(403, `Insufficient scope, expected any of: ${scopes.join(',')}`, 'insufficient_scope');
}
