// Turns the login that answers a waiting request into a session. It runs when the engine loads the session's
// account, before the prompt policy: policy.ts then only reads what was worked out here.

import {
  errors,
  type FindAccount,
  type InteractionResults,
  type KoaContextWithOIDC,
  type Session,
} from 'oidc-provider';
import type { AuthError } from '../../http/errors.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Correlation } from '../../runtime/requester.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { Login, Transfer } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { admissionOf, organizationOfSession } from '../admission/admission.ts';
import { transferMembers, transferOf } from '../admission/exchange-context.ts';
import { boundsOf } from '../admission/lifetimes.ts';
import type { AuthenticatedLogin, SecondFactor } from '../admission/second-factor.ts';
import { loginRequirements } from '../admission/second-factor.ts';
import { deviceOf } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import { credentialVersionOf, factorsOf, type SessionLogin } from '../session/sessions.ts';
import type { LoginExecutions } from './login-actions.ts';
import type { Settlement } from './settle.ts';

/** The stored answer to a waiting request, with its login. */
interface LoginAnswer extends InteractionResults {
  proved?: Login;
  /** Whether the login has its session already: the request came back for a further step. */
  isSettled?: true;
}

export function loginAnswer(login: Login): LoginAnswer {
  const { userId, amr, acr, authTime } = login;
  // The time of the login, also when a later step answers the request.
  const engine = { accountId: userId, amr: [...amr], ...(acr !== undefined && { acr }), ts: authTime };
  return { login: engine, select_account: {}, proved: login };
}

/** Returns the login of an answer that has not made a session yet. */
export function unsettledLogin(answer: object | undefined): Login | undefined {
  const { proved, isSettled } = (answer ?? {}) as LoginAnswer;
  return isSettled === true ? undefined : proved;
}

/** Returns the members of a session that {@link SecondFactor.isRequired} needs. */
function authenticatedLogin(session: Session & { accountId: string }): AuthenticatedLogin {
  return {
    userId: session.accountId,
    amr: session.amr ?? [],
    credentialVersion: credentialVersionOf(session),
    factors: factorsOf(session),
    sessionId: session.uid,
  };
}

