// Connecting an account at another provider, in three steps: an application asks with its user's token and gets an
// `auth_session`; a ticket takes the browser to the provider; what the provider gave waits, sealed, for the `connect_code`
// that the browser brings back to the application. The code alone is worth nothing, nor is the session: whoever sends
// somebody else to a provider with a ticket of their own never sees the code.
import { AuthError } from '../../http/errors.ts';
import type { Challenges } from '../../protection/challenges.ts';
import type { Random } from '../../runtime/random.ts';
import { isSameSecret, sha256 } from '../../runtime/secrets.ts';
import { isSealed, openValue, sealValue } from '../../store/sealing/members.ts';
import type { ConnectedIdentity } from '../../users/connected-accounts.ts';
import { providerKey, type SealingDependencies } from '../provider-session.ts';

/** An account that is being connected. */
export interface Connecting {
  id: string;
  userId: string;
  clientId: string;
  /** The login that asked for it. */
  login: string;
  connectionId: string;
  scopes: readonly string[];
  /** Where the browser goes back to, with the application's own `state`. */
  redirectUri: string;
  state?: string | undefined;
  /** RFC 7636, `S256`. */
  codeChallenge?: string | undefined;
  /** Further parameters for the provider. */
  additional: Readonly<Record<string, string>>;
}

const TICKET = 'connect_account';
const SESSION = 'connect_session';
const CODE = 'connect_code';

/** How long the browser may take to come for its way to the provider, seconds. */
export const TICKET_SECONDS = 300;
/** As long as a provider's own pages may take. */
const SESSION_SECONDS = 3600;
const CODE_SECONDS = 300;

export interface ConnectingDependencies extends SealingDependencies {
  challenges: Challenges;
  random: Random;
}

/** Begins. @returns the application's session, and the browser's ticket. */
export async function beginConnecting(
  { challenges, random }: Pick<ConnectingDependencies, 'challenges' | 'random'>,
  wanted: Omit<Connecting, 'id'>,
): Promise<{ authSession: string; ticket: string }> {
  const connecting: Connecting = { ...wanted, id: random(16).toString('base64url') };
  const { userId, clientId, connectionId } = wanted;
  const kept = {
    // One at a time: the next takes its place, so that no number of requests fills the store.
    subject: `${userId}\n${clientId}\n${connectionId}`,
    userId,
    data: { connecting },
  };
  const session = await challenges.issueTicket({ ...kept, purpose: SESSION, ttlSeconds: SESSION_SECONDS });
  const ticket = await challenges.issueTicket({ ...kept, purpose: TICKET, ttlSeconds: TICKET_SECONDS });
  return { authSession: session.secret, ticket: ticket.secret };
}

/** What a browser's ticket is for, which is thereby used up. */
export async function takeConnectTicket(
  { challenges }: Pick<ConnectingDependencies, 'challenges'>,
  ticket: string,
): Promise<Connecting | undefined> {
  return (await challenges.spendTicket(TICKET, ticket))?.data.connecting as Connecting | undefined;
}

/** Keeps what the provider gave. @returns the code for it. */
export async function keepConnected(
  deps: ConnectingDependencies,
  { id, userId }: Connecting,
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

/** Who completes, and by what. */
export interface Completion extends Pick<Connecting, 'userId' | 'clientId' | 'login' | 'redirectUri'> {
  authSession: string;
  connectCode: string;
  codeVerifier: string | undefined;
}

/**
 * What was connected: of any number of racers one gets it.
 * @throws AuthError 400 `invalid_grant` for a session or a code that is unknown, used, over or another's, and for a wrong
 *   verifier, which uses the code up.
 */
export async function completeConnecting(
  deps: ConnectingDependencies,
  { authSession, connectCode, codeVerifier, ...by }: Completion,
): Promise<{ connecting: Connecting } & ConnectedIdentity> {
  const { challenges } = deps;
  const met = await challenges.peekTicket(SESSION, authSession);
  const connecting = met?.data.connecting as Connecting | undefined;
  if (connecting === undefined || !isBy(connecting, by)) throw notGood();
  const code = await challenges.peekTicket(CODE, connectCode);
  if (code?.data.id !== connecting.id) throw notGood();
  if ((await challenges.spendTicket(CODE, connectCode)) === undefined) throw notGood();
  if ((await challenges.spendTicket(SESSION, authSession)) === undefined) throw notGood();
  if (!isVerifier(connecting.codeChallenge, codeVerifier) || !isSealed(code.data.identity)) throw notGood();
  const opened = openValue(await providerKey(deps), placeOf(connecting.id), code.data.identity);
  return { connecting, ...(opened as ConnectedIdentity) };
}

function isBy(connecting: Connecting, by: Omit<Completion, 'authSession' | 'connectCode' | 'codeVerifier'>) {
  return (['userId', 'clientId', 'login', 'redirectUri'] as const).every(
    (member) => connecting[member] === by[member],
  );
}

/** RFC 7636 §4.6. A verifier for which there was no challenge is a mistake, too (RFC 9700 §2.1.1). */
function isVerifier(challenge: string | undefined, verifier: string | undefined): boolean {
  if (challenge === undefined || verifier === undefined) return challenge === verifier;
  return isSameSecret(sha256(verifier), challenge);
}

/** One answer for all. */
function notGood(): AuthError {
  return new AuthError(400, 'invalid_grant', 'Invalid or expired auth_session or connect_code.');
}
