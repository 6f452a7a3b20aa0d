// A tenant with a client that has all scopes of the Management API.
import { ManagementClient } from 'auth0';
import { parse } from 'yaml';
import { type Answer, createAgent } from '../support/agent.ts';
import { startServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { trust } from '../support/trust.ts';
import { EXAMPLE } from './example.ts';

export const ADMIN = { client_id: 'admin', client_secret: 'a-secret-of-the-management-tests' };

/** Starts the example tenant with that client. @param dataDir kept when the server stops */
export async function startManaged(
  tenant: object = parse(EXAMPLE) as object,
  dataDir?: string,
  env: Record<string, string> = {},
  more: Partial<TestServerOptions> = {},
): Promise<TestServer> {
  const { clients = [], clientGrants = [] } = tenant as { clients?: object[]; clientGrants?: object[] };
  const server = await startServer({
    ...more,
    env,
    ...(dataDir !== undefined && { dataDir }),
    tenant: {
      ...tenant,
      clients: [...clients, { ...ADMIN, name: 'Administration', app_type: 'non_interactive' }],
      clientGrants: [
        ...clientGrants,
        {
          client_id: ADMIN.client_id,
          audience: 'https://tenant.example.test/api/v2/',
          allow_all_scopes: true,
        },
      ],
    },
  });
  // The published client uses `fetch`.
  trust(server.ca);
  return server;
}

/** Returns the published management client. */
export function managementClient({ url }: TestServer): ManagementClient {
  return new ManagementClient({
    domain: new URL(url).host,
    clientId: ADMIN.client_id,
    clientSecret: ADMIN.client_secret,
  });
}

/** Returns an access token for the Management API. @param scope default: all granted scopes */
export async function managementToken(server: TestServer, scope?: string): Promise<string> {
  const response = await fetch(`${server.url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      grant_type: 'client_credentials',
      ...ADMIN,
      audience: `${server.issuer}api/v2/`,
      ...(scope === undefined ? {} : { scope }),
    }),
  });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

/** Calls the Management API with a token. */
export function authorizeAs(
  { url }: TestServer,
  token: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  return fetch(`${url}/api/v2${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** Calls the Management API with all scopes. */
export async function callApi(
  server: TestServer,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  return authorizeAs(server, await managementToken(server), method, path, body);
}

/** Calls the Management API and returns the raw response. @param bearer replaces the default token */
export type ManagementCall = (
  method: string,
  path: string,
  json?: unknown,
  bearer?: string,
) => Promise<Answer>;

/** Returns a function that calls a server's Management API with a token. */
export function callsWith(server: TestServer, token: string): ManagementCall {
  return (method, path, json, bearer = token) =>
    createAgent(server).request(`/api/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}` },
      ...(json === undefined ? {} : { json }),
    });
}
