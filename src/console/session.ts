// Who is at the console: a login that was made for it, kept by a cookie of its own. What has happened since is asked with
// every request: whether the administrator is one still, and as what.
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { admissionOf } from '../engine/admission.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import { activeAuthenticators } from '../factors/policy.ts';
import { browserCookie } from '../http/browser-cookie.ts';
import { isOurs } from '../http/csrf.ts';
import { AuthError } from '../http/errors.ts';
import { type AdministratorRole, CONSOLE_CLIENT, isAdministratorId } from '../records/administrators.ts';
import { epochSeconds } from '../runtime/clock.ts';
import { isSameSecret } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Login } from '../users/login.ts';
import type { User } from '../users/user.ts';
import { memberOf } from './administrators/members.ts';
import { scopesOf } from './roles.ts';

export interface ConsoleSessionDependencies extends FactorDependencies {
  store: Store;
  /** The scopes of the Management API. */
  scopes: readonly string[];
}

/** An administrator at the console. */
export interface AtConsole {
  administrator: { userId: string; name: string; email: string; role: AdministratorRole };
  /** Whether the role has a scope of the Management API, or one of the console's own. */
  can(scope: string): boolean;
  /** All scopes of the role. */
  scopes: ReadonlySet<string>;
  /** Whether the login is recent enough for what must not be done by whoever finds an open browser. */
  isFresh: boolean;
  /** What forms and scripts of the console show to be its own. */
  token: string;
  /** By which a form is taken that was sent before this login was asked for. */
  form: string | undefined;
}

/** What the tickets of sessions are for. */
const CONSOLE_SESSION = 'console_session';
/** A session of the console lasts so long, seconds. */
const OPEN_SECONDS = 8 * 3600;
/** For so long after it is over it says whose form was sent too late, and no more, seconds. */
const TOLD_SECONDS = 16 * 3600;
/** How old a login may be that does dangerous things, seconds. */
const FRESH_SECONDS = 600;

// `lax`: administrators come by links in mails and chats.
const COOKIE = browserCookie('__Host-gatehouse_console', { sameSite: 'lax' });

/** What of a login is kept. */
interface Kept {
  login: Login;
  /** What stood for the administrator's second factors when they logged in. */
  factors: string;
  /** See {@link AtConsole}. */
  form?: string;
}

/** Lets a browser in whose administrator has just logged in. */
export async function enterConsole(
  { challenges, random }: Pick<ConsoleSessionDependencies, 'challenges' | 'random'>,
  ctx: Context,
  kept: Kept,
): Promise<void> {
  await leaveConsole({ challenges }, ctx);
  const { secret } = await challenges.issueTicket({
    purpose: CONSOLE_SESSION,
    // Each is for itself: the same administrator may be there in several browsers.
    subject: random(16).toString('hex'),
    userId: kept.login.userId,
    ttlSeconds: OPEN_SECONDS + TOLD_SECONDS,
    data: { ...kept },
  });
  COOKIE.give(ctx, secret);
}

/** Ends what {@link enterConsole} began. */
export async function leaveConsole(
  { challenges }: Pick<ConsoleSessionDependencies, 'challenges'>,
  ctx: Context,
): Promise<void> {
  const secret = COOKIE.secret(ctx);
  if (secret === undefined) return;
  COOKIE.forget(ctx);
  await challenges.spendTicket(CONSOLE_SESSION, secret);
}

/**
 * Who is there.
 * @returns undefined for nobody: who never came in, or is no administrator any more, or whose session, password or factors
 *   have ended since.
 */
export async function atConsole(
  deps: ConsoleSessionDependencies,
  ctx: Context,
): Promise<AtConsole | undefined> {
  const session = await sessionOf(deps, ctx);
  return session?.isOver === false ? session.here : undefined;
}

/**
 * Who was there until their eight hours were over: so that what they send then is not lost. They may do nothing by it. Whose
 * session has ended otherwise is nobody, as for {@link atConsole}.
 */
