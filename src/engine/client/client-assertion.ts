// Checks of client assertions beside the engine's own (RFC 7523 §3). The engine checks signature, issuer, subject,
// audience, expiry and `jti`; that each `jti` is used once is in adapter.ts.
import type { IncomingMessage } from 'node:http';
import { errors as joseErrors } from 'jose';
import type { Middleware } from 'koa';
import { type Configuration, errors } from 'oidc-provider';
import { jwtHeader } from '../../capabilities/signing/verify-jwt.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import { REPLAY_MODEL, replayKey } from '../base/request-replay.ts';
import { applicationSettings } from './applications.ts';

/**
 * The longest accepted lifetime of an assertion, seconds. An assertion is made for one request; a short lifetime
 * limits the use of a stolen one.
 */
const MAX_LIFETIME_SECONDS = 300;

/** Tolerated difference of clocks, seconds (FAPI 2.0 Security Profile §5.3.2.1). */
const CLOCK_TOLERANCE_SECONDS = 10;

export interface ClientAssertions {
  /** The engine's `assertJwtClientAuthClaimsAndHeader`. */
  check: NonNullable<Configuration['assertJwtClientAuthClaimsAndHeader']>;
  /**
   * Lets an assertion be used again when its request was answered 429 and did nothing. SDKs then repeat the same
   * request with the same assertion, and would otherwise report a wrong client instead of the limit.
   */
  reuseAfterLimit: Middleware;
}

/** Makes the checks of client assertions for one tenant. */
export function clientAssertions({
  issuer,
  store,
  wallClock,
}: {
  issuer: string;
  store: Store;
  wallClock: Clock;
}): ClientAssertions {
  /** The issuer and `jti` of the assertion that a request has used. */
  const uses = new WeakMap<IncomingMessage, string[]>();
  return {
    check: ({ req, oidc }, { iss, jti, exp, iat, aud }, _header, client) => {
      refuseHeader(String(oidc.params?.client_assertion));
      const now = epochSeconds(wallClock) + CLOCK_TOLERANCE_SECONDS;
      if (Number(exp) > now + MAX_LIFETIME_SECONDS) throw new errors.InvalidClientAuth('exp is too far away');
      if (iat !== undefined && !(Number(iat) <= now))
        throw new errors.InvalidClientAuth('iat is in the future');
      if (applicationSettings(client).assertsToIssuer && aud !== issuer)
        throw new errors.InvalidClientAuth('aud must be the issuer alone');
      // The signature is verified by now. An assertion that was used before was answered 401 already.
      uses.set(req, [String(iss), String(jti)]);
    },
    reuseAfterLimit: async (ctx, next) => {
      await next();
      const use = ctx.status === 429 ? uses.get(ctx.req) : undefined;
      if (use !== undefined)
        await store.collection('artifacts').delete(artifactKey(REPLAY_MODEL, replayKey(use)));
    },
  };
}

/** The types of client assertions (RFC 7523 §2.2): they are mostly untyped. */
const TYPES = ['client-authentication+jwt', undefined];

/** @throws errors.InvalidClientAuth for another kind of JWT, and for critical extensions (RFC 7515 §4.1.11). */
function refuseHeader(assertion: string): void {
  try {
    jwtHeader(assertion, TYPES);
  } catch (thrown) {
    if (!(thrown instanceof joseErrors.JOSEError)) throw thrown;
    throw new errors.InvalidClientAuth(thrown.message);
  }
}
