// A server behind a proxy, so that requests can come from any address.
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const proxy = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' };

/** The status and body of an answer. */
export interface Told {
  status: number;
  /** The parsed body; empty when it is not JSON. */
  [member: string]: unknown;
}

/** Posts JSON as if from an address. */
export type PostFrom = (ip: string, path: string, json: object) => Promise<Told>;

/** Logs the test user in, with a wrong password unless the fields say otherwise. */
export type LoginFrom = (ip: string) => (fields?: Record<string, unknown>) => Promise<Told>;

const endless = { capacity: 1e6, perMinute: 1e6 };

/**
 * Runs a test with a server that has this protection, and stops it afterwards.
 * @param sections further sections of the tenant file.
 */
export async function served(
  attackProtection: Record<string, unknown>,
  run: (server: TestServer, from: LoginFrom, post: PostFrom) => Promise<void>,
  dataDir?: string,
  sections: object = {},
): Promise<void> {
  const server = await startServer({
    tenant: {
      ...base,
      ...sections,
      attackProtection: {
        ...attackProtection,
        rateLimits: {
          ...base.attackProtection.rateLimits,
          token: endless,
          ...(attackProtection.rateLimits as object | undefined),
        },
      },
    },
    env: proxy,
    ...(dataDir === undefined ? {} : { dataDir }),
  });
  const post: PostFrom = async (ip, path, json) => {
    const answer = await fetch(`http://127.0.0.1:${server.settings.port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-proto': 'https', 'x-forwarded-for': ip },
      body: JSON.stringify(json),
    });
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: answer.status, ...(isJson ? ((await answer.json()) as object) : {}) };
  };
  const from: LoginFrom =
    (ip) =>
    (fields = {}) =>
      post(ip, '/oauth/token', {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: USER.email,
        password: 'wrong',
        ...fields,
      });
  try {
    await run(server, from, post);
  } finally {
    await server.stop();
  }
}
