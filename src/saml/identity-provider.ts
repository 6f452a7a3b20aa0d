// We as SAML identity provider: entity ID, addresses and keys.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { SigningKeyRecord } from '../records/engine.ts';
import type { Frozen } from '../records/record.ts';
import type { Config } from '../tenant/config.ts';
import type { ServiceProvider } from './service-provider.ts';
import type { Signer } from './signature.ts';

export interface IdentityProvider {
  /** Our entity ID for an application: its addon may set another `issuer`. */
  entityId(clientId: string): Promise<string>;
  /** Our single sign-on and single logout addresses for an application. */
  addresses(clientId: string): { login: string; logout: string };
  signer(sp: Pick<ServiceProvider, 'signatureAlgorithm' | 'digestAlgorithm'>): Signer;
  /** Certificates that we sign with or are about to, base64 DER, the current first. */
  certificates: readonly string[];
}

/**
 * @param keys the tenant's signing keys, the current first.
 * @throws Error when there are none.
 */
export function identityProvider(
  baseUrl: string,
  config: Config,
  keys: readonly Frozen<SigningKeyRecord>[],
): IdentityProvider {
  const [current] = keys;
  const certificate = current?.x5c[0];
  if (current === undefined || certificate === undefined) throw new Error('the tenant has no signing key');
  const privateKey: KeyObject = createPrivateKey({ key: current.jwk as JsonWebKey, format: 'jwk' });
  return {
    entityId: async (clientId) =>
      (await config.client(clientId))?.addons?.samlp?.issuer ?? `urn:${new URL(baseUrl).hostname}`,
    addresses: (clientId) => {
      const login = `${baseUrl}/samlp/${encodeURIComponent(clientId)}`;
      return { login, logout: `${login}/logout` };
    },
    signer: ({ signatureAlgorithm, digestAlgorithm }) => ({
      privateKey,
      certificate,
      signatureAlgorithm,
      digestAlgorithm,
    }),
    // The previous key no longer signs.
    certificates: keys.filter(({ state }) => state !== 'previous').flatMap(({ x5c }) => x5c[0] ?? []),
  };
}
