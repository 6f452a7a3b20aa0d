// The sessions of the console, which have a cookie of their own. Every request checks whether the user is still an
// administrator, with which role, and whether the password and the second factors are unchanged.
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { admissionOf } from '../../engine/admission/admission.ts';
import { AuthError } from '../../http/errors.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import { isSameOrigin } from '../../http/server/csrf.ts';
import {
  type AdministratorRole,
  CONSOLE_CLIENT,
  isAdministratorId,
} from '../../records/users/administrators.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Login } from '../../users/login.ts';
import { lackFor, type UserAct } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import { activeAuthenticators } from '../factors/policy.ts';
import { scopesOf } from '../management/roles/administrator-roles.ts';
import { memberOf } from './administrators/console-administrator-members.ts';

export interface ConsoleSessionDependencies extends FactorDependencies {
  store: Store;
  /** The scopes of the Management API. */
  scopes: readonly string[];
}

export interface Administrator {
  userId: string;
  name: string;
  email: string;
  role: AdministratorRole;
}

export interface ConsoleSession {
  /** The section of the navigation that the request is for. */
  section: string;
  administrator: Administrator;
  /** The login that it began with. */
  proof: LoginProof;
  /** Reports whether the role has a scope of the Management API, or one of the console's own. */
  can(scope: string): boolean;
  scopes: ReadonlySet<string>;
  /**
   * Whether the login is recent. Dangerous actions require that, so that someone who finds an open browser cannot do
   * them.
   */
  isFresh: boolean;
  /** The token by which forms and scripts prove to be the console's own. */
  token: string;
  /** The secret of a form that was kept until this login. */
  form: string | undefined;
}

const CONSOLE_SESSION = 'console_session';
/** Lifetime of a session, seconds. */
const SESSION_SECONDS = 8 * 3600;
/**
 * How long an expired session can still be recognized as the sender of a late form, seconds. It permits nothing else.
 */
const RECOGNIZED_SECONDS = 16 * 3600;

// `lax`, because administrators follow links in mails and chats.
const COOKIE = browserCookie('__Host-gatehouse_console', { sameSite: 'lax' });

/** What shows that an administrator has logged in, and whether that still counts. */
export interface LoginProof {
  login: Login;
  /** The fingerprint of the administrator's second factors at the login. */
  factors: string;
}

interface StoredLogin extends LoginProof {
  /** See {@link ConsoleSession}. */
  form?: string;
}

/** Opens a session for the administrator who has just logged in. */
export async function openConsoleSession(
  { challenges, random }: Pick<ConsoleSessionDependencies, 'challenges' | 'random'>,
  ctx: Context,
  storedLogin: StoredLogin,
): Promise<void> {
  await endConsoleSession({ challenges }, ctx);
  const { secret } = await challenges.issueTicket({
    purpose: CONSOLE_SESSION,
    // A subject of its own for each session: the same administrator may use several browsers.
    subject: random(16).toString('hex'),
    userId: storedLogin.login.userId,
    ttlSeconds: SESSION_SECONDS + RECOGNIZED_SECONDS,
    data: { ...storedLogin },
  });
  COOKIE.set(ctx, secret);
}

