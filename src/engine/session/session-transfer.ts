// Issues session transfer tokens. An application exchanges its refresh token, or a token that an action has
// checked, for one, and opens a browser with it: a single request to /authorize then begins a session without a
// login page.
import type { Context } from 'koa';
import { errors, type Grant, type KoaContextWithOIDC, type RefreshToken } from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { AuthError } from '../../http/errors.ts';
import { requestValue, tenantHostOf } from '../../http/server/request-target.ts';
import type { Frozen } from '../../records/base/record.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import type { SessionTransfer } from '../../records/clients/session-transfer.ts';
import type { Client } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { type Login, methodsOfFirstFactor, type Transfer } from '../../users/login.ts';
import { transferOf } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { engineEvents } from '../base/engine-declaration.ts';
import {
  deviceOf,
  EXTENSIONS_PARAMETER,
  readExtensions,
  requestedAudience,
} from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import { applyForwardedAddress } from '../client/engine-client-authentication.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import { familyKey } from './refresh-families.ts';
import { credentialVersionOf, factorsOf, type Sessions } from './sessions.ts';

/** The token type identifier of session transfer tokens (RFC 8693 §3). */
const SESSION_TRANSFER_TOKEN = 'urn:auth0:params:oauth:token-type:session_transfer_token';

/** Lifetime of a session transfer token, seconds. */
const TRANSFER_SECONDS = 60;

/** The purpose of the ticket that a session transfer token is. */
const SESSION_TRANSFER = 'session_transfer';

/** The `audience` that asks for a session transfer token. It contains our host as the application knows it. */
const AUDIENCE = /^urn:(?:https:\/\/)?([^/]+):session_transfer$/;

/** The login that a session transfer token stands for. */
export interface TransferredLogin {
  login: Login & { transfer: Transfer };
  organization?: string | undefined;
  /** {@link SecondFactor.factorsOf} when the second factor was given; undefined for a login without one. */
  factors?: string | undefined;
}

/** Whether an audience asks for a session transfer token of this host. */
export function isTransferAudience(ctx: Context, audience: string | undefined): boolean {
  const { host, hostname } = tenantHostOf(ctx);
  const audienceHost = AUDIENCE.exec(audience ?? '')?.[1];
  return audienceHost !== undefined && (audienceHost === host || audienceHost === hostname);
}

/** The audience with which a token request asks for a session transfer token; undefined when it does not. */
export const transferAudience = requestValue<string>('transfer audience');

interface IssueDependencies {
  challenges: Pick<Challenges, 'issueTicket'>;
  random: Random;
}

/**
 * Issues a session transfer token.
 * @returns the members of the token response that describe it (RFC 8693 §2.2.1).
 */
export async function issueTransferToken(
  { challenges, random }: IssueDependencies,
  transferred: TransferredLogin,
): Promise<Record<string, unknown>> {
  const { secret } = await challenges.issueTicket({
    purpose: SESSION_TRANSFER,
    // A random subject, so that a second token does not replace the first: an application may open two windows at
    // once.
    subject: random(16).toString('base64url'),
    userId: transferred.login.userId,
    ttlSeconds: TRANSFER_SECONDS,
    data: { ...transferred },
  });
  return {
    access_token: secret,
    issued_token_type: SESSION_TRANSFER_TOKEN,
    token_type: 'N_A',
    expires_in: TRANSFER_SECONDS,
  };
}

/**
 * Describes a transfer: the application, the time, and the device that asks.
 * @param scope the scope of the token request.
 */
export function transferFrom(
  ctx: Context,
  { clientId, scope }: { clientId: string; scope: string | undefined },
  wallClock: Clock,
): Transfer {
  const { last_user_agent: userAgent, last_ip: ip } = deviceOf(ctx, undefined);
  return { clientId, at: epochSeconds(wallClock), ip, userAgent, scopes: scopeValues(scope) };
}

