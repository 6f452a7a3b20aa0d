// In what Apple is special: a client secret that is signed for each request, and a name that is said once, by the browser.
import { importPKCS8, SignJWT } from 'jose';
import type { AppleOptions } from '../../records/openid.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import type { Metadata } from './metadata.ts';

/** How long a client secret is good, seconds. */
const SECRET_TTL = 300;
/** Characters of what the browser brings of the user. */
const LONGEST_USER = 2_048;
const LONGEST_NAME = 200;

/**
 * The client secret: a JWT of the team's key.
 * @param clientId whom it is for; a native app's id, where that is not the connection's.
 * @throws AuthError by `upstreamFault` where the connection has no key.
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
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer(team_id)
    .setSubject(clientId)
    .setAudience(issuer)
    .setIssuedAt(now)
    .setExpirationTime(now + SECRET_TTL)
    .sign(await importPKCS8(app_secret, 'ES256'));
}

/**
 * The name of a user, as the form of the first login has it. Nobody has signed it, so nothing else is read of it: the
 * address is the ID token's.
 * @param user JSON.
 */
export function appleName(user: unknown): Record<string, string> {
  if (typeof user !== 'string' || user.length > LONGEST_USER) return {};
  const { firstName, lastName } = nameOf(user);
  const text = (value: unknown) => (typeof value === 'string' ? value.trim().slice(0, LONGEST_NAME) : '');
  const [given, family] = [text(firstName), text(lastName)];
  const name = [given, family].filter((one) => one !== '').join(' ');
  return {
    ...(given !== '' && { given_name: given }),
    ...(family !== '' && { family_name: family }),
    ...(name !== '' && { name }),
  };
}

function nameOf(user: string): { firstName?: unknown; lastName?: unknown } {
  try {
    const { name } = (JSON.parse(user) ?? {}) as { name?: unknown };
    return typeof name === 'object' && name !== null ? name : {};
  } catch {
    return {};
  }
}
