// Client authentication at our own endpoints, with the token endpoint's code: none, client_secret_post (also JSON),
// client_secret_basic, private_key_jwt with replay protection.

import type { IncomingMessage } from 'node:http';
import { errors as joseErrors } from 'jose';
import type { Context, Middleware } from 'koa';
import type Provider from 'oidc-provider';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { jwtHeader } from '../../capabilities/signing/verify-jwt.ts';
import { forwardedAddress } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import { bodyFields } from '../../http/server/body.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import type { ReadBasic } from '../base/entrance.ts';
import { vendorError } from '../base/failures.ts';
import { engineClientAuthentication } from '../base/internals.ts';
import { REPLAY_MODEL, replayKey } from '../base/request-replay.ts';
import { applicationSettings } from './applications.ts';

const PARAMETERS = ['client_id', 'client_secret', 'client_assertion', 'client_assertion_type'] as const;

/** An access token (RFC 6750 §2.1; RFC 9449 §7.1), which does not authenticate a client. */
const ACCESS_TOKEN = /^(Bearer|DPoP)(\s|$)/i;

// docs/understand/decisions/clients-keys.md#a-secret-may-be-sent-by-http-basic-or-in-the-body-whichever-is-registered
/**
 * Authenticates the application by its registered method. An access token in the request is the user's and is ignored
 * here (RFC 6749 §2.3).
 * @returns its client_id.
 * @throws AuthError 401 `invalid_client`, 400 `invalid_request` when there is nothing to authenticate.
 */
export async function authenticateClient(
  provider: Provider,
  readBasic: ReadBasic,
  ctx: Context,
): Promise<string> {
  await readBasic(ctx);
  const fields = bodyFields(ctx, PARAMETERS);
  const oidc = new provider.OIDCContext(ctx);
  const params = Object.fromEntries(PARAMETERS.map((name) => [name, fields[name] || undefined]));
  // The engine derives an assertion's audience from the route: the token endpoint's.
  Object.assign(oidc, { params, route: 'token' });
  const { authorization, ...others } = ctx.headers;
  const headers = ACCESS_TOKEN.test(authorization ?? '') ? others : ctx.headers;
  const engineContext = Object.create(ctx, {
    oidc: { value: oidc },
    headers: { value: headers },
  }) as KoaContextWithOIDC;
  try {
    const run = async (index: number): Promise<void> => {
      await engineClientAuthentication[index]?.(engineContext, () => run(index + 1));
    };
    await run(0);
  } catch (thrown) {
    throw (thrown instanceof Error ? vendorError(thrown, undefined) : undefined) ?? thrown;
  }
  const { client } = oidc;
  if (client === undefined) throw new AuthError(401, 'invalid_client', 'Unauthorized');
  applyForwardedAddress(ctx, client);
  return client.clientId;
}

/**
 * Uses `auth0-forwarded-for` as the client's address, so that a server's users have limits of their own. Trusted only from
 * an authenticated application that is allowed to send it.
 * @returns the user's address; undefined when a confidential application does not send it.
 */
export function applyForwardedAddress(ctx: Context, client: object): string | undefined {
  const { isForwardedAddressTrusted, runsOnUserDevice } = applicationSettings(client);
  if (runsOnUserDevice) return ctx.ip;
  const address = forwardedAddress(ctx.get('auth0-forwarded-for'));
  if (address === undefined || !isForwardedAddressTrusted) return undefined;
  ctx.request.ip = address;
  return address;
}

// Checks of client assertions beside the engine's own (RFC 7523 §3). The engine checks signature, issuer, subject,
// audience, expiry and `jti`; that each `jti` is used once is in adapter.ts.

// docs/understand/decisions/clients-keys.md#a-client-assertion-is-valid-for-at-most-five-minutes
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
export const ASSERTION_TYPES = ['client-authentication+jwt', undefined];

/** @throws errors.InvalidClientAuth for another kind of JWT, and for critical extensions (RFC 7515 §4.1.11). */
function refuseHeader(assertion: string): void {
  try {
    jwtHeader(assertion, ASSERTION_TYPES);
  } catch (thrown) {
    if (!(thrown instanceof joseErrors.JOSEError)) throw thrown;
    throw new errors.InvalidClientAuth(thrown.message);
  }
}