/**
 * Checks that an application may create session transfer tokens.
 * @throws AuthError 403 `unauthorized_client` when it may not.
 */
export function refuseTransfer({ session_transfer: settings }: Pick<Client, 'session_transfer'>): void {
  if (!canTransfer(settings)) throw new AuthError(403, 'unauthorized_client', NOT_ENABLED);
}

function canTransfer(settings: Frozen<Partial<SessionTransfer>> | null | undefined): boolean {
  return settings?.can_create_session_transfer_token === true;
}

const NOT_ENABLED = 'Session transfer is not enabled for this client.';

/** Session transfer tokens at the refresh_token grant. */
export interface SessionTransfers {
  /**
   * Checks, before the refresh token is used up, that it may be exchanged for a session transfer token, where one
   * is asked for.
   * @throws errors.CustomOIDCProviderError when it may not.
   */
  check(ctx: KoaContextWithOIDC): void;
  /** Puts a session transfer token in place of the access token, where a refresh has asked for one. */
  answerRefresh(ctx: KoaContextWithOIDC): Promise<void>;
}

interface TransferDependencies extends IssueDependencies {
  events: Events;
  wallClock: Clock;
}

export function sessionTransfers(deps: TransferDependencies): SessionTransfers {
  return {
    check: (ctx) => {
      if (transferAudience.of(ctx) === undefined) return;
      const { Client: client, Grant: grant } = ctx.oidc.entities;
      if (client === undefined || !canTransfer(applicationSettings(client).sessionTransfer))
        throw new errors.CustomOIDCProviderError('unauthorized_client', NOT_ENABLED);
      // Otherwise each transferred session could yield the next refresh token, without end.
      if (transferOf(grant) === undefined) return;
      throw new errors.InvalidRequest('A session that was handed over is not handed over again.');
    },
    answerRefresh: async (ctx) => {
      if (transferAudience.of(ctx) === undefined) return;
      const { RefreshToken: token, Grant: grant, Client: client } = ctx.oidc.entities;
      if (token === undefined || grant === undefined || client === undefined)
        throw new TypeError('a refresh without its token');
      applyForwardedAddress(ctx, client);
      const transfer = transferFrom(
        ctx,
        { clientId: client.clientId, scope: ctx.oidc.params?.scope as string | undefined },
        deps.wallClock,
      );
      const transferred = loginOfRefreshToken(token, grant, transfer);
      const { scope, id_token, refresh_token } = ctx.body as Record<string, unknown>;
      ctx.body = { ...(await issueTransferToken(deps, transferred)), scope, id_token, refresh_token };
      const { userId: user_id, ip } = transferred.login;
      deps.events.record({ type: engineEvents.sertft, client_id: client.clientId, user_id, ip });
    },
  };
}

/** The members of a grant that describe its login. */
interface StoredLogin {
  amr?: readonly string[];
  authTime?: number;
  organization?: string;
  connection?: string;
}

function loginOfRefreshToken(token: RefreshToken, grant: Grant, transfer: Transfer): TransferredLogin {
  const { accountId: userId, acr, jti } = token;
  const { amr = [], authTime, organization, connection = '' } = grant as StoredLogin;
  const parent = familyKey(jti);
  return {
    login: {
      userId,
      connection,
      amr,
      ...(acr !== undefined && { acr }),
      // The user has proved nothing now.
      presence: 'absent',
      authTime: authTime ?? token.authTime ?? 0,
      ip: transfer.ip,
      credentialVersion: credentialVersionOf(grant),
      transfer: { ...transfer, parent },
    },
    organization,
    factors: factorsOf(grant),
  };
}

// Redeems session transfer tokens at /authorize. A token stands for a login as long as everything that it is bound
// to is unchanged. A token that is refused does not fail the request: the user is asked to log in, and the log says
// why the token was refused.

/** The cookie in which a native app hands the token to a web view that it opens, so that the token is in no URL. */
const COOKIE = 'auth0_session_transfer_token';

