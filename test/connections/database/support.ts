// A tenant with database connections for one test file, and their pages in a browser.
import { type Answer, createAgent, readForm } from '../../support/agent.ts';
import { authorize, tenant as base, follow, token, webRequest } from '../../support/flows.ts';
import type { TestServer } from '../../support/server.ts';
import { generous } from '../passwordless/tenant.ts';

/**
 * Returns a tenant with databases that are enabled for the application `web`.
 * @param databases their options, by name.
 * @param limits `liftedLimits`: rate limits to lift; `attempts`: wrong passwords that lock an account.
 */
export function withDatabases(
  databases: Record<string, object>,
  { liftedLimits, attempts }: { liftedLimits: readonly string[]; attempts: number },
) {
  return {
    ...base,
    attackProtection: {
      rateLimits: {
        ...base.attackProtection.rateLimits,
        ...Object.fromEntries(liftedLimits.map((name) => [name, generous])),
      },
      bruteForceProtection: { max_attempts: attempts },
      suspiciousIpThrottling: { enabled: false },
    },
    databases: [
      ...base.databases,
      ...Object.entries(databases).map(([name, options]) => ({ name, enabled_clients: ['web'], options })),
    ],
  };
}

/** Opens the page of an authorization request in a new browser. @param over further parameters of the request. */
export async function openPage(server: TestServer, over: Parameters<typeof webRequest>[0]) {
  const agent = createAgent(server);
  const page = await follow(agent, await authorize(agent, webRequest(over)), server.url);
  const submit = async (at: Answer, field: string, typed: object) => {
    const { action, fields } = readForm(at, field);
    return follow(agent, await agent.request(action, { form: { ...fields, ...typed } }), server.url);
  };
  return { agent, page, submit };
}

/** The grant type of a password login that names its connection. */
export const REALM = 'http://auth0.com/oauth/grant-type/password-realm';

/**
 * Logs a user in at the token endpoint with the realm grant, as the application `web` in a new browser.
 * @param fields username, password and realm; further parameters replace those of the helper.
 */
export function realmLogin(
  server: TestServer,
  fields: { username: string; password: string; realm: string } & Record<string, string>,
): Promise<Answer> {
  return token(createAgent(server), {
    grant_type: REALM,
    client_id: 'web',
    client_secret: 'web-secret',
    scope: 'openid profile email',
    ...fields,
  });
}
