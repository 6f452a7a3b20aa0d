// Authorization requests that wait for their user: finds that of a browser, stores data with it, and resumes it. The
// engine calls such a request an interaction; everything of ours calls it a waiting request.

import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { AuthError } from '../../http/errors.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import { hostOfCallback } from '../../records/clients/third-parties.ts';
import { consentId } from '../../records/state/engine.ts';
import type { Correlation } from '../../runtime/requester.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { isUnattended, type Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { isCredentialCurrent } from '../admission/admission.ts';
import { transferOf, wouldEnroll } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { isOidcScope, OIDC_CONSENT_KEY, readExtensions, toAudience } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import { recordAllowed, type UseDependencies } from '../client/registration-use.ts';
import { loginAnswer } from '../login/browser-login.ts';
import { type ReturnRequest, waitingActionsOf } from '../login/login-actions.ts';
import {
  LACKS_SECOND_FACTOR,
  LACKS_USER,
  type MissingConsent,
  missingConsent,
  resourceScopes,
} from '../login/policy.ts';
import { connectionOf, credentialVersionOf, presenceOf, providerSessionOf } from '../session/sessions.ts';
import { rememberConsent } from '../token/token-grants.ts';

// Finds the login that waits for its second factor.

type Interaction = InstanceType<Provider['Interaction']>;

/**
 * Returns the login that lacks its second factor: that of this request, or of the browser's session (step-up).
 * @param ip the user's present address.
 * @returns undefined when there is none or it does not hold any more: a new password ends logins with the old one,
 *   and the end of a session ends its step-ups.
 */
async function loginBeforeSecondFactor(
  provider: Provider,
  { users, secondFactor }: { users: Users; secondFactor: Pick<SecondFactor, 'enrolledFactors'> },
  { lastSubmission, session, prompt }: Interaction,
  ip: string,
): Promise<Login | undefined> {
  const { firstFactor } = (lastSubmission ?? {}) as { firstFactor?: Login };
  const wouldEnrollFactor = async (login: Pick<Login, 'userId' | 'presence'>) =>
    isUnattended(login) && wouldEnroll(secondFactor, login, await users.get(login.userId));
  if (firstFactor !== undefined) {
    const holds = await isCredentialCurrent(users, firstFactor);
    return holds && !(await wouldEnrollFactor(firstFactor)) ? firstFactor : undefined;
  }
  const lacksNothingElse =
    prompt.name === 'login' && prompt.reasons.length === 1 && prompt.reasons[0] === LACKS_SECOND_FACTOR;
  const userId = session?.accountId;
  if (!lacksNothingElse || userId === undefined || session?.uid === undefined) return undefined;
  const openSession = await provider.Session.findByUid(session.uid);
  if (openSession?.accountId !== userId) return undefined;
  // A session may survive the change of a password, but a step-up in it then asks for the password again.
  const credentialVersion = credentialVersionOf(openSession);
  if (!(await isCredentialCurrent(users, { userId, credentialVersion }))) return undefined;
  const presence = presenceOf(openSession);
  if (await wouldEnrollFactor({ userId, presence })) return undefined;
  return {
    userId,
    connection: connectionOf(openSession) ?? '',
    amr: [...(openSession.amr ?? [])],
    presence,
    authTime: openSession.loginTs ?? 0,
    // The present address, not that of the login: the session may be used from elsewhere now.
    ip,
    credentialVersion,
    providerSession: providerSessionOf(openSession),
    transfer: transferOf(openSession),
  };
}

// Binds each waiting request to its browser. The engine relies on cookies that any sibling sub-domain could set in
// another user's browser (`__Secure-`, with a path). An attacker could so make a victim log in to a request that
// the attacker's browser then resumes, or resume the victim's login. Therefore each request has a secret in a
// cookie that no other host can set (`__Host-`, RFC 6265bis §4.1.3.2), and is shown and resumed only in a browser
// that has it.
// docs/understand/decisions/authorize.md#a-waiting-authorization-request-is-bound-to-the-browser-that-started-it

const PREFIX = '__Host-gatehouse_login_';

/** `Lax`, like the engine's own cookie: an interaction begins with a navigation, and none is shown in a frame. */
const cookieOf = (uid: string, ttlSeconds?: number) =>
  browserCookie(`${PREFIX}${uid}`, { sameSite: 'lax', ...(ttlSeconds !== undefined && { ttlSeconds }) });

