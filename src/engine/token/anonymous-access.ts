// Access of anonymous sessions to APIs.
import type { Client, ClientGrant, ResourceServer } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

/**
 * Returns the client grant by which anonymous sessions of an application may access an API.
 * @returns undefined unless the application, the API and the grant allow it now.
 */
export async function anonymousGrant(
  config: Pick<Config, 'clientGrant'>,
  client: Client | undefined,
  api: ResourceServer,
): Promise<ClientGrant | undefined> {
  const isOpen =
    client?.anonymous_sessions?.active === true &&
    api.allow_anonymous_access === true &&
    api.is_system !== true &&
    api.subject_type_authorization?.anonymous_user?.policy === 'require_client_grant';
  const grant = isOpen ? await config.clientGrant(client.client_id, api.identifier) : undefined;
  return grant?.subject_type === 'anonymous_user' ? grant : undefined;
}
