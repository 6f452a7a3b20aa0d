// The session of the account page: a login that was made for it, bound to the browser's session and stored under
// its own cookie. Each request checks that the login is still valid.
// docs/understand/decisions/console-account.md#the-account-page-has-a-session-of-its-own-and-checks-the-login-at-each-request
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { admissionOf } from '../../../engine/admission/admission.ts';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { AuthError } from '../../../http/errors.ts';
import { browserCookie } from '../../../http/server/browser-cookie.ts';
import type { Client } from '../../../records/collections.ts';
import { isAdministratorId } from '../../../records/users/administrators.ts';
import { MFA_POLICY } from '../../../records/users/authentication-classes.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { FRESH_SECONDS, type Login, lackFor, type UserAct, withSecondFactor } from '../../../users/login.ts';
import type { User } from '../../../users/user.ts';
import type { FactorDependencies, PageState } from '../../factors/factor.ts';
import { STEP_UP } from '../account-errors.ts';
import { type Actor, actorFrom, requireLoginFor } from '../actor.ts';
import { isOwnApplication } from './account-callbacks.ts';

export interface AccountSessionDependencies extends FactorDependencies {
  sessions: Pick<Sessions, 'isOpen'>;
}

/** A user at the account page. The id of their login is that of the browser's session. */
export interface PageActor extends Actor {
  /** The application that the login was for. */
  client: Client;
  /** The name of the connection of the login. */
  connection: string;
  /** Whether the login is fresh, as changes that somebody at an open browser must not make require. */
  isFresh: boolean;
  /**
   * What the forms of the page carry to show that they belong to this user: the user id, or, for administrators, a
   * value that only these pages can show. Pages of the same origin may have scripts of the tenant, which can send
   * forms with the browser's CSRF token.
   */
  formToken: string;
  /**
   * Whether the login is recent but its provider does not say that it asked for a proof. A code makes up for that.
   */
  isUnproved: boolean;
  /** The state of the pages on which a second factor is enrolled. */
  pages: PageState;
}

const PURPOSE = 'account_page';
/** Lifetime of the page's session in seconds. After that the browser's session is asked again. */
const OPEN_SECONDS = 3600;

// `lax`, because people open the page from links in mails.
const COOKIE = browserCookie('__Host-gatehouse_account', { sameSite: 'lax' });

export interface AccountSession {
  clientId: string;
  sid: string;
  login: Login;
  /** The id of the last change of the user's factors when the session began. */
  factors: string;
  /** The ticket of the account link that this login is for, if any (linking.ts). */
  link?: string | undefined;
}

/** Begins the session of a user who has just logged in to the page. */
export async function startAccountSession(
  { challenges, random }: Pick<AccountSessionDependencies, 'challenges' | 'random'>,
  ctx: Context,
  session: AccountSession,
): Promise<void> {
  await endAccountSession({ challenges }, ctx);
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    // A random subject: a user may be at the page in several browsers.
    subject: random(16).toString('hex'),
    userId: session.login.userId,
    ttlSeconds: OPEN_SECONDS,
    data: { ...session },
  });
  COOKIE.set(ctx, secret);
}

