// "Try login" of the development page: a built-in application, neither stored nor exported, with every database
// connection.

import { clientSchema, TRY_LOGIN } from '../../records/clients/clients.ts';
import type { Client } from '../../records/collections.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';

export const TRY_LOGIN_CALLBACK = '/dev/callback';

export function tryLoginBuiltIns({ baseUrl, isForThisMachine }: BuiltInNeeds): BuiltIns | undefined {
  if (!isForThisMachine) return undefined;
  const client: Client = {
    ...clientSchema.parse({
      client_id: TRY_LOGIN,
      name: 'Try login',
      app_type: 'spa',
      oidc_conformant: true,
      callbacks: [`${baseUrl}${TRY_LOGIN_CALLBACK}`],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    }),
    id: TRY_LOGIN,
  };
  return { clients: [{ client, connections: 'all' }] };
}
