// What an assertion of a client has to say beside what the engine asks of it (RFC 7523 §3): its signature, issuer, subject,
// audience, expiry and `jti` are the engine's; each `jti` counts once, in src/engine/adapter.ts.
import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { type Configuration, errors } from 'oidc-provider';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { applicationSettings } from './applications.ts';
import { artifactKey } from './artifact-keys.ts';
import { REPLAY_MODEL, useHash } from './request-replay.ts';

/** An assertion is made for one request: seconds that it may be good for. A stolen one is good for no longer. */
const LONGEST = 300;

/** Clocks differ: seconds (FAPI 2.0 Security Profile §5.3.2.1). */
const TOLERANCE = 10;

export interface ClientAssertions {
  /** The engine's `assertJwtClientAuthClaimsAndHeader`. */
  check: NonNullable<Configuration['assertJwtClientAuthClaimsAndHeader']>;
  /**
   * Lets an assertion be sent again whose request was answered 429: nothing came of it. SDKs then send the same request once more by
   * themselves, with the same assertion, and their callers would be told of a wrong client in place of the limit.
   */
  reuseAfterLimit: Middleware;
}

/** The assertions of one tenant's clients. */
export function clientAssertions({
  settings: { issuer },
  store,
  wallClock,
}: {
  settings: { issuer: string };
  store: Store;
  wallClock: Clock;
}): ClientAssertions {
  /** What the use of a request's assertion is known by. */
  const uses = new WeakMap<IncomingMessage, string[]>();
  return {
    check: ({ req }, { iss, jti, exp, iat, aud }, _header, client) => {
      const now = epochSeconds(wallClock) + TOLERANCE;
      if (Number(exp) > now + LONGEST) throw new errors.InvalidClientAuth('exp is too far away');
      if (iat !== undefined && !(Number(iat) <= now))
        throw new errors.InvalidClientAuth('iat is in the future');
      if (applicationSettings(client).assertsToIssuer && aud !== issuer)
        throw new errors.InvalidClientAuth('aud must be the issuer alone');
      // The signature was verified. One that was used before is answered 401.
      uses.set(req, [String(iss), String(jti)]);
    },
    reuseAfterLimit: async (ctx, next) => {
      await next();
      const use = ctx.status === 429 ? uses.get(ctx.req) : undefined;
      if (use !== undefined)
        await store.collection('artifacts').delete(artifactKey(REPLAY_MODEL, useHash(use)));
    },
  };
}
