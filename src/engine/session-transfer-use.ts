// Spends session transfer tokens at /authorize. A token stands for a login as long as everything that it is bound
// to is unchanged. A token that is refused does not fail the request: the user is asked to log in, and the log says
// why the token was refused.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Challenges } from '../protection/challenges.ts';
import { scopeValues } from '../records/scope.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { type Login, methodsOfFirstFactor, type Transfer } from '../users/login.ts';
import { applicationSettings } from './applications.ts';
import { requestedAudience } from './audience.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { EXTENSIONS_PARAMETER, readExtensions } from './request-extensions.ts';
import type { SecondFactor } from './second-factor.ts';
import { SESSION_TRANSFER, type TransferredLogin } from './session-transfer.ts';
import type { Sessions } from './sessions.ts';
import { transferOf } from './transferred-session.ts';

/** The cookie in which a native app hands the token to a web view that it opens, so that the token is in no URL. */
const COOKIE = 'auth0_session_transfer_token';

/** Descriptions in the log, in the words of the hosted service. */
const WHY = {
  unknown: 'Session Transfer Token not found or expired. This may indicate token reuse or expiration.',
  device: 'Session Transfer Token device binding validation failed due to IP/ASN mismatch.',
  organization: 'Session Transfer Token organization mismatch detected.',
  user: 'Session Transfer Token user mismatch detected.',
  parent: 'Parent refresh token not found. Session Transfer Token won’t be used for session establishment.',
  delegation: 'Delegated access is not allowed for this client.',
  recent: 'The request asks for a login of its own.',
} as const;

interface UseDependencies {
  challenges: Pick<Challenges, 'spendTicket'>;
  store: Store;
  config: Pick<Config, 'client' | 'resourceServer' | 'settings'>;
  events: Events;
  wallClock: Clock;
  secondFactor: Pick<SecondFactor, 'factorsOf'>;
  ownCallbacks: Pick<OwnCallbacks, 'has'>;
  /** @see Sessions.isOpen */
  isOpen: Sessions['isOpen'];
}

