// The bridge of sessions: a browser without a session here is sent to the old tenant once, which is asked not to show anything
// (`prompt=none`). One that has a session there comes back logged in; any other goes on as if it had not been sent. Where the old
// tenant had a custom domain, which leads here now, the browser has sent us its cookies, and this server asks in its place.
// docs/understand/decisions/moving.md#browsers-with-a-session-at-the-old-tenant-are-logged-in
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { loginRequirements } from '../../engine/admission/second-factor.ts';
import type {
  AuthorizationEndpoint,
  DirectRedirect,
  SilentRedirect,
  SilentRequest,
} from '../../engine/authorize/authorize.ts';
import {
  requestExpired,
  type WaitingRequests,
  waitingPath,
} from '../../engine/authorize/waiting-requests.ts';
import type { Settlement } from '../../engine/login/settle.ts';
import type { UseOldSession } from '../../engine/session/old-sessions.ts';
import { textsOf } from '../../http/server/body.ts';
import { browserCookie, newBrowserSecret } from '../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import type { Frozen } from '../../records/base/record.ts';
import { isOpen, type MoveRecord, oldIssuer } from '../../records/tenant/move.ts';
import { CONSOLE_CLIENT } from '../../records/users/administrators.ts';
import type { Background } from '../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { type Random, sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { asksForLogin } from '../connections/redirect.ts';
import { FACTOR_STEP, waitsForLogin } from '../flow/finish.ts';
import { type HostedDependencies, openRequestPage } from '../flow/request-page.ts';
import type { CountMove } from './move-counts.ts';
import { moveEvents, moveLimits } from './move-declaration.ts';
import { SESSION_CALLBACK } from './old-credentials.ts';
import { answerIn, askDomain, domainAddress, expireSessionCookies, sessionCookies } from './old-domain.ts';
import { type OldAddress, OldTenantFault, type SendToOldTenant } from './old-requests.ts';
import { type OldTokenDependencies, requestOldTokens, verifyOldIdToken } from './old-tokens.ts';
import {
  methodsIn,
  NotAdmitted,
  type OldUserDependencies,
  onlyConnection,
  userOfProof,
} from './old-users.ts';

// What the browser remembers. Only this host can set these cookies (`__Host-`), so that nobody else can keep a browser from being
// sent, or have it sent after a logout. SameSite is `None`, because silent requests come in frames of applications.

/** Binds a question to the browser that was sent with it. */
const ASKED = browserCookie('__Host-gatehouse_move', { sameSite: 'none', ttlSeconds: 600 });

/** For how long a browser that has come back without a session is not sent again, seconds. */
const PAUSE = 900;
/** Apart for frames, in which browsers may keep the old tenant's cookies back: the next navigation may still bring a session. */
const NONE_THERE = browserCookie('__Host-gatehouse_move_none', { sameSite: 'none', ttlSeconds: PAUSE });
const NONE_THERE_IN_FRAMES = browserCookie('__Host-gatehouse_move_none_framed', {
  sameSite: 'none',
  ttlSeconds: PAUSE,
});

/** Set at a logout here. It lasts longer than a move: as long as browsers keep cookies. */
const LOGGED_OUT = browserCookie('__Host-gatehouse_move_left', {
  sameSite: 'none',
  ttlSeconds: 400 * 86_400,
});

const isInFrame = (ctx: Context) => ctx.get('Sec-Fetch-Dest') === 'iframe';
const pauseOf = (isFramed: boolean) => (isFramed ? NONE_THERE_IN_FRAMES : NONE_THERE);

/** A browser that is at the old tenant. */
interface Question {
  clientId: string;
  nonce: string;
  codeVerifier: string;
  /** The hash of {@link ASKED}'s secret. */
  browser: string;
  /** Whether it was sent from a frame. */
  isFramed: boolean;
  /** Whether this server has asked the custom domain in the browser's place: that has taken from the limits already. */
  isOfDomain: boolean;
  /** The earliest time of the authentication there that the request accepts, epoch seconds. */
  freshSince?: number;
  /** The waiting request that comes back; undefined for a silent one. */
  uid?: string;
  silent?: SilentRequest;
}

