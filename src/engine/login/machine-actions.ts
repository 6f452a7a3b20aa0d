// The actions of `credentials-exchange`, which run before each client_credentials token is issued.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Actions } from '../../capabilities/actions/actions.ts';
import { clientOf } from '../../capabilities/actions/facts.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import type { Config } from '../../tenant/config.ts';
import { allowedClaims } from './action-effects.ts';
import { apiOf, engineRequestOf, organizationEvent } from './login-event.ts';

interface MachineActionsDependencies {
  actions: Actions;
  config: Pick<Config, 'client' | 'clientGrant' | 'organization'>;
}

/** A client_credentials token. */
interface MachineToken {
  clientId: string;
  audience: string | undefined;
  scope: string;
  /** The scopes that its client grant allows. */
  allowed: readonly string[];
  /**
   * Whether the token is for one of our own APIs. A failing action must not prevent those tokens: the Management
   * API is needed to mend it.
   */
  isSystemApi: boolean;
  /** The id of the organization that the token is for. */
  organization: string | undefined;
}

/** The claims and scopes of a token after the actions. */
interface MachineOutcome {
  claims: Record<string, unknown>;
  /** The token's scopes. */
  scope: string;
}

/**
 * Runs the actions for a token and returns its claims and scopes.
 * @throws errors.CustomOIDCProviderError when an action denies the token or fails.
 */
export async function machineClaims(
  { actions, config }: MachineActionsDependencies,
  ctx: KoaContextWithOIDC | undefined,
  { clientId, audience, scope, allowed, organization, isSystemApi }: MachineToken,
): Promise<MachineOutcome> {
  if (ctx === undefined || isSystemApi || !actions.isBound('credentials-exchange'))
    return { claims: {}, scope };
  const about = { client_id: clientId, ip: ctx.ip };
  const requested_scopes = scopeValues(scope);
  const grant = await grantOf(config, clientId, audience);
  const run = async () =>
    actions
      .run(
        'credentials-exchange',
        {
          client: clientOf(await config.client(clientId), clientId),
          ...apiOf(audience),
          ...(await organizationEvent(config, organization)),
          request: engineRequestOf(ctx),
          transaction: { requested_scopes, target_scopes: requested_scopes },
          accessToken: { customClaims: {}, scope: requested_scopes },
        },
        about,
      )
      .catch(rethrowActionError);
  const outcome = await refusedIfDeleted(config, clientId, run);
  const { denied, accessToken, targetScopes } = outcome;
  if (denied !== undefined)
    throw new errors.CustomOIDCProviderError(denied.code ?? 'access_denied', denied.reason);
  if (grant !== undefined && (await grantOf(config, clientId, audience)) === undefined)
    throw new errors.AccessDenied('The client grant was deleted.');
  const target = { trigger: 'credentials-exchange', to: 'access_token', about } as const;
  return {
    claims: allowedClaims(actions, target, accessToken),
    // An action can remove scopes, but add none that the client grant lacks.
    scope: targetScopes?.filter((one) => allowed.includes(one)).join(' ') ?? scope,
  };
}

/** Returns the grant by which a client may have a token, if it needs one. */
const grantOf = async (
  config: Pick<Config, 'clientGrant'>,
  clientId: string,
  audience: string | undefined,
) => (audience === undefined ? undefined : config.clientGrant(clientId, audience));

/**
 * Runs actions, which may take long, and refuses the request if its application is deleted meanwhile.
 * @throws errors.InvalidClient, and as the actions.
 */
export async function refusedIfDeleted<T>(
  config: Pick<Config, 'client'>,
  clientId: string,
  actions: () => Promise<T>,
): Promise<T> {
  const before = await config.client(clientId);
  const outcome = await actions();
  if (before !== undefined && (await config.client(clientId)) === undefined)
    throw new errors.InvalidClient('the application was deleted');
  return outcome;
}

/** Rethrows the error of a failed action as the engine's. @throws errors.CustomOIDCProviderError */
export function rethrowActionError(thrown: unknown): never {
  const { error, error_description: description } = thrown as { error?: string; error_description?: string };
  if (error === undefined) throw thrown;
  throw new errors.CustomOIDCProviderError(error, description ?? '');
}
