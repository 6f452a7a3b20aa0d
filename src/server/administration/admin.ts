// Creates the first client of the Management API. Without one, nobody could call the API to create others.
import { managementAudience } from '../../features/management/audience.ts';
import { idOf, letters } from '../../features/management/ids.ts';
import { clientGrantSchema } from '../../records/apis.ts';
import { clientSchema } from '../../records/clients.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { defaultGrantTypes } from '../../tenant/declared-records.ts';

export interface Admin {
  /** The host with its port, unless the port is 443. */
  domain: string;
  client_id: string;
  client_secret: string;
}

/**
 * Creates a client with all scopes of the Management API.
 * @returns its credentials; no API call shows the secret.
 */
export async function createAdmin(
  {
    store,
    random,
    settings,
  }: { store: Store; random: Random; settings: Pick<Settings, 'baseUrl' | 'issuer'> },
  name: string,
): Promise<Admin> {
  const client_id = letters(32, random);
  const client_secret = random(48).toString('base64url');
  const client = clientSchema.parse({
    client_id,
    client_secret,
    name,
    app_type: 'non_interactive',
    token_endpoint_auth_method: 'client_secret_post',
  });
  const grant = clientGrantSchema.parse({
    client_id,
    audience: managementAudience(settings.issuer),
    // Includes the scopes of later releases.
    allow_all_scopes: true,
    subject_type: 'client',
  });
  await store.collection('clients').insert({
    ...client,
    id: client_id,
    grant_types: defaultGrantTypes(client, 'client_secret_post'),
  });
  await store.collection('clientGrants').insert({ ...grant, id: idOf('cgr', random) });
  return { domain: new URL(settings.baseUrl).host, client_id, client_secret };
}
