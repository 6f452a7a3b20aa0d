// By what visitors who have not logged in come to an API.
import type { Client, ClientGrant, ResourceServer } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';

/**
 * The client grant for an application's visitors at an API.
 * @returns undefined unless the application, the API and the grant between them say so now.
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
