// Who is at the account page: a login that was made for it, within the session of the browser, and kept by a cookie of
// its own. What has happened since is asked with every request.
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { admissionOf } from '../../engine/admission.ts';
import type { Sessions } from '../../engine/sessions.ts';
import type { FactorDependencies, PageState } from '../../factors/factor.ts';
import { browserCookie } from '../../http/browser-cookie.ts';
import { AuthError } from '../../http/errors.ts';
import { isAdministratorId } from '../../records/administrators.ts';
import type { Client } from '../../records/collections.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import type { Login } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import { type Actor, actingAt, FRESH_SECONDS, requireFreshLogin, requireRight } from '../actor.ts';
import { STEP_UP } from '../errors.ts';
import { isOwnApplication } from './callbacks.ts';

export interface AccountSessionDependencies extends FactorDependencies {
  sessions: Pick<Sessions, 'isOpen'>;
}

/** Somebody at the page, by a login whose id is that of the browser's session. */
export interface AtAccount extends Actor {
  /** The application that the login was for. */
  client: Client;
  /** The name of the connection that they came by. */
  connection: string;
  /** Whether the login is recent enough for what must not be done by whoever finds an open browser. */
  isFresh: boolean;
  /**
   * What a form carries to say whose page it was on: the user's id; of an administrator something that these pages alone can
   * show. Pages of the same origin may have scripts of the tenant's, which can send forms, too, with the token of the browser.
   */
  stamp: string;
  /** Whether it is recent, and its provider does not say that its user was asked there: a code makes up for that. */
  isUnproved: boolean;
  /** What the pages know on which a second factor is enrolled. */
  pages: PageState;
}

const PURPOSE = 'account_page';
/** The page is left open for so long, seconds; then it asks the session anew. */
const OPEN_SECONDS = 3600;

// `lax`: people come to the page by links in mails.
const COOKIE = browserCookie('__Host-gatehouse_account', { sameSite: 'lax' });

/** What of a login is kept for the page. */
export interface Kept {
  clientId: string;
  sid: string;
  login: Login;
  /** What stood for the user's second factors when the session began. */
  factors: string;
  /** Of an account that is to be linked: what its login was asked for with (linking.ts). */
  link?: string | undefined;
}

/** Lets a browser in whose user has just logged in for the page. */
export async function enterAccount(
  { challenges, random }: Pick<AccountSessionDependencies, 'challenges' | 'random'>,
  ctx: Context,
  kept: Kept,
): Promise<void> {
  await leaveAccount({ challenges }, ctx);
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    // Each is for itself: the same person may be at the page in several browsers.
    subject: random(16).toString('hex'),
    userId: kept.login.userId,
    ttlSeconds: OPEN_SECONDS,
    data: { ...kept },
  });
  COOKIE.give(ctx, secret);
}

