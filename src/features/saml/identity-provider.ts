// This server as SAML identity provider: entity ID, URLs and keys.
import { sign as signCallback } from 'node:crypto';
import { promisify } from 'node:util';
import { HASH, type Signer } from '../../capabilities/saml-messages/signature.ts';
import { JOSE_ALG } from '../../capabilities/signing/local.ts';
import type { Sign } from '../../capabilities/signing/signing.ts';
import type { Config } from '../../tenant/config.ts';
import { keysFor, type SigningKey } from '../../tenant/tenant-snapshot.ts';
import type { ServiceProvider } from './service-provider.ts';

const signInPool = promisify(signCallback);

export interface IdentityProvider {
  /** Returns our entity ID for an application, whose addon may set another `issuer`. */
  entityId(clientId: string): Promise<string>;
  /** Returns our single sign-on and single logout URLs for an application. */
  addresses(clientId: string): { login: string; logout: string };
  signer(sp: Pick<ServiceProvider, 'signatureAlgorithm' | 'digestAlgorithm' | 'signingKey'>): Signer;
  /** Returns the certificates that we sign with now and next, base64 DER, the current one first. */
  certificates(): readonly string[];
}

/** Returns the identity provider of a tenant. It signs with the tenant's current key. */
export function identityProvider(baseUrl: string, config: Config, sign: Sign): IdentityProvider {
  return {
    entityId: async (clientId) =>
      (await config.client(clientId))?.addons?.samlp?.issuer ?? `urn:${new URL(baseUrl).hostname}`,
    addresses: (clientId) => {
      const login = `${baseUrl}/samlp/${encodeURIComponent(clientId)}`;
      return { login, logout: `${login}/logout` };
    },
    signer: ({ signatureAlgorithm, digestAlgorithm, signingKey }) => ({
      ...(signingKey === undefined ? currentKey(config.signingKeys(), sign) : keyOfAction(signingKey)),
      signatureAlgorithm,
      digestAlgorithm,
    }),
    // The previous key no longer signs.
    certificates: () =>
      keysFor(config.signingKeys(), 'RS256')
        .filter(({ state }) => state !== 'previous')
        .flatMap(({ x5c }) => x5c[0] ?? []),
  };
}

/** Returns the key that an action has set. It signs in the thread pool, like our own. */
function keyOfAction({
  certificate,
  privateKey,
}: NonNullable<ServiceProvider['signingKey']>): Pick<Signer, 'sign' | 'certificate'> {
  return { certificate, sign: (algorithm, octets) => signInPool(HASH[algorithm], octets, privateKey) };
}

function currentKey([current]: readonly SigningKey[], sign: Sign): Pick<Signer, 'sign' | 'certificate'> {
  const certificate = current?.x5c[0];
  if (current === undefined || certificate === undefined) throw new Error('the tenant has no signing key');
  return { certificate, sign: (algorithm, octets) => sign(JOSE_ALG[algorithm], current.id, octets) };
}
