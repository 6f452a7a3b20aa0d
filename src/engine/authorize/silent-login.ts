// Completes the login of a silent request (`prompt=none`) with a login ticket or a session transfer token, without
// a page.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { LoginTickets } from '../../capabilities/protection/login-tickets.ts';
import { requestValue } from '../../http/server/request-target.ts';
import type { Login } from '../../users/login.ts';
import { transferOf } from '../admission/exchange-context.ts';
import { loginRequirements, type SecondFactor } from '../admission/second-factor.ts';
import { readExtensions } from '../base/request-extensions.ts';
import { loginAnswer, throwRefusal } from '../login/browser-login.ts';
import type { Settlement } from '../login/settle.ts';
import type { TransferRedemption, TransferredSessions } from '../session/session-transfer.ts';
import type { Sessions } from '../session/sessions.ts';

/** The login with which the browser of a silent request has come back from where it was sent (`SilentRedirect`). */
export const provedElsewhere = requestValue<Login>('login proved elsewhere');

interface SilentLoginDependencies {
  tickets: LoginTickets;
  settle: Settlement;
  secondFactor: Pick<SecondFactor, 'description'>;
  sessions: Pick<Sessions, 'end'>;
  transferred: Pick<TransferredSessions, 'holds' | 'restrict'>;
  transferRedemption: TransferRedemption;
}

// docs/understand/decisions/login-pages.md#a-silent-request-with-a-login-ticket-logs-the-user-in
/**
 * Logs in the user of the request's ticket or token, if the request is silent and a ticket belongs to this browser
 * and application. Called after the request was validated and before its session is read, so that an invalid
 * request does not use up the ticket. An invalid ticket changes nothing: the interaction policy then answers
 * `login_required`.
 * @throws errors.OIDCProviderError, for the callback, when the user is blocked or needs a second factor.
 */
export async function logInSilently(deps: SilentLoginDependencies, ctx: KoaContextWithOIDC): Promise<void> {
  const { client, params = {} } = ctx.oidc;
  if (client === undefined) return;
  const { clientId } = client;
  const leave = () => leaveSession(deps, ctx);
  if (!(await deps.transferred.holds(transferOf(ctx.oidc.session)))) await leave();
  const transferred = await deps.transferRedemption.redeem(ctx, leave);
  await deps.transferred.restrict(ctx, transferred?.transfer ?? transferOf(ctx.oidc.session));
  const { loginTicket: ticket } = readExtensions(params);
  if (!ctx.oidc.prompts.has('none')) return;
  const elsewhere = provedElsewhere.of(ctx);
  const login = transferred ?? elsewhere ?? (ticket && (await deps.tickets.redeem(ctx, ticket, clientId)));
  if (!login) return;
  const decision = await deps.settle.decide(login, {
    clientId,
    ...loginRequirements(params),
    browser: true,
    ctx,
  });
  if (decision.is === 'incomplete') throw new errors.LoginRequired(deps.secondFactor.description);
  if (decision.is === 'refused') {
    // Who was logged in elsewhere may still log in here as somebody else.
    if (decision.refusal.error === 'invalid_grant' || login === elsewhere) return;
    return throwRefusal(decision.refusal);
  }
  await leaveOtherAccount(deps, ctx, login.userId);
  const { session } = ctx.oidc;
  const { userId: accountId, authTime: loginTs } = login;
  session?.loginAccount({ accountId, loginTs, amr: [...login.amr] });
  // A new session id at login, against session fixation.
  session?.resetIdentifier();
  // As after an interaction.
  Object.assign(ctx.oidc, { result: loginAnswer(login) });
}

/** Ends the session of another user for all its applications and starts a new one. */
async function leaveOtherAccount(
  { sessions }: SilentLoginDependencies,
  { oidc }: KoaContextWithOIDC,
  userId: string,
): Promise<void> {
  const { session } = oidc;
  if (session?.accountId === undefined || session.accountId === userId) return;
  await leaveSession({ sessions }, { oidc });
}

/** Ends the session of a request for all its applications and starts a new one. */
async function leaveSession(
  { sessions }: Pick<SilentLoginDependencies, 'sessions'>,
  { oidc }: Pick<KoaContextWithOIDC, 'oidc'>,
): Promise<void> {
  const { session } = oidc;
  if (session === undefined) return;
  await sessions.end(session.uid, { reason: 'session-revoked', requestsStay: true });
  // Created from an empty payload, because the engine does not store an untouched new session.
  const Session = oidc.provider.Session as new (payload: object) => typeof session;
  const next = new Session({});
  Object.assign(oidc, { session: next });
  oidc.entity('Session', next);
}
