// The tenant of the rehearsals, which is fit for production.
import { expect } from 'chai';
import type { Answer } from '../support/agent.ts';
import { SPA_CALLBACK, token, USER } from '../support/flows.ts';
import type { Place } from './place.ts';

export const WEB = { client_id: 'web', client_secret: 'a-secret-for-rehearsals-of-the-web-app' };
const OTP_GRANT = 'http://auth0.com/oauth/grant-type/passwordless/otp';

export const tenant = {
  tenant: { friendly_name: 'Rehearsal', default_directory: 'users' },
  clients: [
    {
      client_id: 'spa',
      name: 'Single page',
      app_type: 'spa',
      oidc_conformant: true,
      callbacks: [SPA_CALLBACK],
      web_origins: ['http://localhost:5173'],
      grant_types: ['authorization_code', 'refresh_token'],
      refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring', leeway: 0 },
    },
    {
      ...WEB,
      name: 'Web app',
      app_type: 'regular_web',
      grant_types: ['password', 'client_credentials', OTP_GRANT],
    },
  ],
  databases: [{ name: 'users', enabled_clients: ['spa', 'web'], options: { passwordPolicy: 'low' } }],
  connections: [{ name: 'email', strategy: 'email', enabled_clients: ['web'] }],
};

/** Signs a user up, by the API that applications use. */
export function signUp(place: Place, email: string, headers: Record<string, string> = {}): Promise<Answer> {
  const json = { client_id: 'web', connection: 'users', email, password: USER.password };
  return place.agent().request('/dbconnections/signup', { json, headers });
}

/** Logs a user in with a password, at the token endpoint. */
export function passwordLogin(
  place: Place,
  { email, password }: { email: string; password: string } = USER,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const json = { grant_type: 'password', ...WEB, username: email, password, scope: 'openid' };
  return place.agent().request('/oauth/token', { json, headers });
}

/** Checks that a user can log in, and that the refresh token of an earlier login is still good. */
export async function expectLogins(place: Place, refreshToken: string): Promise<void> {
  expect((await passwordLogin(place)).status).to.equal(200);
  const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: refreshToken };
  expect((await token(place.agent(), json)).status).to.equal(200);
}
