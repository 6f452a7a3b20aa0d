// "Try login" of the development page: a built-in application, neither stored nor exported, with every database
// connection.

import { clientSchema, TRY_LOGIN } from '../../records/clients.ts';
import type { Client, Connection } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';

/** Path of its callback. */
export const TRY_LOGIN_CALLBACK = '/dev/callback';

/** Adds the "Try login" application to the configuration. */
export function withTryLogin<C extends Config>(config: C, baseUrl: string): C {
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
  const enabled = (connection: Connection): Connection => ({
    ...connection,
    enabled_clients: [...connection.enabled_clients, TRY_LOGIN],
  });
  return {
    ...config,
    client: (id) => (id === TRY_LOGIN ? Promise.resolve(client) : config.client(id)),
    connection: async (name) => {
      const found = await config.connection(name);
      return found === undefined ? undefined : enabled(found);
    },
    connectionsOf: async (id) =>
      id === TRY_LOGIN
        ? (await config.connections()).sort((a, b) => (a.name < b.name ? -1 : 1))
        : config.connectionsOf(id),
  };
}