/** Descriptions in the log, in the words of the hosted service. */
const REASONS = {
  unknown: 'Session Transfer Token not found or expired. This may indicate token reuse or expiration.',
  device: 'Session Transfer Token device binding validation failed due to IP/ASN mismatch.',
  organization: 'Session Transfer Token organization mismatch detected.',
  user: 'Session Transfer Token user mismatch detected.',
  parent: 'Parent refresh token not found. Session Transfer Token won’t be used for session establishment.',
  delegation: 'Delegated access is not allowed for this client.',
  recent: 'The request asks for a login of its own.',
} as const;

interface RedemptionDependencies {
  challenges: Pick<Challenges, 'spendTicket'>;
  events: Events;
  secondFactor: Pick<SecondFactor, 'factorsOf'>;
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>;
  transferred: Pick<TransferredSessions, 'holds'>;
}

/** The redemption of session transfer tokens at /authorize. */
export interface TransferRedemption {
  /**
   * Spends the session transfer token of an authorization request, if it has one.
   * @param leave ends the session that the browser has.
   * @returns the login that the token stands for, which is also stored in the request's parameters; undefined when
   *   there is no token, it is refused, or the browser already has a session of its user.
   * @throws errors.OIDCProviderError, for the application, when the token is for acting on behalf of a user and the
   *   browser has a session.
   */
  redeem(ctx: KoaContextWithOIDC, leave: () => Promise<void>): Promise<Login | undefined>;
}

/** Makes the function that redeems session transfer tokens. */
export function transferRedemption(deps: RedemptionDependencies): TransferRedemption {
  return {
    redeem: async (ctx, leave) => {
      const presented = tokenOf(ctx);
      if (presented === undefined) return undefined;
      const ticket = await deps.challenges.spendTicket<TransferredLogin>(SESSION_TRANSFER, presented.token);
      const transferred = ticket?.data;
      const reason =
        transferred === undefined
          ? 'unknown'
          : await refusalReason(deps, ctx, { ...transferred, by: presented.by, leave });
      if (transferred === undefined || reason !== undefined) {
        logRefusal(deps, ctx, reason ?? 'unknown', transferred);
        return undefined;
      }
      // The browser keeps the session that it has: it is of the same user.
      if (ctx.oidc.session?.accountId !== undefined) return undefined;
      return storeLogin(ctx, await withFactors(deps, transferred));
    },
  };
}

/** Returns the session transfer token of a request, where the application's settings allow the way that it came. */
function tokenOf(ctx: KoaContextWithOIDC): { token: string; by: 'query' | 'cookie' } | undefined {
  const { client, params } = ctx.oidc;
  if (client === undefined || params === undefined) return undefined;
  const { allowed_authentication_methods: methods } = applicationSettings(client).sessionTransfer;
  const { transferToken } = readExtensions(params);
  if (transferToken !== undefined)
    return methods?.includes('query') === true ? { token: transferToken, by: 'query' } : undefined;
  const cookieToken = methods?.includes('cookie') === true ? ctx.cookies.get(COOKIE) : undefined;
  if (cookieToken === undefined) return undefined;
  ctx.cookies.set(COOKIE, null, { secure: true, httpOnly: true });
  return { token: cookieToken, by: 'cookie' };
}

type PresentedLogin = TransferredLogin & { by: 'query' | 'cookie'; leave: () => Promise<void> };

