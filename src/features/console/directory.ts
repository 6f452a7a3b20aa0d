// The console's application and the directory of its administrators. They are in no store, export or list, so that no
// change of the tenant can change who may log in to the console, or how.

import { clientSchema } from '../../records/clients/clients.ts';
import type { Client, Connection } from '../../records/collections.ts';
import { DATABASE, databaseOptionsSchema } from '../../records/connections/connections.ts';
import type { DatabaseOptions } from '../../records/tenant/tenant.ts';
import { CONSOLE_CLIENT, CONSOLE_DIRECTORY } from '../../records/users/administrators.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';

/** The password policy of administrators. */
export const DIRECTORY_OPTIONS: DatabaseOptions = databaseOptionsSchema.parse({
  passwordPolicy: 'good',
  disable_signup: true,
});

export function consoleBuiltIns({ hasConsole, random }: BuiltInNeeds): BuiltIns | undefined {
  if (!hasConsole) return undefined;
  const client: Client = {
    ...clientSchema.parse({
      client_id: CONSOLE_CLIENT,
      name: 'Console',
      app_type: 'regular_web',
      oidc_conformant: true,
      custom_login_page_on: false,
      callbacks: [],
      // A random secret that is never used or shown: the console redeems its codes without the token endpoint.
      client_secret: random(32).toString('base64url'),
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['authorization_code'],
    }),
    id: CONSOLE_CLIENT,
  };
  const directory: Connection = {
    id: CONSOLE_CLIENT,
    name: CONSOLE_DIRECTORY,
    strategy: DATABASE,
    is_domain_connection: false,
    enabled_clients: [CONSOLE_CLIENT],
    options: { ...DIRECTORY_OPTIONS },
  };
  return { clients: [{ client, connections: [directory] }], isOfConsole: true };
}
