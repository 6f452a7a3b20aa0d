// Checks the parameters of /authorize beyond the standard.
import { type Client, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { scopeValues } from '../../records/apis.ts';
import type { Config } from '../../tenant/config.ts';
import type { Organizations } from '../admission/organizations.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { EXTENSIONS_PARAMETER, readExtensions } from '../base/request-extensions.ts';
import { requestedAudience } from '../base/requested-audience.ts';
import { applicationSettings } from '../client/applications.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import { allowsRefresh } from '../session/session-transfer-checks.ts';
import { VENDOR_PARAMETERS } from './authorization-parameters.ts';

type Validator = (ctx: KoaContextWithOIDC, value: string | undefined, client: Client) => Promise<void> | void;

/** Why an application's request may not name a connection; undefined when it may. */
export type ConnectionFault = (clientId: string, name: string) => Promise<string | undefined>;

/** Logs the user in for a silent request that has a login ticket or a session transfer token. */
export type UseTicket = (ctx: KoaContextWithOIDC) => Promise<void>;

/**
 * The engine's `extraParams`: our parameters and their checks. The engine runs them after its own checks and before it
 * reads the session: the moment to restore what `normalizeRequest` took out, and to use a login ticket.
 */
export function extraParameters(
  {
    config,
    connectionFault,
    organizations,
  }: {
    config: Config;
    connectionFault: ConnectionFault;
    organizations: Pick<Organizations, 'checkOrganization' | 'checkInvitation'>;
  },
  ownCallbacks: Pick<OwnCallbacks, 'has'>,
  useTicket: UseTicket,
): Record<string, Validator | null> {
  return {
    ...Object.fromEntries(VENDOR_PARAMETERS.map((name) => [name, null])),
    connection: async (_ctx, name, client) => {
      const fault = name === undefined ? undefined : await connectionFault(client.clientId, name);
      if (fault !== undefined) throw new errors.InvalidRequest(fault);
    },
    // In this order, because an invitation is for the organization.
    organization: organizations.checkOrganization,
    invitation: organizations.checkInvitation,
    [EXTENSIONS_PARAMETER]: async (ctx, _value, client) => {
      const { params } = ctx.oidc;
      if (params === undefined) return;
      const { offline, withoutNonce, invalidTarget } = readExtensions(params);
      if (invalidTarget !== undefined) throw new errors.InvalidTarget(invalidTarget);
      if (
        applicationSettings(client).isCodeInternalOnly &&
        !ownCallbacks.has(String(params.redirect_uri)) &&
        String(params.response_type).split(' ').includes('code')
      ) {
        throw new errors.UnauthorizedClient("Grant type 'authorization_code' not allowed for the client.");
      }
      // The rest applies when the browser comes, not when the request is pushed.
      if (ctx.oidc.route === 'pushed_authorization_request') return;
      if (withoutNonce) params.nonce = undefined;
      await useTicket(ctx);
      if (offline && (await allowsOfflineAccess(config, ctx, client))) restoreOfflineAccess(params);
    },
  };
}

/**
 * Restores `offline_access`, which the engine removes without `prompt=consent` (OIDC Core §11). Here the settings
 * of application and API decide.
 */
function restoreOfflineAccess(params: Record<string, unknown>): void {
  const scopes = scopeValues(String(params.scope ?? '')).filter((scope) => scope !== 'offline_access');
  params.scope = [...scopes, 'offline_access'].join(' ');
}

async function allowsOfflineAccess(
  config: Config,
  { oidc: { params = {}, session } }: KoaContextWithOIDC,
  client: Client,
): Promise<boolean> {
  const transfer = readExtensions(params).handed?.transfer ?? transferOf(session);
  if (!allowsRefresh(client, transfer)) return false;
  if (!client.grantTypeAllowed('refresh_token')) return false;
  if (!String(params.response_type).split(' ').includes('code')) return false;
  const audience = requestedAudience(params);
  return audience === undefined || (await config.resourceServer(audience))?.allow_offline_access === true;
}
