// GET /v2/logout (docs/reference/wire/logout.md).
// docs/understand/decisions/sessions-logout.md#v2logout-logs-out-on-any-get
import type { UserSession } from '../../engine/session/sessions.ts';
import { isLogoutUrlOf } from '../../records/clients/allowed-urls.ts';
import type { Config } from '../../tenant/config.ts';
import type { ValidLogout } from './end-session.ts';
import { firstLogoutUrl, organizationById } from './redirects.ts';
import { notAllowed, unknownClient } from './request.ts';

export const V2_PARAMETERS = ['returnTo', 'client_id', 'federated'] as const;

type V2Request = Partial<Record<(typeof V2_PARAMETERS)[number], string>>;

/**
 * Validates a request. `returnTo` must be on the named application's allow-list, or on the tenant's without
 * `client_id`; without `returnTo` the browser goes to the first URL of that list.
 * @param session the browser's.
 * @throws AuthError 400 for a URL that is not on the list, or an unknown application.
 */
export async function validateV2Logout(
  config: Config,
  request: V2Request,
  session: UserSession | undefined,
): Promise<ValidLogout> {
  const { client_id: clientId = '', returnTo = '', federated } = request;
  const client = clientId === '' ? undefined : await config.client(clientId);
  if (clientId !== '' && client === undefined) throw unknownClient(clientId);
  const owner = client ?? config.settings().tenant;
  const organization = await organizationById(config, session?.organization);
  if (returnTo !== '' && !isLogoutUrlOf(owner, returnTo, 'without-query', organization))
    throw notAllowed('returnTo', returnTo);
  return {
    clientId: client?.client_id,
    returnTo: returnTo === '' ? firstLogoutUrl(owner) : returnTo,
    federated: isFlag(federated),
  };
}

/** A flag is on when present, also without a value; `federated=false`, which some SDKs send, is off. */
export function isFlag(value: string | undefined): boolean {
  return value !== undefined && value.toLowerCase() !== 'false';
}