const QUESTION = 'old_session';
const PROOF = 'old_session_login';
/** How long an answer is awaited, and how long the browser may take from it to its request, seconds. */
const TTL = { question: 300, proof: 120 };

/** The `max_age` of requests that have none: the old tenant then says when the user authenticated, however long ago. */
const ANY_AGE = String(400 * 86_400);

export interface SessionBridgeDependencies {
  baseUrl: string;
  config: Config;
  challenges: Challenges;
  random: Random;
  wallClock: Clock;
  oldTenantSends: Readonly<Record<'sessions', SendToOldTenant>>;
  events: Pick<Events, 'record'>;
  log: Pick<Logger, 'warn'>;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  background: Pick<Background, 'run'>;
  countMove: CountMove;
}

/** Sends browsers to the old tenant, or asks it in their place. */
export interface OldSessions {
  /** @see DirectRedirect */
  redirect: DirectRedirect;
  /** @see SilentRedirect */
  silentRedirect: SilentRedirect;
  /**
   * Keeps a browser from being logged in by the session that it may have there, after a logout here.
   * @param session that of the browser here.
   * @returns whether the browser has to go there ({@link logoutUrl}), to end it.
   */
  leave(ctx: Context, session: EndedSession): Promise<boolean>;
  /** Returns the URL that ends the session there; undefined for a session here that was not begun by it. */
  logoutUrl(session: EndedSession, returnTo: string): Promise<string | undefined>;
}

type EndedSession = Pick<Login, 'providerSession'> | undefined;

/** Set in the sessions that were begun by one of the old tenant. */
const OF_OLD_TENANT = 'old_tenant';

export function oldSessions(deps: SessionBridgeDependencies): OldSessions {
  const { config, wallClock } = deps;
  const open = async () => {
    const move = await config.move();
    return move !== undefined && isOpen(move, move.sessions, wallClock()) ? move : undefined;
  };
  const mayEnd = (session: EndedSession) =>
    session === undefined || session.providerSession?.[OF_OLD_TENANT] !== undefined;
  const mayAsk = (ctx: Context) =>
    [LOGGED_OUT, pauseOf(isInFrame(ctx))].every((one) => one.secret(ctx) === undefined);
  return {
    redirect: async (ctx, { uid, clientId, params, userId }) => {
      if (userId !== undefined || !mayAsk(ctx) || !acceptsOldSession(clientId, params)) return undefined;
      const move = await open();
      return move && ask(deps, ctx, move, { uid, clientId, params });
    },
    silentRedirect: async (ctx, { clientId, params, received }) => {
      if (!mayAsk(ctx) || !acceptsOldSession(clientId, params)) return undefined;
      const move = await open();
      return move && ask(deps, ctx, move, { clientId, params, silent: received });
    },
    leave: async (ctx, session) => {
      const move = await open();
      if (move === undefined) return false;
      const wasOfDomain = await endAtDomain(deps, ctx, move);
      if (session !== undefined) LOGGED_OUT.set(ctx, newBrowserSecret(deps.random));
      // Without a session here, anybody may have sent the browser. It is not marked then: a session there is ended there, or
      // it goes on, as if the browser had been sent to the old tenant itself.
      else if (wasOfDomain || !mayAsk(ctx) || ctx.accepts('text', 'html') !== 'html') return false;
      return mayEnd(session);
    },
    logoutUrl: async (session, returnTo) => {
      const move = mayEnd(session) ? await open() : undefined;
      if (move?.sessions === undefined) return undefined;
      const { client_id } = move.sessions;
      return `${move.origin}/v2/logout?${new URLSearchParams({ client_id, returnTo })}`;
    },
  };
}

/**
 * Ends a session at the custom domain for which the browser still has the cookies, and removes them. Where it has begun a session
 * here, they are gone, and it cannot begin another.
 * @returns whether there were such cookies.
 */
