// The tenant of the passwordless tests.
import { tenant as base, SPA_CALLBACK } from '../../support/flows.ts';

export const OTP_GRANT = 'http://auth0.com/oauth/grant-type/passwordless/otp';

/** Limits that are lifted; the tests of the limits set their own. */
export const generous = { capacity: 10_000, perMinute: 10_000 };

export const tenant = {
  ...base,
  attackProtection: {
    ...base.attackProtection,
    // The guesses of one test must not lock the IP address of all tests; locks are tested in test/protection.
    bruteForceProtection: { max_attempts: 100 },
    suspiciousIpThrottling: { enabled: false },
    rateLimits: {
      ...base.attackProtection.rateLimits,
      passwordlessStart: generous,
      passwordlessDestination: generous,
      passwordlessVerify: generous,
      codeFailures: generous,
      coAuthenticate: generous,
    },
  },
  clients: [
    ...base.clients.map((client) => ({
      ...client,
      ...(client.client_id === 'spa' && { cross_origin_authentication: true }),
      ...(client.grant_types.includes('authorization_code') && {
        grant_types: [...client.grant_types, OTP_GRANT],
      }),
    })),
    {
      client_id: 'code-link',
      name: 'Public, without tokens at its callback',
      app_type: 'spa',
      client_secret: undefined,
      callbacks: [SPA_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  connections: [
    { name: 'email', strategy: 'email', enabled_clients: ['spa', 'web', 'leeway', 'code-link'] },
    {
      name: 'sms',
      strategy: 'sms',
      enabled_clients: ['spa', 'web'],
      options: { totp: { length: 8, time_step: 300 } },
    },
    { name: 'members', strategy: 'email', enabled_clients: ['web'], options: { disable_signup: true } },
    { name: 'elsewhere', strategy: 'google-oauth2', enabled_clients: ['web'] },
  ],
};

export const secrets: Record<string, string> = { web: 'web-secret', leeway: 'leeway-secret' };