export async function wasAtConsole(
  deps: ConsoleSessionDependencies,
  ctx: Context,
): Promise<AtConsole | undefined> {
  const session = await sessionOf(deps, ctx);
  return session?.isOver === true ? session.here : undefined;
}

async function sessionOf(
  deps: ConsoleSessionDependencies,
  ctx: Context,
): Promise<{ here: AtConsole; isOver: boolean } | undefined> {
  const secret = COOKIE.secret(ctx);
  const met =
    secret === undefined ? undefined : await deps.challenges.peekTicket<Kept>(CONSOLE_SESSION, secret);
  if (secret === undefined || met === undefined) return undefined;
  const { login, factors, form } = met.data;
  const [standing, member] = await Promise.all([
    admissionOf(deps.users, login),
    memberOf(deps, login.userId),
  ]);
  const { user, refusal } = standing;
  if (member === undefined || user === undefined || refusal !== undefined) return undefined;
  if (!(await isProved(deps, { login, factors }))) return undefined;
  const scopes = scopesOf(member.role, deps.scopes);
  const here: AtConsole = {
    administrator: {
      userId: user.id,
      name: user.name ?? user.email ?? '',
      email: user.email ?? '',
      role: member.role,
    },
    can: (scope) => scopes.has(scope),
    scopes,
    isFresh: isFresh(deps, login),
    token: tokenOf(secret),
    form,
  };
  return { here, isOver: epochSeconds(deps.wallClock) - login.authTime >= OPEN_SECONDS };
}

/**
 * Whether a login proves what its administrator has by now: the password and the second factors that they have enrolled,
 * whether or not the tenant asks for one. One that was added or removed elsewhere ends what began before.
 */
export async function isProved(deps: ConsoleSessionDependencies, { login, factors }: Kept): Promise<boolean> {
  const user = isAdministratorId(login.userId) ? await deps.users.get(login.userId) : undefined;
  if (user === undefined) return false;
  if (!login.amr.includes('mfa') && (await hasEnrolled(deps, user))) return false;
  const { userId, amr, credentialVersion } = login;
  const claims = { amr, credential_version: credentialVersion, factors_changed: factors };
  const proof = { userId, clientId: CONSOLE_CLIENT, scopes: [], id: userId, claims };
  return (await deps.elevation.rightOf(proof)) !== undefined;
}

/** An address is none: who may change the tenant's mail could keep all administrators out by it. */
async function hasEnrolled(deps: ConsoleSessionDependencies, user: User): Promise<boolean> {
  const [counting, enrolled] = await Promise.all([
    activeAuthenticators(deps, user),
    deps.authenticators.of(user.id),
  ]);
  return counting.some(({ id }) => enrolled.some((one) => one.id === id));
}

function isFresh({ wallClock }: Pick<ConsoleSessionDependencies, 'wallClock'>, login: Login): boolean {
  const age = epochSeconds(wallClock) - login.authTime;
  // One in the future is none that this clock has seen; processes' clocks may differ by a minute.
  return age <= FRESH_SECONDS && age >= -60;
}

/** Made of the session's own secret: no page but those of the console can show it, and it ends with the session. */
function tokenOf(secret: string): string {
  return createHmac('sha256', secret).update('console form').digest('base64url');
}

/**
 * That a request comes from the console's own page.
 * @param sent the token that came with it.
 * @throws AuthError 403 `invalid_request`, reason `form_expired`.
 */
export function requireOwn(ctx: Context, { token }: AtConsole, consoleUrl: string, sent: unknown): void {
  if (typeof sent === 'string' && isOurs(ctx, new URL(consoleUrl).origin) && isSameSecret(sent, token))
    return;
  throw new AuthError(
    403,
    'invalid_request',
    'This form has expired. Go back, reload the page and try again.',
    { extra: { reason: 'form_expired' } },
  );
}
