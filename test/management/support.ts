// A tenant whose Management API is called by an application that may do everything there.
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { ManagementClient } from 'auth0';
import { parse } from 'yaml';
import { type Answer, createAgent } from '../support/agent.ts';
import { startServer, type TestServer, type TestServerOptions } from '../support/server.ts';
import { EXAMPLE } from './example.ts';

export const ADMIN = { client_id: 'admin', client_secret: 'a-secret-of-the-management-tests' };

/** Starts the example tenant, with that application in it. @param dataDir kept when the server stops. */
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
  // The published client brings its own way to ask, which goes by what the process trusts. Most servers of a process have
  // the same authority, and for each change of the list all of it is read anew.
  if (!getCACertificates('default').includes(server.ca)) {
    setDefaultCACertificates([...getCACertificates('default'), server.ca]);
  }
  return server;
}

/** The published client of the Management API. */
export function managementClient({ url }: TestServer): ManagementClient {
  return new ManagementClient({
    domain: new URL(url).host,
    clientId: ADMIN.client_id,
    clientSecret: ADMIN.client_secret,
  });
}

/** An access token for the Management API. @param scope those granted where none is named. */
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

/** Calls it as the application that may do everything there. */
export async function callApi(
  server: TestServer,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  return authorizeAs(server, await managementToken(server), method, path, body);
}

/** Calls the Management API as it is on the wire; with another token where one is given. */
export type ManagementCall = (
  method: string,
  path: string,
  json?: unknown,
  bearer?: string,
) => Promise<Answer>;

/** Calls of a server's Management API with a token. */
export function callsWith(server: TestServer, token: string): ManagementCall {
  return (method, path, json, bearer = token) =>
    createAgent(server).request(`/api/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}` },
      ...(json === undefined ? {} : { json }),
    });
}