export async function endConsoleSession(
  { challenges }: Pick<ConsoleSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<void> {
  const secret = COOKIE.secret(ctx);
  if (secret === undefined) return;
  COOKIE.clear(ctx);
  await challenges.spendTicket(CONSOLE_SESSION, secret);
}

/**
 * @returns undefined when there is none, when it has ended, or when the user is no longer an administrator or has
 *   changed the password or the second factors since.
 */
export async function consoleSession(
  deps: ConsoleSessionDependencies,
  ctx: Context,
  section: string,
): Promise<ConsoleSession | undefined> {
  const found = await readSession(deps, ctx, section);
  if (found?.isExpired !== false) return undefined;
  raiseStanding('trusted');
  return found.session;
}

/**
 * Returns the expired session of a request, within {@link RECOGNIZED_SECONDS} after its end, so that a form sent too late
 * is not lost. It permits nothing.
 * @returns undefined as {@link consoleSession}, and for a session that is still open.
 */
export async function expiredConsoleSession(
  deps: ConsoleSessionDependencies,
  ctx: Context,
  section: string,
): Promise<ConsoleSession | undefined> {
  const found = await readSession(deps, ctx, section);
  return found?.isExpired === true ? found.session : undefined;
}

async function readSession(
  deps: ConsoleSessionDependencies,
  ctx: Context,
  section: string,
): Promise<{ session: ConsoleSession; isExpired: boolean } | undefined> {
  const secret = COOKIE.secret(ctx);
  const verifiedChallenge =
    secret === undefined ? undefined : await deps.challenges.peekTicket<StoredLogin>(CONSOLE_SESSION, secret);
  if (secret === undefined || verifiedChallenge === undefined) return undefined;
  const { login, factors, form } = verifiedChallenge.data;
  const administrator = await administratorOfLogin(deps, { login, factors });
  if (administrator === undefined) return undefined;
  const scopes = scopesOf(administrator.role, deps.scopes);
  const session: ConsoleSession = {
    section,
    administrator,
    can: (scope) => scopes.has(scope),
    scopes,
    proof: { login, factors },
    isFresh: isEnoughFor(deps, 'dangerous_administration', login),
    token: tokenOf(secret),
    form,
  };
  return { session, isExpired: epochSeconds(deps.wallClock) - login.authTime >= SESSION_SECONDS };
}

function isEnoughFor(
  { wallClock }: Pick<ConsoleSessionDependencies, 'wallClock'>,
  act: UserAct,
  login: Login,
): boolean {
  return lackFor(act, login, epochSeconds(wallClock)) === undefined;
}

/**
 * Returns the administrator of a login to the console, with the present role.
 * @returns undefined when the user is no longer an administrator, is blocked, or the login is not enough any more.
 */
export async function administratorOfLogin(
  deps: ConsoleSessionDependencies,
  proof: LoginProof,
): Promise<Administrator | undefined> {
  const { login } = proof;
  const [{ user, refusal }, member] = await Promise.all([
    admissionOf(deps.users, login),
    memberOf(deps, login.userId),
  ]);
  if (member === undefined || user === undefined || refusal !== undefined) return undefined;
  if (!isEnoughFor(deps, 'administration', login)) return undefined;
  if (!(await isLoginSufficient(deps, proof))) return undefined;
  const { id: userId, name, email = '' } = user;
  return { userId, name: name ?? email, email, role: member.role };
}

/**
 * Reports whether a login is still sufficient: the password is unchanged, and if second factors are enrolled one was
 * used, whatever the tenant's policy. Adding or removing a factor elsewhere ends earlier sessions.
 */
export async function isLoginSufficient(
  deps: ConsoleSessionDependencies,
  { login, factors }: LoginProof,
): Promise<boolean> {
  const user = isAdministratorId(login.userId) ? await deps.users.get(login.userId) : undefined;
  if (user === undefined) return false;
  if (!login.amr.includes('mfa') && (await hasEnrolled(deps, user))) return false;
  const { userId, amr, credentialVersion } = login;
  const claims = { amr, credential_version: credentialVersion, factors_changed: factors };
  const proof = { userId, clientId: CONSOLE_CLIENT, scopes: [], id: userId, claims };
  return (await deps.elevation.permissionOf(proof)) !== undefined;
}

/**
 * Reports whether the user has enrolled a second factor. A verified e-mail address does not count: whoever may change
 * the tenant's mail settings could otherwise lock all administrators out.
 */
async function hasEnrolled(deps: ConsoleSessionDependencies, user: User): Promise<boolean> {
  const [activeFactors, enrolled] = await Promise.all([
    activeAuthenticators(deps, user),
    deps.authenticators.of(user.id),
  ]);
  return activeFactors.some(({ id }) => enrolled.some((one) => one.id === id));
}

/**
 * Derives the token from the session's secret: only pages of the console can contain it, and it ends with the
 * session.
 */
function tokenOf(secret: string): string {
  return createHmac('sha256', secret).update('console form').digest('base64url');
}

/**
 * @param sentToken the token in the request.
 * @throws AuthError 403 `invalid_request` with the reason `form_expired`.
 */
export function requireConsoleRequest(
  ctx: Context,
  { token }: ConsoleSession,
  consoleUrl: string,
  sentToken: unknown,
): void {
  if (
    typeof sentToken === 'string' &&
    isSameOrigin(ctx, new URL(consoleUrl).origin) &&
    isSameSecret(sentToken, token)
  )
    return;
  throw new AuthError(
    403,
    'invalid_request',
    'This form has expired. Go back, reload the page and try again.',
    { extra: { reason: 'form_expired' } },
  );
}
