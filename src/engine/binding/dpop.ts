// DPoP (RFC 9449): the engine's verification of proofs, for its endpoints and for ours.

import { setTimeout as wait } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import type Provider from 'oidc-provider';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { jwtHeader, unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { sharedSecret } from '../../store/shared-secret.ts';
import type { Config } from '../../tenant/config.ts';
import { engineDpop, type Nonces } from '../base/internals.ts';
import { steadyNonces, type UsedProofs, usedProofs } from './used-proofs.ts';

/** Asymmetric algorithms, without those that FAPI 2.0 Security Profile §5.4.1 forbids. */
export const DPOP_ALGORITHMS = ['ES256', 'ES384', 'PS256', 'Ed25519', 'EdDSA'] as const;

/** A verified proof. Whether it is used for the first time is checked separately. */
export interface DpopProof {
  /** The thumbprint of its key (RFC 7638). */
  thumbprint: string;
  jti: string;
  /** Epoch seconds. */
  iat: number;
}

/** The state of a tenant's DPoP: which proofs were used, and the nonces. */
export interface ProofState {
  usedProofs: UsedProofs;
  /** The secret that the engine's nonces are derived from (§8): 32 bytes, the same in every process of a tenant. */
  nonceSecret: Buffer;
  /** The nonces that the engine uses instead of its own, where one process serves alone. */
  nonces?: Nonces;
}

const NONCES = 'dpop-nonces';

export async function loadProofState(deps: {
  store: Store;
  random: Random;
  clock: Clock;
  wallClock: Clock;
}): Promise<ProofState> {
  const used = await usedProofs(deps);
  if (deps.store.exclusive !== true)
    return { usedProofs: used, nonceSecret: await sharedSecret(deps, NONCES) };
  const nonceSecret = deps.random(32);
  return { usedProofs: used, nonceSecret, nonces: steadyNonces(nonceSecret, deps.clock) };
}

export function dpopFeature(
  { config }: { config: Config },
  { nonceSecret, usedProofs: used }: ProofState,
): NonNullable<Configuration['features']>['dPoP'] {
  return {
    enabled: true,
    nonceSecret,
    // The engine asks this first, at each proof: what it does not check itself is refused here.
    requireNonce: (ctx) => {
      refuseHeader(ctx);
      const { flags } = config.settings().tenant;
      return flags.require_dpop_nonce === true || used.needsNonce(dateInProof(ctx, 'iat'));
    },
  };
}

/** @throws errors.InvalidDpopProof for a proof with critical extensions, which none supports (RFC 7515 §4.1.11). */
function refuseHeader(ctx: Pick<Context, 'get'>): void {
  try {
    jwtHeader(ctx.get('DPoP'), ['dpop+jwt']);
  } catch (cause) {
    throw new errors.InvalidDpopProof('invalid DPoP key binding', { cause });
  }
}

/** The `WWW-Authenticate` challenge for tokens that are bound to a key (§7.1). */
export function dpopChallenge({ error, description }: { error?: string; description?: string }): string {
  const members = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(description === undefined ? [] : [`error_description="${description}"`]),
    `algs="${DPOP_ALGORITHMS.join(' ')}"`,
  ];
  return `DPoP ${members.join(', ')}`;
}

export interface DpopProofs {
  /**
   * Verifies the proof of a request: signature, key, `htm`, `htu`, `iat` or nonce, and `ath` where there is a token
   * (§4.3).
   * @returns undefined when there is none.
   * @throws errors.InvalidDpopProof; errors.UseDpopNonce, the nonce in the header of the answer.
   */
  read(ctx: Context, accessToken: string): Promise<DpopProof | undefined>;
  /** As `read`, for a request to an endpoint of the engine, which records the use of the proof itself. */
  readInEngine(ctx: KoaContextWithOIDC): Promise<DpopProof | undefined>;
  /** Records the use of a proof. @throws errors.InvalidDpopProof for a proof that was used before (§11.1). */
  recordUse(proof: DpopProof, clientId: string): Promise<void>;
}

interface ServedOrigins {
  /** Our public origin. */
  baseUrl: string;
  config: Pick<Config, 'customOrigins'>;
}