/** The most requests that wait in one browser. A further one makes the oldest invalid there. */
const MAX_WAITING = 20;

/** The members of a waiting request that identify its browser. */
interface BoundRequest {
  uid: string;
  params: Readonly<Record<string, unknown>>;
}

/**
 * Gives this browser the secret of a request that begins to wait.
 * @param ttlSeconds how long it may wait.
 */
export function bindBrowser(ctx: Context, uid: string, secret: string, ttlSeconds: number): void {
  // The oldest first: browsers send cookies in the order in which they were set (RFC 6265 §5.4).
  const older = cookiesOf(ctx);
  for (const name of older.slice(0, Math.max(0, older.length - MAX_WAITING + 1))) {
    cookieOf(name.slice(PREFIX.length)).clear(ctx);
  }
  cookieOf(uid, ttlSeconds).set(ctx, secret);
}

/** Returns the names of the cookies of all requests that wait in this browser. */
function cookiesOf(ctx: Context): string[] {
  return ctx
    .get('Cookie')
    .split(/;\s*/)
    .map((pair) => pair.split('=')[0] ?? '')
    .filter((name) => name.startsWith(PREFIX));
}

export function hasBrowserSecret(ctx: Context, hash: string): boolean {
  return cookiesOf(ctx).some((name) => cookieOf(name.slice(PREFIX.length)).matchesHash(ctx, hash));
}

/** Returns the secret of a waiting request; undefined when this browser does not have it. */
export function browserSecretOf(ctx: Context, { uid, params }: BoundRequest): string | undefined {
  const { browser } = readExtensions(params);
  const cookie = cookieOf(uid);
  return browser !== undefined && cookie.matchesHash(ctx, browser) ? cookie.secret(ctx) : undefined;
}

/** Removes the cookie of a request that does not wait any more. */
export function unbindBrowser(ctx: Context, uid: string): void {
  cookieOf(uid).clear(ctx);
}

/** The path where the engine sends the browser of a waiting request. @see waitingPath */
const WAITING_PATH = /^\/u\/([\w-]+)$/;

/** The data stored with a waiting request: the answers so far, and our own. */
interface RequestData extends InteractionResults {
  firstFactor?: Login;
  link?: PendingLink | undefined;
  offer?: PendingOffer;
  remembered?: Record<string, unknown>;
}

const isOfBrowser = (ctx: Context, interaction: Interaction) =>
  browserSecretOf(ctx, interaction) !== undefined;

/** Turns the engine's error for a missing request into ours. @throws AuthError 400 */
function rethrowNotFound(thrown: unknown): never {
  throw thrown instanceof errors.SessionNotFound ? requestExpired(thrown) : thrown;
}

interface WaitingRequestsDependencies extends UseDependencies {
  store: Store;
  rateLimits: Pick<RateLimits, 'spend'>;
  users: Users;
  secondFactor: Pick<SecondFactor, 'enrolledFactors'>;
  /**
   * Records which login a request belongs to, for the log: all waiting requests of one login share a `cid`, while each
   * has its own `uid`.
   */
  correlation: Pick<Correlation, 'setId'>;
}

