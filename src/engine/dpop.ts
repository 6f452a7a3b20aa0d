// DPoP (RFC 9449): the engine's verification of proofs, for its endpoints and for ours.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import { sharedSecret } from '../store/shared-secret.ts';
import type { Config } from '../tenant/config.ts';
import { atOriginOfProof } from './address-of-proof.ts';
import { engineDpop } from './internals.ts';

/** Asymmetric, and none that a profile for financial services refuses (FAPI 2.0 Security Profile §5.4.1). */
export const DPOP_ALGORITHMS = ['ES256', 'ES384', 'PS256', 'Ed25519', 'EdDSA'] as const;

/** A proof that was verified; whether it is used for the first time is asked apart. */
export interface DpopProof {
  /** Of its key (RFC 7638). */
  thumbprint: string;
  jti: string;
  /** Epoch seconds. */
  iat: number;
}

/**
 * The engine's switch.
 * @param nonceSecret what nonces are made of (§8): 32 bytes, the same in every process of a tenant.
 */
export function dpopFeature(
  { config }: { config: Config },
  nonceSecret: Buffer,
): NonNullable<Configuration['features']>['dPoP'] {
  return {
    enabled: true,
    nonceSecret,
    requireNonce: () => config.settings().tenant.flags.require_dpop_nonce === true,
  };
}

/** What an answer says of how to bring a token that is bound to a key (§7.1). */
export function dpopChallenge({ error, description }: { error?: string; description?: string }): string {
  const members = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(description === undefined ? [] : [`error_description="${description}"`]),
    `algs="${DPOP_ALGORITHMS.join(' ')}"`,
  ];
  return `DPoP ${members.join(', ')}`;
}

const NONCES = 'dpop-nonces';

/** The secret of a tenant's nonces, made at its first start. */
export function dpopNonceSecret(store: Store, random: Random): Promise<Buffer> {
  return sharedSecret({ store, random }, NONCES);
}

export interface DpopProofs {
  /**
   * Verifies the proof of a request: signature, key, `htm`, `htu`, `iat` or nonce, and `ath` where there is a token
   * (§4.3).
   * @returns undefined when there is none.
   * @throws errors.InvalidDpopProof; errors.UseDpopNonce, the nonce in the header of the answer.
   */
  read(ctx: Context, accessToken?: string): Promise<DpopProof | undefined>;
  /** @throws errors.InvalidDpopProof for a proof that was used before (§11.1). */
  useOnce(ctx: Context, proof: DpopProof, clientId: string): Promise<void>;
}

/** Where the tenant is served. */
interface Served {
  /** Our public origin. */
  baseUrl: string;
  config: Pick<Config, 'customOrigins'>;
}

/** The proofs of requests to our own endpoints. */
export function dpopProofs(provider: Provider, served: Served): DpopProofs {
  return {
    read: (ctx, accessToken) =>
      engineDpop.validateDpop(provider, seenFrom(provider, ctx, served), accessToken),
    useOnce: (ctx, proof, clientId) =>
      engineDpop.checkDpopReplay(
        provider,
        seenFrom(provider, ctx, served),
        proof,
        clientId,
        errors.InvalidDpopProof,
      ),
  };
}

/**
 * A request as the engine verifies proofs of it: it takes the address that `htu` must be from the names of its own
 * routes, and ours has none there.
 */
function seenFrom(provider: Provider, ctx: Context, { baseUrl, config }: Served): KoaContextWithOIDC {
  const [path = ''] = ctx.originalUrl.split('?');
  const address = atOriginOfProof(ctx, config.customOrigins(), `${baseUrl}${path}`);
  const oidc = { provider, route: 'ours', urlFor: () => address };
  return Object.create(ctx, { oidc: { value: oidc } }) as KoaContextWithOIDC;
}
