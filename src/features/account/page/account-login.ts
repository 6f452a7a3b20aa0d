// Logins to the account page. They run through an application of the tenant, so that users meet its connections,
// pages and policies.
import type { Context } from 'koa';
import { admissionOf, isOpenTo } from '../../../engine/admission/admission.ts';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { loginOfCode } from '../../../engine/token/server-login-codes.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Client } from '../../../records/collections.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import { MFA_POLICY } from '../../../records/users/authentication-classes.ts';
import type { User } from '../../../users/user.ts';
import { activeAuthenticators } from '../../factors/policy.ts';
import type { ServerLogins } from '../../flow/server-logins.ts';
import { ACCOUNT, isOwnApplication } from './account-callbacks.ts';
import {
  type AccountSession,
  type AccountSessionDependencies,
  isSufficient,
  type PageActor,
} from './account-session.ts';

export interface AccountLoginDependencies extends AccountSessionDependencies {
  accountLogins: ServerLogins;
  sessions: Pick<Sessions, 'isOpen' | 'current'>;
}

/** The sections of the account page, by their paths below `ACCOUNT`. */
export const SECTIONS = ['', '/security', '/sessions', '/applications', '/data'] as const;
export type Section = (typeof SECTIONS)[number];

const LOGIN_ENDED = 'The login is no longer valid.';

interface NewLogin {
  /** The section that the user wants to open. */
  to: Section;
  /** Whether the user has to authenticate again. */
  isFresh?: boolean;
  /** The present user, who authenticates again. */
  as?: { user: User; client: Client } | undefined;
  /** The application to log in by, when another account than that of `as` is proved. */
  by?: Client;
  /** The ticket of an account link that is carried with the login (linking.ts). */
  link?: string;
}

/** Path of the confirmation by code, for logins whose provider does not say that it asked for a proof. */
export const CONFIRM = `${ACCOUNT}/confirm` as const;

/** Sends a user to authenticate again: by a login, or by a code when a new login would prove nothing more. */
export async function reauthenticate(
  deps: AccountLoginDependencies,
  ctx: Context,
  { to, actor }: { to: Section; actor: PageActor },
): Promise<void> {
  if (!actor.isUnproved) return goToLogin(deps, ctx, { to, isFresh: true, as: actor });
  ctx.redirect(`${CONFIRM}?to=${to}`);
  ctx.status = 303;
}

/** Sends the browser to log in. @throws AuthError 400 when it is unclear by which application. */
export async function goToLogin(
  deps: AccountLoginDependencies,
  ctx: Context,
  { to, isFresh, as, by = as?.client, link }: NewLogin,
): Promise<void> {
  const client = by ?? (await applicationOf(deps, ctx));
  const hint = as?.user.email ?? as?.user.username;
  const params = {
    ...(isFresh === true && { prompt: 'login' }),
    ...(hint !== undefined && { login_hint: hint }),
  };
  await startLogin(deps, ctx, { client, params, data: { to, link, isFresh } });
}

async function startLogin(
  { accountLogins }: AccountLoginDependencies,
  ctx: Context,
  { client, ...request }: { client: Client; params: Record<string, string>; data: Record<string, unknown> },
): Promise<void> {
  ctx.redirect(await accountLogins.start(ctx, { clientId: client.client_id, ...request }));
  // A 303 turns a POST into a GET (RFC 9110 §15.4.4).
  ctx.status = 303;
}

// docs/understand/decisions/console-account.md#a-login-for-the-account-page-is-a-login-at-authorize
/**
 * Returns the application by which a user logs in who is not at the page yet: the one in the query, the tenant's,
 * one that this browser is logged in to, or the only one. The user of a session gets one that the session answers, if any of the
 * applications in it does.
 */
async function applicationOf(
  { config, sessions, users }: Pick<AccountLoginDependencies, 'config' | 'sessions' | 'users'>,
  ctx: Context,
): Promise<Client> {
  const { client_id: requested } = ctx.query;
  const { client_id: preferred } = config.settings().tenant.account_page;
  const applications = (await config.clients()).filter(isOwnApplication);
  const clientId = typeof requested === 'string' ? requested : preferred;
  // The console's application, which administrators use for their second factors, is not in the list.
  const consoleClient = clientId === CONSOLE_CLIENT ? await config.client(clientId) : undefined;
  if (consoleClient !== undefined) return consoleClient;
  const session = typeof requested === 'string' ? undefined : await sessions.current(ctx);
  if (session !== undefined) {
    const inSession = applications.filter(({ client_id }) => session.clientIds.includes(client_id));
    const ofTenant = applications.filter(({ client_id }) => client_id === preferred);
    const login = { userId: session.userId, connection: session.connection };
    for (const one of [...ofTenant, ...inSession])
      if (await isOpenTo({ config, users }, one.client_id, login)) return one;
    if (preferred === undefined && inSession[0] !== undefined) return inSession[0];
  }
  if (clientId === undefined && applications.length === 1 && applications[0]) return applications[0];
  const found = applications.find(({ client_id }) => client_id === clientId);
  if (found !== undefined) return found;
  throw new AuthError(
    400,
    'invalid_request',
    clientId === undefined
      ? 'Open your account from one of your applications.'
      : 'There is no such application here.',
  );
}

interface FinishedLogin {
  session: AccountSession;
  /** The section that the user wants to open. */
  to: Section;
  /** The ticket of the account link that it was requested for, if any. */
  link: string | undefined;
  /** Whether the user was asked to authenticate again. */
  isFresh: boolean;
}

/**
 * Users with a second factor must have given it, even if the application requires none: the page can remove it.
 * @returns undefined when the browser was sent to log in again.
 */
export async function finishLogin(
  deps: AccountLoginDependencies,
  ctx: Context,
): Promise<FinishedLogin | undefined> {
  const { clientId, data, login } = await deps.accountLogins.finish(ctx, String(ctx.params.client));
  if ('error' in login) throw new AuthError(403, login.error, login.description);
  const { amr, factors } = login;
  const to = SECTIONS.find((one) => one === data.to) ?? '';
  const [{ user, refusal }, client] = await Promise.all([
    admissionOf(deps.users, login),
    deps.config.client(clientId),
  ]);
  if (user === undefined || client === undefined) throw new AuthError(403, 'access_denied', LOGIN_ENDED);
  if (!amr.includes('mfa') && (await activeAuthenticators(deps, user)).length > 0 && refusal === undefined) {
    if (data.isStepUp === true)
      throw new AuthError(403, 'access_denied', 'Your account asks for a second step to be managed.');
    const params = { acr_values: MFA_POLICY };
    await startLogin(deps, ctx, { client, params, data: { ...data, isStepUp: true } });
    return undefined;
  }
  const session = { clientId, sid: login.sessionUid, login: loginOfCode(login, ctx.ip), factors };
  // Neither a session that was kept through a password change may manage the account, nor one from before the
  // factors were changed elsewhere.
  if (refusal !== undefined || !(await isSufficient(deps, ctx, { ...session, user }))) {
    if (data.isAgain === true) throw refusal ?? new AuthError(403, 'access_denied', LOGIN_ENDED);
    await startLogin(deps, ctx, { client, params: { prompt: 'login' }, data: { ...data, isAgain: true } });
    return undefined;
  }
  const link = typeof data.link === 'string' ? data.link : undefined;
  return { session, to, link, isFresh: data.isFresh === true };
}