export function waitingRequests(provider: Provider, deps: WaitingRequestsDependencies): WaitingRequests {
  const load = async (ctx: Context): Promise<Interaction> => {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(rethrowNotFound);
    // The engine relies on its cookie alone, which other hosts can set: our cookie and the path have to match, too.
    if (!isOfBrowser(ctx, interaction) || interaction.uid !== ctx.params.uid) throw requestExpired();
    deps.correlation.setId(interaction.cid);
    return interaction;
  };
  return {
    shown: async (ctx) => {
      const interaction = await load(ctx);
      return {
        ...describe(interaction),
        connection: await sessionConnection(provider, interaction),
        allowed: await allowedBefore(deps.store, interaction),
        invitedEmail: await invitedEmail(deps.store, interaction),
        firstFactor: await loginBeforeSecondFactor(provider, deps, interaction, ctx.ip),
      };
    },
    find: async (ctx, uid) => {
      const interaction = await provider.Interaction.find(uid);
      if (interaction === undefined || !isOfBrowser(ctx, interaction)) throw requestExpired();
      deps.correlation.setId(interaction.cid);
      return describe(interaction);
    },
    findByLocation: async (ctx, location) => {
      const uid = WAITING_PATH.exec(location)?.[1];
      const interaction = uid === undefined ? undefined : await provider.Interaction.find(uid);
      if (interaction === undefined) return undefined;
      const described = describe(interaction);
      if (described.prompt !== 'login' || described.loginTicket !== undefined) return undefined;
      if (described.transferredLogin !== undefined) return undefined;
      if ((await loginBeforeSecondFactor(provider, deps, interaction, ctx.ip)) !== undefined)
        return undefined;
      return described;
    },
    storeFirstFactor: async (ctx, firstFactor) => {
      const interaction = await load(ctx);
      await storeData(interaction, { firstFactor, link: dataOf(interaction).link });
    },
    storeLink: async (ctx, link) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...earlierAnswers(interaction), link });
    },
    storeOffer: async (ctx, offer) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...earlierAnswers(interaction), offer });
    },
    remember: async (ctx, remembered) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...(interaction.lastSubmission as object | undefined), remembered });
    },
    answer: async (ctx, answer) => {
      const interaction = await load(ctx);
      if (answer === 'consent') await storeConsent(provider, deps, interaction);
      const before = earlierAnswers(interaction);
      if (typeof answer === 'object' && 'organization' in answer) Object.assign(interaction.params, answer);
      const result = resultOf(answer);
      const continued = { ...before, ...actionsOf(interaction, answer), ...result };
      Object.assign(interaction, { result: 'error' in result ? result : continued });
      await interaction.persist();
      ctx.redirect(interaction.returnTo);
    },
  };
}

/** Returns the state of the actions of a request, for the actions that continue. */
function actionsOf({ prompt }: Interaction, answer: Answer): InteractionResults {
  const actions = waitingActionsOf(prompt);
  if (actions === undefined) return {};
  const returned = typeof answer === 'object' && 'returned' in answer ? answer.returned : undefined;
  // A passkey counts as two factors, but is none of the second factors that an action names, and its login has no
  // `acr`.
  const login = typeof answer === 'object' && 'login' in answer ? answer.login : undefined;
  const isGiven = login?.acr !== undefined && login.amr.includes('mfa');
  return { actions: { ...actions, returned, isGiven } };
}

function resultOf(answer: Answer): InteractionResults {
  if (answer === 'account') return { select_account: {} };
  if (answer === 'consent') return { consent: {} };
  if ('organization' in answer || 'returned' in answer) return {};
  if ('login' in answer) return loginAnswer(answer.login);
  return { error: answer.error, error_description: answer.description };
}

/** Stores the user's consent. @throws AuthError 400 when nobody is logged in, or nobody was at the login. */
async function storeConsent(
  provider: Provider,
  deps: WaitingRequestsDependencies,
  interaction: Interaction,
): Promise<void> {
  const { userId, clientId, missing, params } = describe(interaction);
  const session = await openSession(provider, interaction);
  if (userId === undefined || session === undefined || isUnattended({ presence: presenceOf(session) }))
    throw new AuthError(400, 'invalid_request', 'Nobody is logged in.');
  const requestedScopes = (params.scope ?? '').split(' ').filter(isOidcScope);
  // First, so that a registration does not change any more once somebody has allowed it something.
  await recordAllowed(deps, clientId, userId);
  const scopes = {
    [OIDC_CONSENT_KEY]: [...missing.oidcScopes, ...requestedScopes],
    // That the user was asked for the API at all, also without a scope.
    ...(params.resource !== undefined && { [params.resource]: [] }),
    ...resourceScopes(interaction),
  };
  await rememberConsent(deps.store, userId, clientId, scopes, await shownHost(provider, clientId, params));
}

/** Returns the host of the callback that the page has shown; undefined where it shows none. */
async function shownHost(
  provider: Provider,
  clientId: string,
  { redirect_uri: callback }: { redirect_uri?: string | undefined },
): Promise<string | undefined> {
  const client = await provider.Client.find(clientId);
  if (client === undefined || !applicationSettings(client).isStranger) return undefined;
  return hostOfCallback(callback ?? '');
}

async function sessionConnection(provider: Provider, interaction: Interaction): Promise<string | undefined> {
  return connectionOf((await openSession(provider, interaction)) ?? {});
}

/** Returns the session that a request waits in; undefined when it has ended, or is another user's by now. */
async function openSession(provider: Provider, { session }: Interaction): Promise<object | undefined> {
  if (session?.uid === undefined) return undefined;
  const open = await provider.Session.findByUid(session.uid);
  return open?.accountId === session.accountId ? open : undefined;
}

