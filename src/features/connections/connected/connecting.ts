// Connecting an account at another provider takes three steps. The application requests it with its user's access token and
// gets an `auth_session`; the browser goes to the provider with a ticket; and what the provider gave is stored, sealed, until
// the application sends the `connect_code` that the browser brought back. Both the session and the code are needed: an
// attacker who lures a victim to a provider with the attacker's own ticket never gets the code.
// docs/understand/decisions/connections.md#connecting-an-account-does-not-require-a-login-within-the-last-ten-minutes

import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { isSameSecret, sha256 } from '../../../runtime/secrets.ts';
import { isSealed, openValue, sealValue } from '../../../store/sealing/records.ts';
import type { ConnectedIdentity } from '../../../users/users-connected-accounts.ts';
import { providerKey, type SealingDependencies } from '../redirect.ts';

export interface AccountConnection {
  id: string;
  userId: string;
  clientId: string;
  /** Identifies the login that the access token of the request belongs to. */
  login: string;
  connectionId: string;
  scopes: readonly string[];
  /** Where the browser goes back to. */
  redirectUri: string;
  /** The application's own `state`. */
  state?: string | undefined;
  /** The PKCE challenge (RFC 7636), by `S256`. */
  codeChallenge?: string | undefined;
  /** Additional parameters for the provider. */
  additional: Readonly<Record<string, string>>;
}

const TICKET = 'connect_account';
const SESSION = 'connect_session';
const CODE = 'connect_code';

/** Lifetime of the ticket that takes the browser to the provider, seconds. */
export const TICKET_SECONDS = 300;
/** How long a user may take at the provider, seconds. */
const SESSION_SECONDS = 3600;
/** Lifetime of the `connect_code`, seconds. */
const CODE_SECONDS = 300;

export interface AccountConnectionDependencies extends SealingDependencies {
  challenges: Challenges;
  random: Random;
}

/** @returns the `auth_session` for the application, and the ticket for the browser. */
export async function beginConnecting(
  { challenges, random }: Pick<AccountConnectionDependencies, 'challenges' | 'random'>,
  request: Omit<AccountConnection, 'id'>,
): Promise<{ authSession: string; ticket: string }> {
  const accountConnection: AccountConnection = { ...request, id: random(16).toString('base64url') };
  const { userId, clientId, connectionId } = request;
  const ticketFields = {
    // A new request replaces the one before, so that no number of requests can fill the store.
    subject: `${userId}\n${clientId}\n${connectionId}`,
    userId,
    data: { connecting: accountConnection },
  };
  const session = await challenges.issueTicket({
    ...ticketFields,
    purpose: SESSION,
    ttlSeconds: SESSION_SECONDS,
  });
  const ticket = await challenges.issueTicket({
    ...ticketFields,
    purpose: TICKET,
    ttlSeconds: TICKET_SECONDS,
  });
  return { authSession: session.secret, ticket: ticket.secret };
}

/** Returns the account connection that a ticket belongs to, and uses the ticket up; undefined if it is not valid. */
export async function spendConnectTicket(
  { challenges }: Pick<AccountConnectionDependencies, 'challenges'>,
  ticket: string,
): Promise<AccountConnection | undefined> {
  return (await challenges.spendTicket(TICKET, ticket))?.data.connecting as AccountConnection | undefined;
}

/** Stores what the provider gave, sealed. @returns the `connect_code` for it. */
export async function issueConnectCode(
  deps: AccountConnectionDependencies,
  { id, userId }: AccountConnection,
  identity: ConnectedIdentity,
): Promise<string> {
  const identitySealed = sealValue(await providerKey(deps), placeOf(id), identity);
  const { secret } = await deps.challenges.issueTicket({
    purpose: CODE,
    subject: id,
    userId,
    ttlSeconds: CODE_SECONDS,
    data: { id, identity: identitySealed },
  });
  return secret;
}

const placeOf = (id: string) => ({ collection: 'connectedAccounts', id, member: ['grant'] });

export interface Completion extends Pick<AccountConnection, 'userId' | 'clientId' | 'login' | 'redirectUri'> {
  authSession: string;
  connectCode: string;
  codeVerifier: string | undefined;
}

/**
 * Of several concurrent calls, exactly one succeeds.
 * @returns it, with what the provider gave.
 * @throws AuthError 400 `invalid_grant` for a session or code that is unknown, used, expired or not the caller's, and
 *   for a wrong code verifier, which uses the code up.
 */
export async function completeConnecting(
  deps: AccountConnectionDependencies,
  { authSession, connectCode, codeVerifier, ...caller }: Completion,
): Promise<{ accountConnection: AccountConnection } & ConnectedIdentity> {
  const { challenges } = deps;
  const verifiedChallenge = await challenges.peekTicket(SESSION, authSession);
  const accountConnection = verifiedChallenge?.data.connecting as AccountConnection | undefined;
  if (accountConnection === undefined || !belongsTo(accountConnection, caller)) throw invalidGrant();
  const code = await challenges.peekTicket(CODE, connectCode);
  if (code?.data.id !== accountConnection.id) throw invalidGrant();
  if ((await challenges.spendTicket(CODE, connectCode)) === undefined) throw invalidGrant();
  if ((await challenges.spendTicket(SESSION, authSession)) === undefined) throw invalidGrant();
  if (!isVerifier(accountConnection.codeChallenge, codeVerifier) || !isSealed(code.data.identity))
    throw invalidGrant();
  const identity = openValue(await providerKey(deps), placeOf(accountConnection.id), code.data.identity);
  return { accountConnection, ...(identity as ConnectedIdentity) };
}

function belongsTo(
  accountConnection: AccountConnection,
  caller: Omit<Completion, 'authSession' | 'connectCode' | 'codeVerifier'>,
) {
  return (['userId', 'clientId', 'login', 'redirectUri'] as const).every(
    (member) => accountConnection[member] === caller[member],
  );
}

/** Verifies PKCE (RFC 7636 §4.6). A verifier without a challenge is rejected, too (RFC 9700 §2.1.1). */
function isVerifier(challenge: string | undefined, verifier: string | undefined): boolean {
  if (challenge === undefined || verifier === undefined) return challenge === verifier;
  return isSameSecret(sha256(verifier), challenge);
}

/** Returns the error for every fault, so that it does not tell which part was wrong. */
function invalidGrant(): AuthError {
  return new AuthError(400, 'invalid_grant', 'Invalid or expired auth_session or connect_code.');
}
