// Checks requests and refreshes in sessions that were transferred to a browser (session-transfer-redemption.ts), and
// decides what an application may get in such a session.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { scopeValues } from '../../records/apis.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Transfer } from '../../users/login.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { requestedAudience } from '../base/requested-audience.ts';
import { applicationSettings } from '../client/applications.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import type { Sessions } from './sessions.ts';

interface CheckDependencies {
  store: Store;
  config: Pick<Config, 'client' | 'resourceServer' | 'settings'>;
  ownCallbacks: Pick<OwnCallbacks, 'has'>;
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
  ownCallbacks,
}: Pick<CheckDependencies, 'config' | 'ownCallbacks'>): TransferredSessions['restrict'] {
  return async ({ oidc }, transfer) => {
    const { params = {}, client, prompts } = oidc;
    if (transfer?.act === undefined || client === undefined) return;
    // Such a session does not answer requests of an application that takes no delegation: the policy asks for a
    // login there.
    if (!allowsDelegation(client, params, ownCallbacks)) return;
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
  ownCallbacks: Pick<OwnCallbacks, 'has'>,
): boolean {
  const { allow_delegated_access: allows } = applicationSettings(client).sessionTransfer.delegation ?? {};
  // At a callback of ours we are the client, and what the application gets from us would not name the actor.
  return allows === true && params.response_type === 'code' && !ownCallbacks.has(String(params.redirect_uri));
}

/** The error for a request that would have to ask the user. */
function userRequired(): Error {
  return new errors.CustomOIDCProviderError(
    'interaction_required',
    'The user is not there: somebody acts for them.',
  );
}