async function endAtDomain(
  deps: SessionBridgeDependencies,
  ctx: Context,
  move: Frozen<MoveRecord>,
): Promise<boolean> {
  const domain = domainFor(deps, ctx, move);
  expireSessionCookies(ctx);
  if (domain === undefined || !(await spendLimits(deps, ctx))) return false;
  const path = `/v2/logout?${new URLSearchParams({ client_id: move.sessions?.client_id ?? '' })}`;
  deps.background.run('the end of a session at the old tenant', async () => {
    await askDomain(deps.oldTenantSends.sessions, ctx, domain, path);
  });
  return true;
}

/** Whether a session of the old tenant may answer a request: not where it asks for a new login, or for the console. */
function acceptsOldSession(clientId: string, params: Readonly<Record<string, unknown>>): boolean {
  const { prompt, max_age, invitation, screen_hint } = params;
  const prompts = typeof prompt === 'string' ? prompt.split(' ') : [];
  if (clientId === CONSOLE_CLIENT || asksForLogin(prompts.join(' '))) return false;
  if (prompts.some((one) => one === 'select_account' || one === 'create') || screen_hint === 'signup')
    return false;
  return invitation === undefined && Number(max_age ?? 1) !== 0;
}

/**
 * Stores what the old tenant is asked, and asks it where this server can.
 * @returns the URL that the browser is sent to; undefined where there is no session.
 */
async function ask(
  deps: SessionBridgeDependencies,
  ctx: Context,
  move: Frozen<MoveRecord>,
  {
    params,
    ...about
  }: Pick<Question, 'clientId' | 'uid' | 'silent'> & { params: Readonly<Record<string, unknown>> },
): Promise<string | undefined> {
  const { baseUrl, challenges, random, wallClock } = deps;
  const domain = domainFor(deps, ctx, move);
  // Anybody can invent cookies. Only those that begin a session here take nothing from the limits in the end.
  if (domain !== undefined && !(await spendLimits(deps, ctx))) {
    doNotAskSoon(deps, ctx);
    return undefined;
  }
  const secret = () => random(32).toString('base64url');
  const seconds = typeof params.max_age === 'string' ? Number(params.max_age) : Number.NaN;
  const isLimited = Number.isFinite(seconds);
  const question: Question = {
    ...about,
    nonce: secret(),
    codeVerifier: secret(),
    browser: sha256(ASKED.ensure(ctx, random)),
    isFramed: isInFrame(ctx),
    isOfDomain: domain !== undefined,
    ...(isLimited && { freshSince: epochSeconds(wallClock) - seconds }),
  };
  const { secret: state } = await challenges.issueTicket({
    purpose: QUESTION,
    subject: about.uid ?? secret(),
    ttlSeconds: TTL.question,
    isWaiting: true,
    data: { ...question },
  });
  const path = `/authorize?${new URLSearchParams({
    client_id: move.sessions?.client_id ?? '',
    redirect_uri: `${baseUrl}${SESSION_CALLBACK}`,
    response_type: 'code',
    scope: 'openid',
    prompt: 'none',
    max_age: isLimited ? String(seconds) : ANY_AGE,
    state,
    nonce: question.nonce,
    code_challenge: sha256(question.codeVerifier),
    code_challenge_method: 'S256',
  })}`;
  if (domain === undefined) return `${move.origin}${path}`;
  try {
    const callback = await askInPlace(deps, ctx, domain, { path, state });
    if (callback !== undefined) return callback;
    expireSessionCookies(ctx);
  } catch (thrown) {
    recordFailure(deps, ctx, about, thrown);
  }
  await challenges.spendTicket(QUESTION, state);
  doNotAskSoon(deps, ctx);
  return undefined;
}

const doNotAskSoon = ({ random }: Pick<SessionBridgeDependencies, 'random'>, ctx: Context) =>
  pauseOf(isInFrame(ctx)).set(ctx, newBrowserSecret(random));

/** Returns where a browser is asked about, by the cookies that it has; undefined where it has to be sent. */
function domainFor(
  { baseUrl }: Pick<SessionBridgeDependencies, 'baseUrl'>,
  ctx: Context,
  { sessions }: Frozen<MoveRecord>,
): { address: OldAddress; cookies: string } | undefined {
  const address = sessions?.through && domainAddress(sessions.through, baseUrl, ctx.ip);
  const cookies = address && sessionCookies(ctx, baseUrl);
  return cookies === undefined || address === undefined ? undefined : { address, cookies };
}