/**
 * Returns what the user has allowed the application before. Where the answer goes to a host that the user was not shown, that
 * is nothing: all of it is new there.
 */
async function allowedBefore(
  store: Store,
  { prompt, session, params }: Interaction,
): Promise<ShownWaitingRequest['allowed']> {
  if (prompt.name !== 'consent' || session === undefined) return {};
  const { client_id: clientId, redirect_uri: callback } = params;
  const consent = await store.collection('consents').get(consentId(session.accountId, String(clientId)));
  const host = hostOfCallback(String(callback));
  const isElsewhere = host !== undefined && consent?.hosts?.includes(host) === false;
  const entries = isElsewhere ? [] : Object.entries(consent?.scopes ?? {});
  const named = ([key, scopes]: (typeof entries)[number]) =>
    [key === OIDC_CONSENT_KEY ? key : toAudience(key), scopes] as const;
  return Object.fromEntries(entries.map(named));
}

async function invitedEmail(store: Store, { params }: Interaction): Promise<string | undefined> {
  const { invitation } = params as { invitation?: string };
  if (invitation === undefined) return undefined;
  const [found] = await store.collection('invitations').findBy('ticket', hashSecret(invitation));
  return found?.invitee.email;
}

function describe(
  interaction: Interaction,
): Omit<ShownWaitingRequest, 'firstFactor' | 'invitedEmail' | 'connection' | 'allowed'> {
  const params = interaction.params as Record<string, string | undefined>;
  const { link, offer, remembered = {} } = dataOf(interaction);
  return {
    uid: interaction.uid,
    prompt: interaction.prompt.name,
    clientId: String(params.client_id),
    params: link?.isAccepted === true ? { ...params, ...linkParameters(link) } : params,
    link,
    offer,
    upstream: readExtensions(params).upstream,
    loginTicket: readExtensions(params).loginTicket,
    // Not again where it was not enough.
    transferredLogin: interaction.prompt.reasons.includes(LACKS_USER)
      ? undefined
      : readExtensions(params).handed,
    userId: interaction.session?.accountId,
    missing: missingConsent(interaction),
    factors: waitingActionsOf(interaction.prompt)?.factors,
    primary: waitingActionsOf(interaction.prompt)?.primary?.login,
    redirect: waitingActionsOf(interaction.prompt)?.redirect,
    remembered,
  };
}

/** Returns the parameters that change while the user logs in to the other account of a link. */
function linkParameters({ connection, email }: PendingLink): ShownWaitingRequest['params'] {
  return { connection, login_hint: email, screen_hint: undefined };
}

/**
 * Returns the earlier answers, which are submitted along with the next one, without our own data, which must not
 * reach the next step.
 */
function earlierAnswers(interaction: Interaction): InteractionResults {
  const data = dataOf(interaction);
  const { firstFactor: _factor, remembered: _remembered, link: _link, offer: _offer, ...before } = data;
  return before;
}

function dataOf({ lastSubmission }: Interaction): RequestData {
  return (lastSubmission ?? {}) as RequestData;
}

/** Stores our own data in the interaction's `lastSubmission`, which the engine stores and does not read. */
async function storeData(interaction: Interaction, data: object): Promise<void> {
  Object.assign(interaction, { lastSubmission: data });
  await interaction.persist();
}

// What flow/ and the pages know of waiting requests.

