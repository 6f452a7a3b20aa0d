// A session transfer token at /authorize: it stands for a login, where everything that it is bound to is as it was. One that
// is not taken leaves the request as it is, which then asks for a login; the log says why.
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
import { transferOf } from './handed-over.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { EXTENSIONS_PARAMETER, readExtensions } from './request-extensions.ts';
import type { SecondFactor } from './second-factor.ts';
import { type HandedLogin, SESSION_TRANSFER } from './session-transfer.ts';
import type { Sessions } from './sessions.ts';

/** The cookie that an app puts into its own browser, where the token is in no address. */
const COOKIE = 'auth0_session_transfer_token';

/** The log's words, which are the hosted service's. */
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

/** What is done with the session of an authorization request before it is looked at. */
export interface HandedSessions {
  /**
   * Uses the session transfer token of a request up.
   * @param leave ends the session of the browser.
   * @returns the login that it stands for, which is kept with the request; undefined where there is none.
   * @throws errors.OIDCProviderError, for the application, where somebody would act for a user in a browser that has a session.
   */
  use(ctx: KoaContextWithOIDC, leave: () => Promise<void>): Promise<Login | undefined>;
  /** Looks at what a refresh token was given in. @throws errors.InvalidGrant where that holds no more, and it neither. */
  checkRefresh(ctx: KoaContextWithOIDC): Promise<void>;
  /** Whether a session that was handed over, or what was granted in it, still holds: not without what it was handed over for. */
  holds(transfer: Transfer | undefined): Promise<boolean>;
  /**
   * Has a request in a session in which somebody acts for its user ask for nothing.
   * @throws errors.OIDCProviderError, for the application, for what is for the user alone.
   */
  restrict(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void>;
  /**
   * Looks at a request that goes on after it waited: its browser may have been handed a session meanwhile, or have one that
   * holds no more.
   * @throws errors.OIDCProviderError, for the application, as {@link restrict} does, and `login_required`.
   */
  goOn(ctx: KoaContextWithOIDC, transfer: Transfer | undefined): Promise<void>;
}

/** Those of one engine. */
export function handedSessions(deps: UseDependencies): HandedSessions {
  const { challenges, config, store } = deps;
  const holds: HandedSessions['holds'] = async (transfer) => {
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
      const brought = tokenOf(ctx);
      if (brought === undefined) return undefined;
      const met = await challenges.spendTicket<HandedLogin>(SESSION_TRANSFER, brought.token);
      const handed = met?.data;
      const why =
        handed === undefined
          ? 'unknown'
          : await faultOf({ ...deps, holds }, ctx, { ...handed, by: brought.by, leave });
      if (handed === undefined || why !== undefined) {
        warn(deps, ctx, why ?? 'unknown', handed);
        return undefined;
      }
      // Who is logged in there already stays so.
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

/** @see HandedSessions.restrict */
function restricts({
  config,
  ownCallbacks,
}: Pick<UseDependencies, 'config' | 'ownCallbacks'>): HandedSessions['restrict'] {
  return async ({ oidc }, transfer) => {
    const { params = {}, client, prompts } = oidc;
    if (transfer?.act === undefined || client === undefined) return;
    // It answers no request of such an application: its user is asked to log in there.
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

/** Whether an application is given refresh tokens in a session, by how that was handed over. */
export function mayRefresh(client: object, transfer: Transfer | undefined): boolean {
  if (transfer === undefined) return true;
  return (
    transfer.act === undefined && applicationSettings(client).sessionTransfer.allow_refresh_token === true
  );
}

/** Whether an application takes sessions in which somebody acts for the user, for itself and by a code. */
export function takesDelegation(
  client: object,
  params: Readonly<Record<string, unknown>>,
  ownCallbacks: Pick<OwnCallbacks, 'has'>,
): boolean {
  const { allow_delegated_access: allows } = applicationSettings(client).sessionTransfer.delegation ?? {};
  // What is asked for on its behalf would not say who acts.
  return allows === true && params.response_type === 'code' && !ownCallbacks.has(String(params.redirect_uri));
}

/** The request would have to ask a user who is not there. */
function needsUser(): Error {
  return new errors.CustomOIDCProviderError(
    'interaction_required',
    'The user is not there: somebody acts for them.',
  );
}

/** The token of a request, where the application takes it in that way. */
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

type Brought = HandedLogin & { by: 'query' | 'cookie'; leave: () => Promise<void> };

/** Why a login that was handed over is not taken; undefined where it is. */
async function faultOf(
  deps: UseDependencies & Pick<HandedSessions, 'holds'>,
  ctx: KoaContextWithOIDC,
  { login, organization, by, leave }: Brought,
): Promise<keyof typeof WHY | undefined> {
  const { client, params = {}, session, prompts } = ctx.oidc;
  if (client === undefined) return 'unknown';
  const { transfer } = login;
  const isDelegated = transfer.act !== undefined;
  if (isDelegated && (by !== 'query' || !takesDelegation(client, params, deps.ownCallbacks)))
    return 'delegation';
  const binding = applicationSettings(client).sessionTransfer.enforce_device_binding ?? 'ip';
  // Networks have no names here: one address is one network.
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

/** Who acts for a user does so in a browser of nobody: they log out first. */
function isLoggedIn(): Error {
  return new errors.AccessDenied('This browser has a session already: log out before acting for a user.');
}

/** The login, with the second factor that it had where that is one of the user's still. */
async function withFactors(deps: UseDependencies, { login, factors }: HandedLogin): Promise<Login> {
  if (factors === undefined || factors === (await deps.secondFactor.factorsOf(login.userId))) return login;
  return { ...login, amr: methodsOfFirstFactor(login.amr), acr: undefined };
}

/** Keeps the login with the request, in place of the token. */
function keptLogin({ oidc: { params = {} } }: KoaContextWithOIDC, handed: Login): Login {
  const { transferToken: _used, ...others } = readExtensions(params);
  Object.assign(params, { [EXTENSIONS_PARAMETER]: JSON.stringify({ ...others, handed }) });
  return handed;
}

function warn(
  { events }: UseDependencies,
  ctx: KoaContextWithOIDC,
  why: keyof typeof WHY,
  handed: HandedLogin | undefined,
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
