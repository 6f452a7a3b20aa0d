// The tenant of the tests of device codes and CIBA, and their common steps.
import { tenant as mfaTenant } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow, submitLogin, tenant, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

export const deviceTenant = {
  ...tenant,
  clients: [
    ...tenant.clients,
    client('tv', { refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring' } }),
    client('other-tv'),
    client('third-tv', {
      name: 'Third\u202Etv',
      is_first_party: false,
      third_party_security_mode: 'permissive',
    }),
    client('acme-tv', { organization_usage: 'require', organization_require_behavior: 'pre_login_prompt' }),
  ],
  databases: [
    {
      name: 'users',
      enabled_clients: ['tv', 'other-tv', 'third-tv', 'acme-tv', 'web'],
      options: { passwordPolicy: 'good' },
    },
    tenant.databases[1],
  ],
};

function client(id: string, more: object = {}) {
  return {
    client_id: id,
    name: `The ${id}`,
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: [DEVICE_GRANT, 'refresh_token'],
    ...more,
  };
}

/** The steps of devices and their users. @param server returns the server of the running test. */
export function callsOf(server: () => TestServer) {
  const begin = async (fields: Record<string, string> = {}) =>
    createAgent(server()).request('/oauth/device/code', {
      form: { client_id: 'tv', scope: 'openid profile offline_access', ...fields },
    });
  const poll = (device_code: string, client_id = 'tv') =>
    token(createAgent(server()), { grant_type: DEVICE_GRANT, client_id, device_code });
  const open = (agent: Agent, user_code: string) =>
    agent.get(`/activate?${new URLSearchParams({ user_code })}`);
  const decide = async (agent: Agent, page: Answer, decision = 'accept') => {
    const { action, fields } = readForm(page, 'user_code');
    return follow(agent, await agent.request(action, { form: { ...fields, decision } }), server().url);
  };
  const connect = async (codes: Record<string, any>, agent = createAgent(server())) => {
    const login = await decide(agent, await open(agent, codes.user_code));
    return submitLogin(agent, server(), login);
  };
  return { begin, poll, open, decide, connect };
}

/** Returns status, code and description of an error. */
export function told(answer: Answer): [number, string, string] {
  const { error, error_description } = answer.json();
  return [answer.status, error, error_description];
}

export const CIBA_GRANT = 'urn:openid:params:grant-type:ciba';

/** Users of the MFA tests with devices, and applications that ask them for approval. */
export const cibaTenant = tenantWith(
  {
    add: {
      clients: [
        agent('bank'),
        agent('other-bank'),
        agent('mail-bank', { async_approval_notification_channels: ['email'] }),
        agent('third-bank', { is_first_party: false, third_party_security_mode: 'permissive' }),
        agent('elsewhere'),
        { ...agent('public-bank'), client_secret: undefined, token_endpoint_auth_method: 'none' },
      ],
    },
    enable: [...['bank', 'other-bank', 'mail-bank', 'third-bank', 'public-bank']],
    resourceServers: tenant.resourceServers,
  },
  mfaTenant,
);

function agent(id: string, more: object = {}) {
  return {
    client_id: id,
    name: `The ${id}`,
    app_type: 'regular_web',
    client_secret: `${id}-secret`,
    grant_types: [CIBA_GRANT, 'refresh_token'],
    ...more,
  };
}