/** Makes the verification of proofs for our own endpoints. */
export function dpopProofs(
  provider: Provider,
  used: Pick<UsedProofs, 'recordUse'>,
  origins: ServedOrigins,
): DpopProofs {
  return {
    read: (ctx, accessToken) =>
      engineDpop.validateDpop(provider, engineContext(provider, ctx, origins), accessToken),
    readInEngine: (ctx) => engineDpop.validateDpop(provider, ctx),
    recordUse: async ({ jti }, clientId) => {
      if (await used.recordUse(clientId, jti)) return;
      throw new errors.InvalidDpopProof('DPoP proof JWT Replay detected');
    },
  };
}

/**
 * Wraps a request for the engine's verification. The engine compares `htu` with the URL of one of its own routes,
 * and our endpoints are none of them.
 */
function engineContext(
  provider: Provider,
  ctx: Context,
  { baseUrl, config }: ServedOrigins,
): KoaContextWithOIDC {
  const [path = ''] = ctx.originalUrl.split('?');
  const address = urlAtProofOrigin(ctx, config.customOrigins(), `${baseUrl}${path}`);
  const oidc = { provider, route: 'ours', urlFor: () => address };
  return Object.create(ctx, { oidc: { value: oidc } }) as KoaContextWithOIDC;
}

// DPoP proofs whose `nbf` is a few seconds ahead. FAPI 2.0 Security Profile §5.3.2.1 requires them to be accepted,
// because clocks differ. The engine rejects them and has no setting for it, so such a request waits until its `nbf`
// before anything of it is checked.
// docs/decisions/clients-keys.md#a-request-whose-proof-has-an-nbf-a-few-seconds-ahead-waits

/** How far ahead `nbf` may be, milliseconds. */
const MAX_AHEAD_MS = 10_000;

/**
 * The most requests that wait at once, because anybody can make such a proof. Further ones do not wait, and the
 * engine rejects them.
 */
const MAX_WAITING = 100;

/** Added because a timer may fire a moment before the clock reaches its time, milliseconds. */
const TIMER_SLACK_MS = 20;

/** Returns a date in the proof of a request without verifying it, epoch seconds; NaN when there is none. */
function dateInProof(ctx: Pick<Context, 'get'>, name: 'iat' | 'nbf'): number {
  try {
    return Number(unverifiedClaims(ctx.get('DPoP'))[name]);
  } catch {
    return Number.NaN;
  }
}

/** Makes a middleware that lets requests with such a proof wait. @param most how many wait at once. */
export function waitForEarlyProofs(
  { wallClock }: { wallClock: Clock },
  most: number = MAX_WAITING,
): Middleware {
  let waiting = 0;
  return async (ctx, next) => {
    const left = ctx.get('DPoP') === '' ? 0 : dateInProof(ctx, 'nbf') * 1000 - wallClock();
    if (left > 0 && left <= MAX_AHEAD_MS && waiting < most) {
      waiting += 1;
      await wait(left + TIMER_SLACK_MS);
      waiting -= 1;
    }
    await next();
  };
}

// Finds the origin that a DPoP proof was made for (RFC 9449 §4.3). A tenant is served at its own origin and,
// through reverse proxies, at those of its custom domains. A proxy need not say which of them a request came to.
// docs/decisions/clients-keys.md#a-dpop-proof-that-names-a-custom-domain-is-accepted-at-every-origin-of-the-tenant

/**
 * Returns the URL that `htu` of a request's proof has to match: at the custom origin that the proof names, if it
 * names one, and otherwise ours.
 * @param address the URL of the endpoint at our own origin.
 */
export function urlAtProofOrigin(ctx: Context, customOrigins: readonly string[], address: string): string {
  const proof = customOrigins.length === 0 ? '' : ctx.get('DPoP');
  if (proof === '') return address;
  const proofOrigin = customOrigins.find((origin) => origin === originOf(proof));
  return proofOrigin === undefined ? address : `${proofOrigin}${new URL(address).pathname}`;
}

/**
 * Reads the origin of `htu` without verifying the proof; the engine then verifies the proof against the resulting
 * URL.
 */
function originOf(proof: string): string | undefined {
  try {
    return URL.parse(String(unverifiedClaims(proof).htu))?.origin;
  } catch {
    return undefined;
  }
}
