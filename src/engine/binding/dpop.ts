// DPoP (RFC 9449): the engine's verification of proofs, for its endpoints and for ours.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { jwtHeader } from '../../capabilities/signing/verify-jwt.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { sharedSecret } from '../../store/shared-secret.ts';
import type { Config } from '../../tenant/config.ts';
import { engineDpop, type Nonces } from '../base/internals.ts';
import { dateInProof } from './early-proofs.ts';
import { urlAtProofOrigin } from './proof-origin.ts';
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

/** Loads the state of DPoP at the start. */
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

/** Returns the engine's configuration of DPoP. */
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

/** The origins that the tenant is served at. */
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
