// The bridge of sessions: a browser without a session here is sent to the old tenant once, which is asked not to show anything
// (`prompt=none`). One that has a session there comes back logged in; any other goes on as if it had not been sent.
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
import { OldTenantFault } from './old-requests.ts';
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
}

/** Sends browsers to the old tenant. */
export interface OldSessions {
  /** @see DirectRedirect */
  redirect: DirectRedirect;
  /** @see SilentRedirect */
  silentRedirect: SilentRedirect;
  /** Remembers in the browser that its user has logged out here. */
  leave(ctx: Context): Promise<void>;
  /** Whether a session was begun by one of the old tenant, where the bridge is still open. */
  isOfOldTenant(session: Pick<Login, 'providerSession'>): Promise<boolean>;
  /** Returns the URL that ends that session; undefined for other sessions. */
  logoutUrl(session: Pick<Login, 'providerSession'>, returnTo: string): Promise<string | undefined>;
}

/** Set in the sessions that were begun by one of the old tenant. */
const OF_OLD_TENANT = 'old_tenant';

export function oldSessions(deps: SessionBridgeDependencies): OldSessions {
  const { config, wallClock } = deps;
  const open = async () => {
    const move = await config.move();
    return move !== undefined && isOpen(move, move.sessions, wallClock()) ? move : undefined;
  };
  const moveOf = async ({ providerSession }: Pick<Login, 'providerSession'>) =>
    providerSession?.[OF_OLD_TENANT] === undefined ? undefined : open();
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
    leave: async (ctx) => {
      if ((await open()) !== undefined) LOGGED_OUT.set(ctx, newBrowserSecret(deps.random));
    },
    isOfOldTenant: async (session) => (await moveOf(session)) !== undefined,
    logoutUrl: async (session, returnTo) => {
      const move = await moveOf(session);
      if (move?.sessions === undefined) return undefined;
      const { client_id } = move.sessions;
      return `${move.origin}/v2/logout?${new URLSearchParams({ client_id, returnTo })}`;
    },
  };
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

/** Stores what the browser is sent with. @returns the URL that it is sent to. */
async function ask(
  { baseUrl, challenges, random, wallClock }: SessionBridgeDependencies,
  ctx: Context,
  { origin, sessions }: Frozen<MoveRecord>,
  {
    params,
    ...about
  }: Pick<Question, 'clientId' | 'uid' | 'silent'> & { params: Readonly<Record<string, unknown>> },
): Promise<string> {
  const secret = () => random(32).toString('base64url');
  const seconds = typeof params.max_age === 'string' ? Number(params.max_age) : Number.NaN;
  const isLimited = Number.isFinite(seconds);
  const question: Question = {
    ...about,
    nonce: secret(),
    codeVerifier: secret(),
    browser: sha256(ASKED.ensure(ctx, random)),
    isFramed: isInFrame(ctx),
    ...(isLimited && { freshSince: epochSeconds(wallClock) - seconds }),
  };
  const { secret: state } = await challenges.issueTicket({
    purpose: QUESTION,
    subject: about.uid ?? secret(),
    ttlSeconds: TTL.question,
    isWaiting: true,
    data: { ...question },
  });
  return `${origin}/authorize?${new URLSearchParams({
    client_id: sessions?.client_id ?? '',
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
}

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
  events: Pick<Events, 'record'>;
  log: Pick<Logger, 'warn'>;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  countMove: CountMove;
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
  const { config, wallClock, events, log } = deps;
  const move = await config.move();
  // Judged again: it may have ended while the browser was away.
  if (move === undefined || !isOpen(move, move.sessions, wallClock())) return undefined;
  const about = { client_id: question.clientId, ip: ctx.ip };
  // Anybody can invent codes. Only those that the old tenant does not accept take from the limits in the end.
  if (answer.code !== undefined && !(await spendLimits(deps, ctx))) return undefined;
  try {
    const proved = await identify(deps, move, question, answer);
    if (proved === undefined) return undefined;
    for (const [limit, key] of limitsFor(ctx)) await deps.rateLimits.giveBack(limit, key);
    const login = await admitted(deps, ctx, move, { ...proved, question });
    deps.countMove('sessions', 'moved');
    const { userId: user_id, amr, authTime } = login;
    const details = { amr: amr.join(' '), auth_time: new Date(authTime * 1000).toISOString() };
    events.record({ type: moveEvents.moved_session, ...about, user_id, details });
    return login;
  } catch (thrown) {
    const description = thrown instanceof Error ? thrown.message.slice(0, 300) : 'it failed';
    events.record({ type: moveEvents.old_session_failed, ...about, description });
    const isRefused = thrown instanceof NotAdmitted;
    deps.countMove('sessions', isRefused ? 'refused' : 'failed');
    if (!isRefused) log.warn({ err: thrown }, 'a session of the old tenant was not moved');
    return undefined;
  }
}

const limitsFor = (ctx: Context) =>
  [
    [moveLimits.oldSessionsOfAddress, ctx.ip],
    [moveLimits.oldSessions, ''],
  ] as const;

/** Takes what asking the old tenant needs from the limits. @returns false if there were too many. */
async function spendLimits(
  { rateLimits }: Pick<SessionCallbackDependencies, 'rateLimits'>,
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
  move: Frozen<MoveRecord>,
  { nonce, codeVerifier }: Question,
  { code, error, iss }: Readonly<Record<string, string>>,
): Promise<Proved | undefined> {
  const { sessions } = move;
  if (sessions === undefined) return undefined;
  // Mix-up attack (RFC 9207 §2.4).
  if (iss !== undefined && iss !== oldIssuer(move))
    throw new OldTenantFault('its answer is of another issuer');
  if (error !== undefined && NO_SESSION.has(error)) return undefined;
  if (error !== undefined || code === undefined)
    throw new OldTenantFault('it answered with an error, or without a code');
  const { client_id, client_secret } = sessions;
  const method = client_secret === undefined ? 'none' : 'client_secret_post';
  const tokens = await requestOldTokens(
    deps,
    move,
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
  const claims = await verifyOldIdToken(deps, move, id_token, { clientId: client_id, nonce, accessToken });
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
    providerSession: { [OF_OLD_TENANT]: 'yes' },
  };
}