/** Ends the session that {@link startAccountSession} began. */
export async function endAccountSession(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<void> {
  const secret = COOKIE.secret(ctx);
  if (secret === undefined) return;
  COOKIE.clear(ctx);
  await challenges.spendTicket(PURPOSE, secret);
}

/** @returns undefined when nobody is logged in, or the session, password or account has ended since. */
export async function pageActorOf(
  deps: AccountSessionDependencies,
  ctx: Context,
): Promise<PageActor | undefined> {
  const session = await accountSessionOf(deps, ctx);
  if (session === undefined) return undefined;
  const { clientId, sid, login, pages } = session;
  const [{ user, refusal }, isOpen, client] = await Promise.all([
    admissionOf(deps.users, login),
    deps.sessions.isOpen(sid),
    deps.config.client(clientId),
  ]);
  if (user === undefined || refusal !== undefined || !isOpen) return undefined;
  if (client === undefined || !isOwnApplication(client)) return undefined;
  const actor = actorOfLogin(ctx, { ...session, user });
  // A second factor added or removed elsewhere ends this session, as it ends access tokens.
  const isValid = await passes(requireLoginFor(deps, actor, 'account_page'));
  if (!isValid) return undefined;
  const isFresh = mayDo(deps, actor, 'factor');
  const age = epochSeconds(deps.wallClock) - login.authTime;
  const isUnproved = login.presence === 'unconfirmed' && age <= FRESH_SECONDS;
  const formToken = formTokenOf(ctx, user.id);
  const pageMembers = { client, connection: login.connection, formToken, pages: pages ?? {} };
  return { ...actor, ...pageMembers, isFresh, isUnproved };
}

/** Returns {@link PageActor.formToken}. */
function formTokenOf(ctx: Context, userId: string): string {
  const secret = COOKIE.secret(ctx);
  if (!isAdministratorId(userId) || secret === undefined) return userId;
  return createHmac('sha256', secret).update('account form').digest('base64url');
}

/** Returns what the browser's cookie stands for; undefined without a cookie, or when it has expired. */
export async function accountSessionOf(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<(AccountSession & { pages?: PageState }) | undefined> {
  const secret = COOKIE.secret(ctx);
  const verifiedChallenge =
    secret === undefined
      ? undefined
      : await challenges.peekTicket<AccountSession & { pages?: PageState }>(PURPOSE, secret);
  return verifiedChallenge?.data;
}

/**
 * Revokes the links of e-mail changes of a user, because a session that has ended may have requested them. The
 * session of the account page needs no revocation: it ends with the browser's session.
 */
export async function revokeLinksOf(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  userId: string,
): Promise<void> {
  await challenges.revokeAllOf(userId, PURPOSE);
}

/** Returns whether a login proves the password and the second factors that its user has now. */
export function isSufficient(
  deps: AccountSessionDependencies,
  ctx: Context,
  session: AccountSession & { user: User },
): Promise<boolean> {
  return passes(requireLoginFor(deps, actorOfLogin(ctx, session), 'account_page'));
}

/** Whether the login of somebody at the page has what an act needs. Otherwise they have to authenticate again. */
export function mayDo(
  { wallClock }: Pick<AccountSessionDependencies, 'wallClock'>,
  { login }: Pick<Actor, 'login'>,
  act: UserAct,
): boolean {
  return lackFor(act, login, epochSeconds(wallClock)) === undefined;
}

/** Stores the state of the pages on which a second factor is enrolled. */
export async function savePages(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
  state: PageState,
): Promise<void> {
  await challenges.storeWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'pages', { ...state });
}

/**
 * Records that the user has just authenticated again.
 * @returns the stored login; undefined when the session has ended.
 */
export async function recordAuthentication(
  { challenges, wallClock }: Pick<AccountSessionDependencies, 'challenges' | 'wallClock'>,
  ctx: Context,
): Promise<AccountSession | undefined> {
  const session = await accountSessionOf({ challenges }, ctx);
  if (session === undefined) return undefined;
  const login: Login = { ...session.login, presence: 'present', authTime: epochSeconds(wallClock) };
  await challenges.storeWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'login', login);
  return { ...session, login };
}

/**
 * Adds a second factor to the login after its first use, so that it is not asked for again.
 * @param amr that of the factor.
 */
export async function recordFactor(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
  amr: readonly string[],
): Promise<void> {
  const login = (await accountSessionOf({ challenges }, ctx))?.login;
  if (login === undefined) return;
  const { acr = MFA_POLICY, authTime, ip } = login;
  const proved = withSecondFactor(login, { amr, acr, authTime, ip });
  await challenges.storeWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'login', proved);
}

export function actorOfLogin(
  ctx: Context,
  { user, clientId, sid, login, factors }: AccountSession & { user: User },
): Actor {
  return actorFrom(ctx, { user, clientId, login: { ...login, id: sid, factors } });
}

/** @param check a check that throws {@link STEP_UP} when the login does not suffice. */
export async function passes(check: Promise<void>): Promise<boolean> {
  try {
    await check;
    return true;
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.error === STEP_UP) return false;
    throw thrown;
  }
}