/** An authorization request that waits for its user. */
export interface ShownWaitingRequest {
  uid: string;
  /** `login`, `consent`, `select_account`, `organization_name`, `organization`, `redirect` or `primary`. */
  prompt: string;
  clientId: string;
  /** The authorization request's parameters, as the engine has them. */
  params: Readonly<Record<string, string | undefined>>;
  /** Parameters to forward to an upstream provider. */
  upstream: Readonly<Record<string, string>>;
  /** The ticket of a login done before the request, as the application sent it. */
  loginTicket: string | undefined;
  /** The login that a session transfer token of the request stands for. */
  transferredLogin: Login | undefined;
  /** The user who is logged in already. */
  userId: string | undefined;
  /** The connection that this user logged in with, where it is known. */
  connection: string | undefined;
  /** What a third-party application asks the user to allow. */
  missing: MissingConsent;
  /** What the user has allowed the application before, by API identifier, `""` for the OpenID Connect scopes. */
  allowed: Readonly<Record<string, readonly string[]>>;
  /** The login that has its first factor and still lacks the second: of this request, or of the session. */
  firstFactor: Login | undefined;
  /** The e-mail address that the request's invitation was sent to. */
  invitedEmail: string | undefined;
  /** The account that the user is offered to link to theirs, or is logging in to for that. */
  link: PendingLink | undefined;
  /** The offer that the user sees before the login is answered, or has answered. */
  offer: PendingOffer | undefined;
  /** The second factors that actions ask for, where they name any. */
  factors: RequiredFactors | undefined;
  /** The login of the user whom an action has put in place of the one who logged in. */
  primary: Login | undefined;
  /** The address to which an action sends the user before the request goes on. */
  redirect: string | undefined;
  /** The data that {@link WaitingRequests.remember} has kept. */
  remembered: Readonly<Record<string, unknown>>;
}

/** A login whose user is asked whether another account is theirs, too. */
export interface PendingLink {
  /** The login with the new identity: complete, but the request is not answered yet. */
  login: Login;
  /** The other account, the connection to log in to it with, and the e-mail address that both have. */
  userId: string;
  connection: string;
  email: string;
  /**
   * Whether the user has accepted. The request then waits for a login with that connection, whatever connection it
   * names itself.
   */
  isAccepted: boolean;
  /** Whether the user has logged in to a different account instead. */
  isOther?: boolean;
}

/** A login whose user is offered something before it is answered. */
export interface PendingOffer {
  /** Complete, but the request is not answered yet. */
  login: Login;
  isAnswered: boolean;
  /** Whether a passkey for this device is offered, to a user who has logged in with one of another device. */
  isLocal?: boolean;
}

/** The members of a waiting request that are known at every path. */
export type WaitingRequest = Pick<
  ShownWaitingRequest,
  'uid' | 'prompt' | 'clientId' | 'params' | 'userId' | 'link' | 'offer'
>;

/** The answer with which a waiting request continues. */
export type Answer =
  | { login: Login }
  /** The user keeps the account that is logged in. */
  | 'account'
  /** The user allows what the application asks for. */
  | 'consent'
  /** Parameters that the user has added: the id of the organization, and the e-mail address that led to it. */
  | { organization: string; login_hint?: string }
  /** The user has returned from a redirect of an action. */
  | { returned: ReturnRequest }
  /** The application gets an error. */
  | { error: string; description: string };

/** The waiting requests in the engine. flow/ decides how they go on. */
export interface WaitingRequests {
  /**
   * Returns the request of the path in this browser.
   * @throws AuthError 400 when it is answered, expired or does not exist.
   */
  shown(ctx: Context): Promise<ShownWaitingRequest>;
  /**
   * Returns a request by its uid, for a path that is not its own.
   * @throws AuthError 400 when no such request waits in this browser.
   */
  find(ctx: Context, uid: string): Promise<WaitingRequest>;
  /**
   * Returns the request that has just begun to wait for a login.
   * @param location where the engine sends its browser.
   * @returns undefined when it waits for something else, or already has a login that lacks something.
   */
  findByLocation(ctx: Context, location: string): Promise<WaitingRequest | undefined>;
  /** Stores the first factor with the request until the second one is given. Only this server can write there. */
  storeFirstFactor(ctx: Context, login: Login): Promise<void>;
  /** Stores an offered or accepted link in place of a first factor; undefined removes it. */
  storeLink(ctx: Context, link: PendingLink | undefined): Promise<void>;
  /** Stores an offer, or that it was answered, in place of a first factor. */
  storeOffer(ctx: Context, offer: PendingOffer): Promise<void>;
  /** Stores JSON with the request until it ends. The browser does not see it. */
  remember(ctx: Context, data: Record<string, unknown>): Promise<void>;
  /** Stores the answer and sends the browser on. */
  answer(ctx: Context, answer: Answer): Promise<void>;
}

/** Returns the path of an interaction's pages. The engine's cookie for it is limited to this path. */
export function waitingPath(uid: string): string {
  return `/u/${uid}`;
}

/** Returns the error for a request that does not wait in this browser, or not any more. */
export function requestExpired(cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', 'This login request has expired or was already used.', {
    extra: { reason: 'request_expired' },
    cause,
  });
}