/**
 * Asks the custom domain in the browser's place.
 * @returns our callback with the answer, for the browser; undefined where there is no session.
 * @throws OldTenantFault, OutboundError
 */
async function askInPlace(
  { baseUrl, oldTenantSends }: SessionBridgeDependencies,
  ctx: Context,
  domain: { address: OldAddress; cookies: string },
  { path, state }: { path: string; state: string },
): Promise<string | undefined> {
  const callback = `${baseUrl}${SESSION_CALLBACK}`;
  const answer = answerIn(await askDomain(oldTenantSends.sessions, ctx, domain, path), callback, state);
  if (answer.code !== undefined && answer.error === undefined)
    return `${callback}?${new URLSearchParams({ ...answer, state })}`;
  if (!NO_SESSION.has(answer.error ?? '')) throw new OldTenantFault(NO_ANSWER);
  return undefined;
}

const NO_ANSWER = 'it answered with an error, or without a code';

// The answer.

export interface SessionCallbackDependencies
  extends SessionBridgeDependencies,
    HostedDependencies,
    OldTokenDependencies,
    OldUserDependencies {
  authorization: Pick<AuthorizationEndpoint, 'answerSilent'>;
  waitingRequests: WaitingRequests;
  settle: Pick<Settlement, 'decide'>;
  useOldSession: UseOldSession;
  users: Pick<Users, 'credentialVersion'>;
}

export const sessionRoutes: RouteDeclarations<SessionCallbackDependencies> = {
  [`GET ${SESSION_CALLBACK}` as const]: { ...PAGE, handle: handleAnswer },
  'GET /u/:uid/move': { ...PAGE, handle: resumeRequest },
};

async function handleAnswer(deps: SessionCallbackDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Referrer-Policy', 'no-referrer');
  const { state = '', ...answer } = textsOf(ctx.query);
  const { challenges } = deps;
  const question = (await challenges.peekTicket<Question>(QUESTION, state))?.data;
  if (question === undefined) throw requestExpired();
  const isAsker = ASKED.matchesHash(ctx, question.browser);
  // A browser that keeps no cookies in frames cannot show that it was asked. Its silent request is answered all the same, as one
  // of a user who is not logged in; anything else would leave its application without an answer.
  if (!isAsker && question.silent === undefined) throw requestExpired();
  if ((await challenges.spendTicket(QUESTION, state)) === undefined) throw requestExpired();
  const login = isAsker ? await loginOf(deps, ctx, question, answer) : undefined;
  // Not in a browser that was led here with the question of another one, whose session would not be found then.
  if (isAsker && login === undefined) pauseOf(question.isFramed).set(ctx, newBrowserSecret(deps.random));
  // What the browser has is used up. Where it failed, the old tenant may be asked about it again.
  if (login !== undefined && question.isOfDomain) expireSessionCookies(ctx);
  const { silent, uid = '' } = question;
  if (silent !== undefined) return deps.authorization.answerSilent(ctx, silent, login);
  ctx.status = 303;
  if (login === undefined) return ctx.redirect(waitingPath(uid));
  // The cookies of the waiting request are sent below its path only, so the login is handed over by a ticket.
  const data = { uid, login, browser: question.browser };
  const proof = { purpose: PROOF, subject: uid, ttlSeconds: TTL.proof, userId: login.userId, data };
  ctx.redirect(`${waitingPath(uid)}/move?ticket=${(await challenges.issueTicket(proof)).secret}`);
}