interface BrowserLoginDependencies {
  store: Store;
  users: Users;
  settle: Settlement;
  wallClock: Clock;
  secondFactor: Pick<SecondFactor, 'isRequired' | 'factorsOf'>;
  organizations: Pick<Organizations, 'ensureMembership'>;
  correlation: Pick<Correlation, 'setId'>;
  executions: LoginExecutions;
  /** @see TransferredSessions.resume */
  transferred: { resume(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void> };
  /** Returns how long a session lasts from now, seconds. */
  sessionLifetime(session: Session): number;
}

/** Prepares an authorization request before the prompt policy. */
export interface BrowserLogins {
  /**
   * Wraps the engine's `findAccount`: at the authorization endpoint the session of a new login is stored first, and
   * that of an earlier login is checked again.
   * @returns a function that throws errors.OIDCProviderError, for the application, when the login does not hold any
   *   more.
   */
  wrapFindAccount(findAccount: FindAccount): FindAccount;
  /** Whether the session had one factor where the request needs two. */
  lacksSecondFactor(ctx: KoaContextWithOIDC): boolean;
}

export function browserLogins(deps: BrowserLoginDependencies): BrowserLogins {
  const lackingFactor = new WeakSet<object>();
  const prepare = async (ctx: KoaContextWithOIDC): Promise<void> => {
    const { session, client, params, result, entities, route } = ctx.oidc;
    // The user returns from a login: further log events belong to it.
    if (entities.Interaction !== undefined) deps.correlation.setId(entities.Interaction.cid);
    if (session?.accountId === undefined || client === undefined) return;
    const { clientId } = client;
    if (route === 'resume') await deps.transferred.resume(ctx, currentTransfer(session, result));
    const device = deviceOf(ctx, (session as SessionLogin).device);
    Object.assign(session, { device, lastUsed: epochSeconds(deps.wallClock) });
    if (result?.login !== undefined) return settleLogin(deps, ctx, session, clientId);
    setSessionOrganization(ctx, session);
    const requirements = { clientId, ...loginRequirements(params), browser: true, ctx };
    const login = authenticatedLogin(session as Session & { accountId: string });
    if (await deps.secondFactor.isRequired(login, requirements)) lackingFactor.add(ctx.oidc);
  };
  return {
    wrapFindAccount: (findAccount) => async (ctx, sub, token) => {
      // At other endpoints the account belongs to a token.
      if (ctx.oidc.route === 'authorization' || ctx.oidc.route === 'resume') await prepare(ctx);
      return findAccount(ctx, sub, token);
    },
    lacksSecondFactor: ({ oidc }) => lackingFactor.has(oidc),
  };
}

/**
 * Returns the session transfer that the request's session came from: that of the login that answers the request, or
 * else that of the session.
 */
function currentTransfer(session: Session, result: object | undefined): Transfer | undefined {
  const { login, proved } = (result ?? {}) as LoginAnswer;
  return login === undefined ? transferOf(session) : proved?.transfer;
}

// docs/understand/decisions/organizations.md#a-silent-request-is-for-the-organization-that-its-session-was-last-used-for
/**
 * A silent request without an organization is for the one that its session was last used for, because the user
 * cannot be asked.
 */
function setSessionOrganization({ oidc }: KoaContextWithOIDC, session: Session): void {
  const { client, params, prompts } = oidc;
  if (client === undefined || params === undefined || !prompts.has('none')) return;
  if (applicationSettings(client).organizationUsage !== 'require') return;
  params.organization ??= organizationOfSession(session);
}

/** Stores the session of a login that has answered the request, before anything else comes of it. */
async function settleLogin(
  deps: BrowserLoginDependencies,
  ctx: KoaContextWithOIDC,
  session: Session,
  clientId: string,
): Promise<void> {
  const { oidc } = ctx;
  const answer = oidc.result as LoginAnswer;
  const { proved } = answer;
  // All requests are answered by our own pages, always with a login. Anything else is refused.
  if (proved === undefined) throw new errors.LoginRequired('Login required');
  const {
    userId,
    connection,
    credentialVersion,
    providerSession,
    presence,
    sessionEndsAt: providerExpiresAt,
    transfer,
  } = proved;
  const members = { credentialVersion, providerSession, presence };
  Object.assign(session, members, transferMembers(session, transfer), connection !== '' && { connection });
  const store = async (...writes: Write[]) => {
    // Together, so that the store makes a single write to disk.
    await Promise.all([
      session.save(deps.sessionLifetime(session)),
      writes.length > 0 && deps.store.batch(writes),
    ]);
    // The engine sets no cookie for a new session that it finds untouched.
    Object.assign(session, { touched: true });
  };
  const remove = () => session.destroy();
  if (answer.isSettled !== true) {
    Object.assign(session, { factors: await deps.secondFactor.factorsOf(userId) });
    // Set once, here: an end that actions set comes later and replaces it.
    if (providerExpiresAt !== undefined)
      Object.assign(session, { bounds: { ...boundsOf(session), providerExpiresAt } });
    const membershipError = await deps.organizations.ensureMembership(proved, {
      clientId,
      ...loginRequirements(oidc.params),
    });
    if (membershipError !== undefined) await remove();
    throwRefusal(membershipError);
    throwRefusal(
      await deps.settle.settle(proved, clientId, {
        store,
        remove,
        execution: deps.executions.of(ctx),
      }),
    );
    // Stored with the answer, so that further steps of this request do not store the session again.
    answer.isSettled = true;
    return;
  }
  await store();
  const { refusal } = await admissionOf(deps.users, proved);
  if (refusal !== undefined) await remove();
  throwRefusal(refusal);
}

/**
 * Throws a refusal, if there is one, as an error for the application.
 * @throws errors.OIDCProviderError `login_required` when the user can log in again, otherwise the refusal's own
 *   error.
 */
export function throwRefusal(refusal: AuthError | undefined): void {
  if (refusal === undefined) return;
  if (refusal.error === 'invalid_grant') throw new errors.LoginRequired('Login required');
  throw new errors.CustomOIDCProviderError(refusal.error, refusal.error_description);
}
