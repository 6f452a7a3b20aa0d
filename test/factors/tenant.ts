// The tenant of the MFA tests, and calls that they repeat.
import { Secret, TOTP } from 'otpauth';
import { tenant as base, OTP_GRANT, secrets } from '../connections/passwordless/tenant.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import { tenantWith } from '../support/tenant.ts';

export const MFA_GRANTS = ['otp', 'oob', 'recovery-code'].map(
  (kind) => `http://auth0.com/oauth/grant-type/mfa-${kind}`,
);
export const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';
export const POLICY = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

export const factors = (...names: string[]) => names.map((name) => ({ name, enabled: true }));

/** Every factor is on and required of everybody. `web` follows the API contract, `leeway` has what SDKs need. */
export const tenant = {
  ...base,
  clients: base.clients.map((client) => ({
    ...client,
    ...(client.grant_types.includes('authorization_code') && {
      grant_types: [...client.grant_types, ...MFA_GRANTS],
    }),
    ...(client.client_id === 'leeway' && { oidc_conformant: true }),
  })),
  guardianFactors: factors('otp', 'sms', 'email', 'push-notification', 'recovery-code'),
  guardianPolicies: { policies: ['all-applications'] },
  users: [
    ...base.users,
    ...Array.from({ length: 60 }, (_, i) => ({
      email: `mfa-${i}@example.test`,
      password: USER.password,
      connection: 'users',
      email_verified: false,
    })),
  ],
};

/** As `tenant`, where nobody is asked for a second factor at the web application. */
export const unasked = tenantWith({ change: { web: { client_metadata: { mfa_policy: 'never' } } } }, tenant);

/** Returns the code that an authenticator app shows. */
export function codeOf(secret: string, at = Date.now()): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: at });
}

/** Calls that applications make. */
export function callsOf(server: { url: string; ca: string }) {
  const agent: Agent = createAgent(server);
  const client = (id = 'web') => ({ client_id: id, ...(secrets[id] && { client_secret: secrets[id] }) });
  const token = (fields: Record<string, unknown>, clientId = 'web'): Promise<Answer> =>
    agent.request('/oauth/token', {
      json: Object.fromEntries(
        Object.entries({ ...client(clientId), ...fields }).filter(([, v]) => v !== undefined),
      ),
    });
  const login = (username: string, more: Record<string, unknown> = {}, clientId = 'web') =>
    token(
      { grant_type: 'password', username, password: USER.password, scope: 'openid profile', ...more },
      clientId,
    );
  const mfaToken = async (
    username: string,
    more: Record<string, unknown> = {},
    clientId = 'web',
  ): Promise<string> => (await login(username, more, clientId)).json().mfa_token;
  const associate = (bearer: string, fields: Record<string, unknown>) =>
    agent.request('/mfa/associate', { json: fields, headers: { authorization: `Bearer ${bearer}` } });
  const challenge = (fields: Record<string, unknown>, clientId = 'web') =>
    agent.request('/mfa/challenge', { json: { ...client(clientId), ...fields } });
  const verify = (kind: 'otp' | 'oob' | 'recovery-code', fields: Record<string, unknown>, clientId = 'web') =>
    token({ grant_type: `http://auth0.com/oauth/grant-type/mfa-${kind}`, ...fields }, clientId);
  /** Enrols an authenticator app and uses it. */
  const enrollOtp = async (username: string, clientId = 'web') => {
    const mfa_token = await mfaToken(username, {}, clientId);
    const { secret, recovery_codes } = (await associate(mfa_token, { authenticator_types: ['otp'] })).json();
    const done = await verify('otp', { mfa_token, otp: codeOf(secret) }, clientId);
    if (done.status !== 200) throw new Error(done.text);
    return { secret: secret as string, recoveryCode: recovery_codes[0] as string };
  };
  return { agent, token, login, mfaToken, associate, challenge, verify, enrollOtp };
}

export { OTP_GRANT };
