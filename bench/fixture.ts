// The tenant for the benchmarks, and the requests to it.

/** The identifier of its API. */
export const API = 'https://api.example.test/';

/** Its tenant file. */
export const TENANT = `
tenant: { friendly_name: Bench, default_directory: users }
clients:
  - client_id: bench
    name: Bench
    app_type: regular_web
    client_secret: bench-secret-that-is-no-example
    callbacks: [https://app.example.test/callback]
    grant_types: [client_credentials, refresh_token, authorization_code, password]
databases: [{ name: users, enabled_clients: [bench] }]
resourceServers: [{ name: API, identifier: '${API}', token_lifetime: 3600, allow_offline_access: true, scopes: [{ value: 'read:things' }] }]
clientGrants: [{ client_id: bench, audience: '${API}', scope: ['read:things'] }]
users: [{ email: ada@example.test, password: Correct-Horse-1, connection: users, email_verified: true }]
attackProtection:
  rateLimits:
    userinfo: { capacity: 100000000, perMinute: 100000000 }
    login: { capacity: 100000000, perMinute: 100000000 }
    token: { capacity: 100000000, perMinute: 100000000 }
    discovery: { capacity: 100000000, perMinute: 100000000 }
    other: { capacity: 100000000, perMinute: 100000000 }
`;

/** The credentials of its application. */
export const client = { client_id: 'bench', client_secret: 'bench-secret-that-is-no-example' };

/** A client_credentials request. */
export const MACHINE = { ...client, grant_type: 'client_credentials', audience: API };

/** A password login request. */
export const PASSWORD = {
  ...client,
  grant_type: 'password',
  username: 'ada@example.test',
  password: 'Correct-Horse-1',
  scope: 'openid profile email offline_access',
};