/** Ends what {@link enterAccount} began. */
export async function leaveAccount(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<void> {
  const secret = COOKIE.secret(ctx);
  if (secret === undefined) return;
  COOKIE.forget(ctx);
  await challenges.spendTicket(PURPOSE, secret);
}

/**
 * Who is at the page.
 * @returns undefined for nobody: who never came in, or whose session, password or account has ended since.
 */
export async function atAccount(
  deps: AccountSessionDependencies,
  ctx: Context,
): Promise<AtAccount | undefined> {
  const kept = await keptOf(deps, ctx);
  if (kept === undefined) return undefined;
  const { clientId, sid, login, pages } = kept;
  const [{ user, refusal }, isOpen, client] = await Promise.all([
    admissionOf(deps.users, login),
    deps.sessions.isOpen(sid),
    deps.config.client(clientId),
  ]);
  if (user === undefined || refusal !== undefined || !isOpen) return undefined;
  if (client === undefined || !isOwnApplication(client)) return undefined;
  const actor = actorOf(deps, ctx, { ...kept, user });
  // A second factor that was added or removed elsewhere ends this as it ends tokens.
  const isRight = await holds(requireRight(deps, actor));
  if (!isRight) return undefined;
  const isFresh = await holds(requireFreshLogin(deps, actor));
  const age = epochSeconds(deps.wallClock) - login.authTime;
  const isUnproved = login.isTimeUnproved === true && age <= FRESH_SECONDS;
  const stamp = stampOf(ctx, user.id);
  const shown = { client, connection: login.connection, stamp, pages: pages ?? {} };
  return { ...actor, ...shown, isFresh, isUnproved };
}

/** @see AtAccount.stamp */
function stampOf(ctx: Context, userId: string): string {
  const secret = COOKIE.secret(ctx);
  if (!isAdministratorId(userId) || secret === undefined) return userId;
  return createHmac('sha256', secret).update('account form').digest('base64url');
}

/** What the browser's cookie stands for; undefined where it has none, or it is over. */
export async function keptOf(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<(Kept & { pages?: PageState }) | undefined> {
  const secret = COOKIE.secret(ctx);
  const met =
    secret === undefined
      ? undefined
      : await challenges.peekTicket<Kept & { pages?: PageState }>(PURPOSE, secret);
  return met?.data;
}

/**
 * Takes back the links that a session which has ended may have asked for, and with them all others of the user: a new
 * password or address must not come of it any more. Being at the page ends with its session by itself.
 */
export async function endLinksOf(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  userId: string,
): Promise<void> {
  await challenges.revokeAllOf(userId, PURPOSE);
}

/** Whether a login proves the password and the second factors that its user has now. */
export function mayEnter(
  deps: AccountSessionDependencies,
  ctx: Context,
  kept: Kept & { user: User },
): Promise<boolean> {
  return holds(requireRight(deps, actorOf(deps, ctx, kept)));
}

/** Keeps what the pages know on which a second factor is enrolled. */
export async function rememberPages(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
  state: PageState,
): Promise<void> {
  await challenges.keepWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'pages', { ...state });
}

/** Somebody at the page has just proved that they are there. @returns what is kept of it; undefined where it is over. */
export async function provedNow(
  { challenges, wallClock }: Pick<AccountSessionDependencies, 'challenges' | 'wallClock'>,
  ctx: Context,
): Promise<Kept | undefined> {
  const kept = await keptOf({ challenges }, ctx);
  if (kept === undefined) return undefined;
  const login: Login = { ...kept.login, authTime: epochSeconds(wallClock), isTimeUnproved: false };
  await challenges.keepWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'login', login);
  return { ...kept, login };
}

/** Somebody at the page has just used a second factor for the first time: it is asked for no second time. @param amr of it. */
export async function provedFactor(
  { challenges }: Pick<AccountSessionDependencies, 'challenges'>,
  ctx: Context,
  amr: readonly string[],
): Promise<void> {
  const login = (await keptOf({ challenges }, ctx))?.login;
  if (login === undefined) return;
  const proved: Login = { ...login, isTimeUnproved: false, amr: [...new Set([...login.amr, ...amr, 'mfa'])] };
  await challenges.keepWithTicket(PURPOSE, COOKIE.secret(ctx) ?? '', 'login', proved);
}

/** Who has made a login, as who acts by it. */
export function actorOf(
  { config }: Pick<AccountSessionDependencies, 'config'>,
  ctx: Context,
  { user, clientId, sid, login, factors }: Kept & { user: User },
): Actor {
  const { amr, credentialVersion } = login;
  const authTime = login.isTimeUnproved === true ? undefined : login.authTime;
  return actingAt({ config }, ctx, {
    user,
    clientId,
    login: { id: sid, amr, authTime, credentialVersion, factors },
  });
}

/** Whether a login is good for something: whether nothing more is asked of it. */
export async function holds(judged: Promise<void>): Promise<boolean> {
  try {
    await judged;
    return true;
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.error === STEP_UP) return false;
    throw thrown;
  }
}