/** Returns why the login that a token stands for is refused; undefined when it is accepted. */
async function refusalReason(
  deps: RedemptionDependencies,
  ctx: KoaContextWithOIDC,
  { login, organization, by, leave }: PresentedLogin,
): Promise<keyof typeof REASONS | undefined> {
  const { client, params = {}, session, prompts } = ctx.oidc;
  if (client === undefined) return 'unknown';
  const { transfer } = login;
  const isDelegated = transfer.act !== undefined;
  if (isDelegated && (by !== 'query' || !allowsDelegation(client, params, deps.serverLoginCallbacks)))
    return 'delegation';
  const binding = applicationSettings(client).sessionTransfer.enforce_device_binding ?? 'ip';
  // `asn` binding compares addresses too: we have no table of networks.
  if ((isDelegated || binding !== 'none') && transfer.ip !== ctx.ip) return 'device';
  if ((params.organization ?? undefined) !== organization) return 'organization';
  if (!(await deps.transferred.holds(transfer))) return 'parent';
  if (isDelegated && session?.accountId !== undefined) throw sessionExists();
  if (session?.accountId !== undefined && session.accountId !== login.userId) {
    await leave();
    return 'user';
  }
  if (prompts.has('login') || prompts.has('select_account')) return 'recent';
  // Nobody was there, so that no age is young enough.
  return params.max_age === undefined ? undefined : 'recent';
}

/**
 * The error for acting on behalf of a user in a browser that has a session: that one has to be logged out first.
 */
function sessionExists(): Error {
  return new errors.AccessDenied('This browser has a session already: log out before acting for a user.');
}

/** Returns the login, without its second factor when the user's factors have changed since it was given. */
async function withFactors(
  deps: RedemptionDependencies,
  { login, factors }: TransferredLogin,
): Promise<Login> {
  if (factors === undefined || factors === (await deps.secondFactor.factorsOf(login.userId))) return login;
  return { ...login, amr: methodsOfFirstFactor(login.amr), acr: undefined };
}

/** Stores the login in the request's parameters, in place of the token. */
function storeLogin({ oidc: { params = {} } }: KoaContextWithOIDC, transferred: Login): Login {
  const { transferToken: _used, ...others } = readExtensions(params);
  Object.assign(params, { [EXTENSIONS_PARAMETER]: JSON.stringify({ ...others, handed: transferred }) });
  return transferred;
}

function logRefusal(
  { events }: RedemptionDependencies,
  ctx: KoaContextWithOIDC,
  reason: keyof typeof REASONS,
  transferred: TransferredLogin | undefined,
): void {
  const { client } = ctx.oidc;
  events.record({
    type: engineEvents.w,
    ip: ctx.ip,
    ...(client !== undefined && { client_id: client.clientId }),
    ...(transferred !== undefined && { user_id: transferred.login.userId }),
    description: `Single Sign-On failed: ${REASONS[reason]}`,
  });
}

// Checks requests and refreshes in sessions that were transferred to a browser, and
// decides what an application may get in such a session.

interface CheckDependencies {
  store: Store;
  config: Pick<Config, 'client' | 'resourceServer' | 'settings'>;
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>;
  /** @see Sessions.isOpen */
  isOpen: Sessions['isOpen'];
}

