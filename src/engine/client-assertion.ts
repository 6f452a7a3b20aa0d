// What an assertion of a client has to say beside what the engine asks of it (RFC 7523 §3): its signature, issuer, subject,
// audience, expiry and `jti` are the engine's; each `jti` counts once, in src/engine/adapter.ts.
import { type Configuration, errors } from 'oidc-provider';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import { applicationSettings } from './applications.ts';

/** An assertion is made for one request: seconds that it may be good for. A stolen one is good for no longer. */
const LONGEST = 300;

/** Clocks differ: seconds (FAPI 2.0 Security Profile §5.3.2.1). */
const TOLERANCE = 10;

/** The engine's `assertJwtClientAuthClaimsAndHeader`. */
export function assertionRules({
  settings: { issuer },
  wallClock,
}: {
  settings: { issuer: string };
  wallClock: Clock;
}): Configuration['assertJwtClientAuthClaimsAndHeader'] {
  return (_ctx, { exp, iat, aud }, _header, client) => {
    const now = epochSeconds(wallClock) + TOLERANCE;
    if (Number(exp) > now + LONGEST) throw new errors.InvalidClientAuth('exp is too far away');
    if (iat !== undefined && !(Number(iat) <= now))
      throw new errors.InvalidClientAuth('iat is in the future');
    if (applicationSettings(client).assertsToIssuer && aud !== issuer)
      throw new errors.InvalidClientAuth('aud must be the issuer alone');
  };
}