/** Continues the waiting request with the login, if it is one that the request takes; otherwise with its page. */
async function resumeRequest(deps: SessionCallbackDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const { waiting } = await openRequestPage(deps, ctx);
  const { uid, clientId, params } = waiting;
  const ticket = String(ctx.query.ticket ?? '');
  const proof = (
    await deps.challenges.peekTicket<{ uid: string; login: Login; browser: string }>(PROOF, ticket)
  )?.data;
  const isOwn = proof?.uid === uid && ASKED.matchesHash(ctx, proof.browser);
  if (!isOwn || !waitsForLogin(waiting) || (await deps.challenges.spendTicket(PROOF, ticket)) === undefined)
    return ctx.redirect(waitingPath(uid));
  const { login } = proof;
  const requirements = { clientId, ...loginRequirements(params), browser: true, ctx };
  const decision = await deps.settle.decide(login, requirements);
  if (decision.is === 'refused') return ctx.redirect(waitingPath(uid));
  // Nothing is offered to the user on the way, as after other logins: they do not notice this one.
  if (decision.is === 'complete') return deps.waitingRequests.answer(ctx, { login });
  await deps.waitingRequests.storeFirstFactor(ctx, login);
  ctx.redirect(`${waitingPath(uid)}/${FACTOR_STEP}`);
}

/** @returns undefined for a browser without a session there, or with one that is not accepted. */
async function loginOf(
  deps: SessionCallbackDependencies,
  ctx: Context,
  question: Question,
  answer: Readonly<Record<string, string>>,
): Promise<Login | undefined> {
  const { config, wallClock, events } = deps;
  const move = await config.move();
  // Judged again: it may have ended while the browser was away.
  if (move === undefined || !isOpen(move, move.sessions, wallClock())) return undefined;
  const about = { client_id: question.clientId, ip: ctx.ip };
  // Anybody can invent codes. Only those that the old tenant does not accept take from the limits in the end.
  const isCounted = question.isOfDomain || answer.code === undefined || (await spendLimits(deps, ctx));
  if (!isCounted) return undefined;
  try {
    const proved = await identify(deps, ctx, move, question, answer);
    if (proved === undefined) return undefined;
    const login = await admitted(deps, ctx, move, { ...proved, question });
    for (const [limit, key] of limitsFor(ctx)) await deps.rateLimits.giveBack(limit, key);
    deps.countMove('sessions', 'moved');
    const { userId: user_id, amr, authTime } = login;
    const details = { amr: amr.join(' '), auth_time: new Date(authTime * 1000).toISOString() };
    events.record({ type: moveEvents.moved_session, ...about, user_id, details });
    return login;
  } catch (thrown) {
    recordFailure(deps, ctx, question, thrown);
    return undefined;
  }
}

function recordFailure(
  { events, log, countMove }: Pick<SessionBridgeDependencies, 'events' | 'log' | 'countMove'>,
  ctx: Context,
  { clientId }: Pick<Question, 'clientId'>,
  thrown: unknown,
): void {
  const description = thrown instanceof Error ? thrown.message.slice(0, 300) : 'it failed';
  events.record({ type: moveEvents.old_session_failed, client_id: clientId, ip: ctx.ip, description });
  const isRefused = thrown instanceof NotAdmitted;
  countMove('sessions', isRefused ? 'refused' : 'failed');
  if (!isRefused) log.warn({ err: thrown }, 'a session of the old tenant was not moved');
}

const limitsFor = (ctx: Context) =>
  [
    [moveLimits.oldSessionsOfAddress, ctx.ip],
    [moveLimits.oldSessions, ''],
  ] as const;

/** Takes what asking the old tenant needs from the limits. @returns false if there were too many. */
async function spendLimits(
  { rateLimits }: Pick<SessionBridgeDependencies, 'rateLimits'>,
  ctx: Context,
): Promise<boolean> {
  for (const [limit, key] of limitsFor(ctx)) if (!(await rateLimits.spend(limit, key))) return false;
  return true;
}

/** Errors that mean that the browser has no session there, or none that would do without a page. */
const NO_SESSION = new Set([
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
  'mfa_required',
]);

interface Proved {
  userId: string;
  /** Epoch seconds. */
  authTime: number;
  amr: string[];
  acr: string | undefined;
  /** What identifies the session there. */
  session: string;
}

/**
 * Returns whom the answer of the old tenant proves; undefined where it says that there is no session.
 * @throws Error for an answer that is not accepted.
 */
