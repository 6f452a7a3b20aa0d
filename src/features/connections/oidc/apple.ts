// What differs for Apple: the client secret is a JWT that is signed for each request, and the user's name is sent only once, by
// the browser.
import { createPrivateKey } from 'node:crypto';
import { SignJWT } from 'jose';
import type { AppleOptions } from '../../../records/connections/openid.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { isJsonObject, jsonOf } from '../../../runtime/json.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import type { Metadata } from './metadata.ts';

/** Lifetime of a client secret, seconds. */
const SECRET_TTL = 300;
/** Characters of the parameter `user`. */
const MAX_USER_LENGTH = 2_048;
/** Characters of a given or family name. */
const MAX_NAME_LENGTH = 200;

/**
 * Returns a client secret: a JWT signed by the team's key.
 * @param clientId the client that authenticates: the connection's by default, or a native app's bundle identifier.
 * @throws AuthError by `upstreamFault` if the connection has no key.
 */
export async function appleSecret(
  { wallClock }: Pick<UpstreamDependencies, 'wallClock'>,
  { team_id, kid, app_secret, client_id }: AppleOptions,
  { issuer }: Pick<Metadata, 'issuer'>,
  clientId = client_id,
): Promise<string> {
  if (!team_id || !kid || !app_secret || !clientId) {
    throw upstreamFault('invalid_request', 'The connection has no team_id, kid and app_secret.');
  }
  const now = epochSeconds(wallClock);
  return (
    new SignJWT()
      .setProtectedHeader({ alg: 'ES256', kid })
      .setIssuer(team_id)
      .setSubject(clientId)
      .setAudience(issuer)
      .setIssuedAt(now)
      .setExpirationTime(now + SECRET_TTL)
      // By node:crypto, as the option was validated: jose's importPKCS8 rejects a key in SEC 1 form.
      .sign(createPrivateKey(app_secret))
  );
}

/**
 * Returns the name claims of the parameter `user`, which the browser posts at the first login. The parameter is not signed, so
 * only the name is read; the e-mail address comes from the ID token.
 * @param user JSON.
 */
export function appleName(user: unknown): Record<string, string> {
  if (typeof user !== 'string' || user.length > MAX_USER_LENGTH) return {};
  const { firstName, lastName } = nameOf(user);
  const text = (value: unknown) => (typeof value === 'string' ? value.trim().slice(0, MAX_NAME_LENGTH) : '');
  const [givenName, familyName] = [text(firstName), text(lastName)];
  const name = [givenName, familyName].filter((one) => one !== '').join(' ');
  return {
    ...(givenName !== '' && { given_name: givenName }),
    ...(familyName !== '' && { family_name: familyName }),
    ...(name !== '' && { name }),
  };
}

function nameOf(user: string): Record<string, unknown> {
  const parsed = jsonOf(user);
  return isJsonObject(parsed) && isJsonObject(parsed.name) ? parsed.name : {};
}