/** Session transfer tokens at /authorize, and the sessions and grants that came from them. */
export interface TransferredSessions {
  /**
   * Spends the session transfer token of an authorization request, if it has one.
   * @param leave ends the session that the browser has.
   * @returns the login that the token stands for, which is also kept in the request's parameters; undefined when
   *   there is no token, it is refused, or the browser already has a session of its user.
   * @throws errors.OIDCProviderError, for the application, when the token is for acting on behalf of a user and the
   *   browser has a session.
   */
  use(ctx: KoaContextWithOIDC, leave: () => Promise<void>): Promise<Login | undefined>;
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
  goOn(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void>;
}

/** Makes the functions that spend session transfer tokens and check transferred sessions. */
export function transferredSessions(deps: UseDependencies): TransferredSessions {
  const { challenges, config, store } = deps;
  const holds: TransferredSessions['holds'] = async (transfer) => {
    if (transfer?.parent === undefined) return true;
    const client = await config.client(transfer.clientId);
    if (client === undefined) return false;
    if (client.session_transfer?.enforce_cascade_revocation === false) return true;
    return (await store.collection('artifacts').get(transfer.parent)) !== undefined;
  };
  const restrict = restricts(deps);
  return {
    holds,
    restrict,
    goOn: async (ctx, transfer) => {
      if (transfer === undefined) return;
      if (!(await holds(transfer))) throw new errors.LoginRequired('Login required');
      await restrict(ctx, transfer);
      const { client, params } = ctx.oidc;
      if (client === undefined || params === undefined || mayRefresh(client, transfer)) return;
      const scopes = scopeValues(String(params.scope ?? ''));
      params.scope = scopes.filter((scope) => scope !== 'offline_access').join(' ');
    },
    use: async (ctx, leave) => {
      const presented = tokenOf(ctx);
      if (presented === undefined) return undefined;
      const ticket = await challenges.spendTicket<TransferredLogin>(SESSION_TRANSFER, presented.token);
      const handed = ticket?.data;
      const why =
        handed === undefined
          ? 'unknown'
          : await faultOf({ ...deps, holds }, ctx, { ...handed, by: presented.by, leave });
      if (handed === undefined || why !== undefined) {
        warn(deps, ctx, why ?? 'unknown', handed);
        return undefined;
      }
      // The browser keeps the session that it has: it is of the same user.
      if (ctx.oidc.session?.accountId !== undefined) return undefined;
      return keptLogin(ctx, await withFactors(deps, handed));
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
function restricts({
  config,
  ownCallbacks,
}: Pick<UseDependencies, 'config' | 'ownCallbacks'>): TransferredSessions['restrict'] {
  return async ({ oidc }, transfer) => {
    const { params = {}, client, prompts } = oidc;
    if (transfer?.act === undefined || client === undefined) return;
    // Such a session does not answer requests of an application that takes no delegation: the policy asks for a
    // login there.
    if (!takesDelegation(client, params, ownCallbacks)) return;
    const audience = requestedAudience(params) ?? config.settings().tenant.default_audience;
    const api = audience === undefined ? undefined : await config.resourceServer(audience);
    if (api?.is_system === true)
      throw new errors.AccessDenied('The account is not changed by who acts for its user.');
    const isAsked = params.invitation !== undefined || [...prompts].some((one) => one !== 'none');
    if (isAsked) throw needsUser();
    Object.assign(params, { prompt: 'none' });
  };
}

/**
 * Whether an application may get refresh tokens in a session that was transferred so; always in a session that was
 * not.
 */
export function mayRefresh(client: object, transfer: Transfer | undefined): boolean {
  if (transfer === undefined) return true;
  return (
    transfer.act === undefined && applicationSettings(client).sessionTransfer.allow_refresh_token === true
  );
}

/**
 * Whether a request may be answered in a session in which somebody acts for the user: the application has to allow
 * it, and to ask for a code at its own redirect URI.
 */
export function takesDelegation(
  client: object,
  params: Readonly<Record<string, unknown>>,
  ownCallbacks: Pick<OwnCallbacks, 'has'>,
): boolean {
  const { allow_delegated_access: allows } = applicationSettings(client).sessionTransfer.delegation ?? {};
  // At a callback of ours we are the client, and what the application gets from us would not name the actor.
  return allows === true && params.response_type === 'code' && !ownCallbacks.has(String(params.redirect_uri));
}

/** The error for a request that would have to ask the user. */
function needsUser(): Error {
  return new errors.CustomOIDCProviderError(
    'interaction_required',
    'The user is not there: somebody acts for them.',
  );
}

/** Returns the session transfer token of a request, where the application's settings allow the way that it came. */
function tokenOf(ctx: KoaContextWithOIDC): { token: string; by: 'query' | 'cookie' } | undefined {
  const { client, params } = ctx.oidc;
  if (client === undefined || params === undefined) return undefined;
  const { allowed_authentication_methods: ways } = applicationSettings(client).sessionTransfer;
  const { transferToken } = readExtensions(params);
  if (transferToken !== undefined)
    return ways?.includes('query') === true ? { token: transferToken, by: 'query' } : undefined;
  const planted = ways?.includes('cookie') === true ? ctx.cookies.get(COOKIE) : undefined;
  if (planted === undefined) return undefined;
  ctx.cookies.set(COOKIE, null, { secure: true, httpOnly: true });
  return { token: planted, by: 'cookie' };
}

type Presented = TransferredLogin & { by: 'query' | 'cookie'; leave: () => Promise<void> };

/** Returns why the login that a token stands for is refused; undefined when it is accepted. */
async function faultOf(
  deps: UseDependencies & Pick<TransferredSessions, 'holds'>,
  ctx: KoaContextWithOIDC,
  { login, organization, by, leave }: Presented,
): Promise<keyof typeof WHY | undefined> {
  const { client, params = {}, session, prompts } = ctx.oidc;
  if (client === undefined) return 'unknown';
  const { transfer } = login;
  const isDelegated = transfer.act !== undefined;
  if (isDelegated && (by !== 'query' || !takesDelegation(client, params, deps.ownCallbacks)))
    return 'delegation';
  const binding = applicationSettings(client).sessionTransfer.enforce_device_binding ?? 'ip';
  // `asn` binding compares addresses too: we have no table of networks.
  if ((isDelegated || binding !== 'none') && transfer.ip !== ctx.ip) return 'device';
  if ((params.organization ?? undefined) !== organization) return 'organization';
  if (!(await deps.holds(transfer))) return 'parent';
  if (isDelegated && session?.accountId !== undefined) throw isLoggedIn();
  if (session?.accountId !== undefined && session.accountId !== login.userId) {
    await leave();
    return 'user';
  }
  if (prompts.has('login') || prompts.has('select_account')) return 'recent';
  const { max_age: age } = params;
  if (age === undefined) return undefined;
  const isOld = login.isTimeUnproved === true || epochSeconds(deps.wallClock) - login.authTime > Number(age);
  return isOld ? 'recent' : undefined;
}

/**
 * The error for acting on behalf of a user in a browser that has a session: that one has to be logged out first.
 */
function isLoggedIn(): Error {
  return new errors.AccessDenied('This browser has a session already: log out before acting for a user.');
}

/** Returns the login, without its second factor when the user's factors have changed since it was given. */
async function withFactors(deps: UseDependencies, { login, factors }: TransferredLogin): Promise<Login> {
  if (factors === undefined || factors === (await deps.secondFactor.factorsOf(login.userId))) return login;
  return { ...login, amr: methodsOfFirstFactor(login.amr), acr: undefined };
}

/** Keeps the login in the request's parameters, in place of the token. */
function keptLogin({ oidc: { params = {} } }: KoaContextWithOIDC, handed: Login): Login {
  const { transferToken: _used, ...others } = readExtensions(params);
  Object.assign(params, { [EXTENSIONS_PARAMETER]: JSON.stringify({ ...others, handed }) });
  return handed;
}

function warn(
  { events }: UseDependencies,
  ctx: KoaContextWithOIDC,
  why: keyof typeof WHY,
  handed: TransferredLogin | undefined,
): void {
  const { client } = ctx.oidc;
  events.record({
    type: 'w',
    ip: ctx.ip,
    ...(client !== undefined && { client_id: client.clientId }),
    ...(handed !== undefined && { user_id: handed.login.userId }),
    description: `Single Sign-On failed: ${WHY[why]}`,
  });
}