async function identify(
  deps: SessionCallbackDependencies,
  ctx: Context,
  move: Frozen<MoveRecord>,
  { nonce, codeVerifier, isOfDomain }: Question,
  { code, error, iss }: Readonly<Record<string, string>>,
): Promise<Proved | undefined> {
  const { sessions } = move;
  if (sessions === undefined) return undefined;
  // The hosted service names the domain that it was asked at, or its own, and takes a code where it was given.
  const issuers = isOfDomain ? [oldIssuer({ origin: deps.baseUrl })] : [];
  const address = isOfDomain
    ? sessions.through && domainAddress(sessions.through, deps.baseUrl, ctx.ip)
    : move;
  if (address === undefined) throw new OldTenantFault('its custom domain is not asked any more');
  // Mix-up attack (RFC 9207 §2.4).
  if (iss !== undefined && ![oldIssuer(move), ...issuers].includes(iss))
    throw new OldTenantFault('its answer is of another issuer');
  if (error !== undefined && NO_SESSION.has(error)) return undefined;
  if (error !== undefined || code === undefined) throw new OldTenantFault(NO_ANSWER);
  const { client_id, client_secret } = sessions;
  const method = client_secret === undefined ? 'none' : 'client_secret_post';
  const tokens = await requestOldTokens(
    deps.oldTenantSends.sessions,
    address,
    { client_id, ...(client_secret && { client_secret }), method },
    {
      grant_type: 'authorization_code',
      code,
      redirect_uri: `${deps.baseUrl}${SESSION_CALLBACK}`,
      code_verifier: codeVerifier,
    },
  );
  if (tokens?.id_token === undefined) throw new OldTenantFault('it gave no ID token for its code');
  const { access_token: accessToken, id_token } = tokens;
  const expected = { clientId: client_id, issuers, nonce, accessToken };
  const claims = await verifyOldIdToken(deps, move, id_token, expected);
  const { sub, auth_time: authTime, acr, sid } = claims;
  if (typeof authTime !== 'number')
    throw new OldTenantFault('its ID token does not say when the user authenticated');
  const amr = methodsIn(claims.amr);
  return {
    userId: sub,
    authTime: Math.floor(authTime),
    amr,
    acr: typeof acr === 'string' && amr.includes('mfa') ? acr.slice(0, 200) : undefined,
    session: typeof sid === 'string' && sid !== '' ? sid : `${sub} ${authTime}`,
  };
}

/** Allowed difference between the clocks, seconds. */
const TOLERANCE = 60;

/** Returns the login of a session there, as it was proved there and not better. @throws NotAdmitted */
async function admitted(
  deps: SessionCallbackDependencies,
  ctx: Context,
  move: Frozen<MoveRecord>,
  { userId, authTime, amr, acr, session, question }: Proved & { question: Question },
): Promise<Login> {
  const now = epochSeconds(deps.wallClock);
  if (authTime > now + TOLERANCE) throw new NotAdmitted('its user authenticated in the future');
  if (question.freshSince !== undefined && authTime < question.freshSince - TOLERANCE)
    throw new NotAdmitted('its user authenticated longer ago than the request accepts');
  // A session here counts from the authentication, wherever that was.
  const until = authTime + deps.config.settings().tenant.session_lifetime * 3600;
  if (until <= now) throw new NotAdmitted('it is older than sessions here may be');
  const user = await userOfProof(deps, move, userId, authTime);
  if (!(await deps.useOldSession({ id: session, browser: question.browser, until })))
    throw new NotAdmitted('it has begun a session here before');
  return {
    userId: user.id,
    connection: (await onlyConnection(deps, user.id)) ?? '',
    amr,
    ...(acr !== undefined && { acr }),
    presence: 'present',
    authTime,
    ip: ctx.ip,
    credentialVersion: await deps.users.credentialVersion(user.id),
    // That of the custom domain cannot be ended by the browser, which has no cookie for it any more.
    ...(!question.isOfDomain && { providerSession: { [OF_OLD_TENANT]: 'yes' } }),
  };
}
