// The login to the console, which uses the tenant's own authorization endpoint.
import type { Context } from 'koa';
import { admissionOf } from '../../engine/admission/admission.ts';
import type { Sessions } from '../../engine/session/sessions.ts';
import { loginOfCode } from '../../engine/token/server-login-codes.ts';
import { AuthError } from '../../http/errors.ts';
import { CONSOLE_CLIENT, CONSOLE_DIRECTORY } from '../../records/users/administrators.ts';
import { MFA_POLICY } from '../../records/users/authentication-classes.ts';
import type { ServerLogins } from '../flow/server-logins.ts';
import { memberOf } from './administrators/console-administrator-members.ts';
import { addressOutsideConsole, CONSOLE, type ConsoleOrigins } from './console-callbacks.ts';
import {
  type ConsoleSession,
  type ConsoleSessionDependencies,
  isLoginSufficient,
  openConsoleSession,
} from './console-session.ts';
import { AGAIN } from './kept-form.ts';

export interface ConsoleLoginDependencies extends ConsoleSessionDependencies, ConsoleOrigins {
  consoleLogins: ServerLogins;
  sessions: Pick<Sessions, 'end' | 'forget'>;
  /** Starts loading what the list of users shows, without waiting for it. */
  readUsersAhead(): void;
}

/** A login to begin. `previousSession` is that of an administrator who has to authenticate again. */
interface NewLogin {
  /** The page to show after the login: a path of the console with its query. */
  to: string;
  previousSession?: ConsoleSession | undefined;
  /** The secret of the kept form, which {@link AGAIN} shows after the login. */
  form?: string | undefined;
}

/** The maximum length of an address to return to, characters. */
const MAX_ADDRESS_LENGTH = 2_000;

export async function goToLogin(
  deps: ConsoleLoginDependencies,
  ctx: Context,
  { to, previousSession, form }: NewLogin,
): Promise<void> {
  await startLogin(deps, ctx, {
    params: { prompt: 'login', ...(previousSession && { login_hint: previousSession.administrator.email }) },
    data: { to: isConsoleAddress(to) ? to : CONSOLE, ...(form !== undefined && { form }) },
  });
}

function isConsoleAddress(address: string): boolean {
  return address.length <= MAX_ADDRESS_LENGTH && /^\/console(?:[/?]|$)/.test(address);
}

async function startLogin(
  deps: ConsoleLoginDependencies,
  ctx: Context,
  request: { params: Record<string, string>; data: Record<string, unknown> },
): Promise<void> {
  const address = await deps.consoleLogins.start(ctx, { clientId: CONSOLE_CLIENT, ...request });
  ctx.redirect(addressOutsideConsole(deps, address));
  // 303, because the request may have been a post (RFC 9110 §15.4.4).
  ctx.status = 303;
}

// docs/understand/decisions/console-account.md#a-login-to-the-console-uses-our-own-openid-connect-and-leaves-no-browser-session-behind
/**
 * Ends a login and opens the console's session. The tenant session that the login needed ends at once, so that no
 * application can log the administrator in by it, and so that a login to an application in the same browser does not
 * end the console's session.
 * @throws AuthError 403 for a user who is not an administrator.
 */
export async function finishLogin(deps: ConsoleLoginDependencies, ctx: Context): Promise<void> {
  const { data, login } = await deps.consoleLogins.finish(ctx, CONSOLE_CLIENT);
  if ('error' in login) throw new AuthError(403, login.error, login.description);
  const { userId, connection, amr, factors, sessionUid } = login;
  const consoleLogin = { login: loginOfCode(login, ctx.ip), factors };
  const to = typeof data.to === 'string' ? data.to : CONSOLE;
  const [{ user, refusal }, member] = await Promise.all([
    admissionOf(deps.users, login),
    memberOf(deps, userId),
  ]);
  const isAdministrator = connection === CONSOLE_DIRECTORY && member !== undefined && user !== undefined;
  const isSufficient =
    isAdministrator && refusal === undefined && (await isLoginSufficient(deps, consoleLogin));
  // The second factor is requested in the same tenant session.
  if (
    isAdministrator &&
    refusal === undefined &&
    !isSufficient &&
    !amr.includes('mfa') &&
    data.isStepUp !== true
  ) {
    const params = { acr_values: MFA_POLICY };
    return startLogin(deps, ctx, { params, data: { ...data, to, isStepUp: true } });
  }
  await deps.sessions.end(sessionUid, { reason: 'session-revoked' });
  deps.sessions.forget(ctx);
  if (!isAdministrator) throw new AuthError(403, 'access_denied', 'You are no administrator here.');
  if (!isSufficient) throw refusal ?? new AuthError(403, 'access_denied', 'The login is no longer valid.');
  deps.readUsersAhead();
  const form = typeof data.form === 'string' ? data.form : undefined;
  await openConsoleSession(deps, ctx, { ...consoleLogin, ...(form !== undefined && { form }) });
  ctx.redirect(form === undefined ? to : AGAIN);
}
