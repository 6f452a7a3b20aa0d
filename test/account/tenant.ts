// The tenant of the tests of the My Account API, and calls that they repeat.
import { generous } from '../connections/passwordless/tenant.ts';
import { tenant as base, callsOf as factorCallsOf } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { newCredential } from '../support/software-key.ts';

export const SCOPES = [
  ...['create', 'read', 'update', 'delete'].map((verb) => `${verb}:me:authentication_methods`),
  'read:me:factors',
];

/** `web` and `leeway` have all scopes of the API, `spa` may only read, `code-only` has no grant. */
export const tenant = {
  ...base,
  attackProtection: {
    ...base.attackProtection,
    // A test file makes more calls than a server allows one address in a minute.
    rateLimits: { ...base.attackProtection.rateLimits, myAccount: generous },
  },
  guardianPolicies: { policies: [] },
  clientGrants: [
    ...base.clientGrants,
    ...['web', 'leeway'].map((client_id) => ({
      client_id,
      audience: 'https://elsewhere.example.test/me/',
      subject_type: 'user',
      scope: SCOPES,
    })),
    {
      client_id: 'spa',
      audience: 'https://elsewhere.example.test/me/',
      subject_type: 'user',
      scope: SCOPES.filter((scope) => scope.startsWith('read:')),
    },
  ],
  databases: base.databases.map((database) =>
    database.name === 'users'
      ? {
          ...database,
          options: {
            ...database.options,
            authentication_methods: { passkey: { enabled: true } },
            passkey_options: { progressive_enrollment_enabled: false },
          },
        }
      : database,
  ),
};

/** Calls that applications make. */
export function callsOf(server: TestServer) {
  const calls = factorCallsOf(server);
  const agent = createAgent(server);
  const audience = `${server.issuer}me/`;
  const accountToken = async (username: string, more: Record<string, unknown> = {}, clientId = 'web') => {
    const answer = await calls.login(username, { audience, scope: SCOPES.join(' '), ...more }, clientId);
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.json().access_token as string;
  };
  const me = (bearer: string, path: string, json?: object, method?: string) =>
    agent.request(`/me/v1/${path}`, {
      ...(json && { json }),
      ...(method && { method }),
      headers: { authorization: `Bearer ${bearer}` },
    });
  const methods = async (bearer: string) =>
    (await me(bearer, 'authentication-methods')).json().authentication_methods as {
      id: string;
      type: string;
      name?: string;
    }[];
  const begin = async (bearer: string, json: object) => {
    const answer = await me(bearer, 'authentication-methods', json);
    if (answer.status !== 201) throw new Error(answer.text);
    const started = answer.json();
    const path = new URL(String(answer.headers.location)).pathname.replace('/me/v1/', '');
    return {
      path,
      begun: started,
      verify: (proof: object, by = bearer) =>
        me(by, `${path}/verify`, { auth_session: started.auth_session, ...proof }),
    };
  };
  const beginPasskey = async (bearer: string) => {
    const { begun, ...rest } = await begin(bearer, { type: 'passkey' });
    const answered = newCredential(begun.authn_params_public_key, server.url);
    return { ...rest, begun, authn_response: answered };
  };
  return { ...calls, agent, audience, accountToken, me, methods, begin, beginPasskey };
}
