// Redeems session transfer tokens at /authorize. A token stands for a login as long as everything that it is bound
// to is unchanged. A token that is refused does not fail the request: the user is asked to log in, and the log says
// why the token was refused.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Events } from '../../tenant/events.ts';
import { type Login, methodsOfFirstFactor } from '../../users/login.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { EXTENSIONS_PARAMETER, readExtensions } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import { SESSION_TRANSFER, type TransferredLogin } from './session-transfer.ts';
import { allowsDelegation, type TransferredSessions } from './session-transfer-checks.ts';

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
  ownCallbacks: Pick<OwnCallbacks, 'has'>;
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
  if (isDelegated && (by !== 'query' || !allowsDelegation(client, params, deps.ownCallbacks)))
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
    type: 'w',
    ip: ctx.ip,
    ...(client !== undefined && { client_id: client.clientId }),
    ...(transferred !== undefined && { user_id: transferred.login.userId }),
    description: `Single Sign-On failed: ${REASONS[reason]}`,
  });
}