/** The checks of transferred sessions, and of grants that were made in them. */
export interface TransferredSessions {
  /**
   * Verifies that the transferred session in which a refresh token was issued still holds; a refresh token of
   * another session passes.
   * @throws errors.InvalidGrant when that session, or the refresh token that it was transferred for, has ended.
   */
  checkRefresh(ctx: KoaContextWithOIDC): Promise<void>;
  /**
   * Whether a transferred session, or a grant that was made in one, is still valid: both end with the refresh token
   * that the session was transferred for, unless the application has switched `enforce_cascade_revocation` off.
   */
  holds(transfer: Transfer | undefined): Promise<boolean>;
  /**
   * Makes a request silent (`prompt=none`) when somebody acts for the user in its session: the user is not there to
   * answer.
   * @throws errors.OIDCProviderError, for the application, when the request asks for something that only the user
   *   may do.
   */
  restrict(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void>;
  /**
   * Checks a request that is resumed after an interaction: meanwhile its browser may have got a transferred
   * session, or the transferred session may have ended. Removes the scope `offline_access` where the application
   * gets no refresh token in the session.
   * @throws errors.LoginRequired when the session has ended, and what {@link restrict} throws.
   */
  resume(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void>;
}

/** Makes the checks of transferred sessions. */
export function transferredSessions(deps: CheckDependencies): TransferredSessions {
  const { config, store } = deps;
  const holds: TransferredSessions['holds'] = async (transfer) => {
    if (transfer?.parent === undefined) return true;
    const client = await config.client(transfer.clientId);
    if (client === undefined) return false;
    if (client.session_transfer?.enforce_cascade_revocation === false) return true;
    return (await store.collection('artifacts').get(transfer.parent)) !== undefined;
  };
  const restrict = restrictRequest(deps);
  return {
    holds,
    restrict,
    resume: async (ctx, transfer) => {
      if (transfer === undefined) return;
      if (!(await holds(transfer))) throw new errors.LoginRequired('Login required');
      await restrict(ctx, transfer);
      const { client, params } = ctx.oidc;
      if (client === undefined || params === undefined || allowsRefresh(client, transfer)) return;
      const scopes = scopeValues(String(params.scope ?? ''));
      params.scope = scopes.filter((scope) => scope !== 'offline_access').join(' ');
    },
    checkRefresh: async ({ oidc: { entities } }) => {
      const { Grant: grant, Client: client } = entities;
      const transfer = transferOf(grant);
      if (transfer === undefined || client === undefined) return;
      const { enforce_online_refresh_tokens: online } = applicationSettings(client).sessionTransfer;
      const { sessionUid } = grant as { sessionUid?: string };
      const isOpen = online === false || (sessionUid !== undefined && (await deps.isOpen(sessionUid)));
      if (!isOpen || !(await holds(transfer))) throw new errors.InvalidGrant('refresh token not found');
    },
  };
}

/** @see TransferredSessions.restrict */
function restrictRequest({
  config,
  serverLoginCallbacks,
}: Pick<CheckDependencies, 'config' | 'serverLoginCallbacks'>): TransferredSessions['restrict'] {
  return async ({ oidc }, transfer) => {
    const { params = {}, client, prompts } = oidc;
    if (transfer?.act === undefined || client === undefined) return;
    // Such a session does not answer requests of an application that takes no delegation: the policy asks for a
    // login there.
    if (!allowsDelegation(client, params, serverLoginCallbacks)) return;
    const audience = requestedAudience(params) ?? config.settings().tenant.default_audience;
    const api = audience === undefined ? undefined : await config.resourceServer(audience);
    if (api?.is_system === true)
      throw new errors.AccessDenied('The account is not changed by who acts for its user.');
    const requiresUser = params.invitation !== undefined || [...prompts].some((one) => one !== 'none');
    if (requiresUser) throw userRequired();
    Object.assign(params, { prompt: 'none' });
  };
}

/**
 * Whether an application may get refresh tokens in a session that was transferred so; always in a session that was
 * not.
 */
export function allowsRefresh(client: object, transfer: Transfer | undefined): boolean {
  if (transfer === undefined) return true;
  return (
    transfer.act === undefined && applicationSettings(client).sessionTransfer.allow_refresh_token === true
  );
}

/**
 * Whether a request may be answered in a session in which somebody acts for the user: the application has to allow
 * it, and to ask for a code at its own redirect URI.
 */
export function allowsDelegation(
  client: object,
  params: Readonly<Record<string, unknown>>,
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>,
): boolean {
  const { allow_delegated_access: allows } = applicationSettings(client).sessionTransfer.delegation ?? {};
  // At a callback of ours we are the client, and what the application gets from us would not name the actor.
  return (
    allows === true &&
    params.response_type === 'code' &&
    !serverLoginCallbacks.has(String(params.redirect_uri))
  );
}

/** The error for a request that would have to ask the user. */
function userRequired(): Error {
  return new errors.CustomOIDCProviderError(
    'interaction_required',
    'The user is not there: somebody acts for them.',
  );
}
