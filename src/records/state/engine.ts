// The records of the OIDC engine: keys, artifacts, consents.
import type { Stored } from '../base/record.ts';
import type { SigningAlg } from '../base/signing-algs.ts';

// docs/understand/decisions/clients-keys.md#signing-keys-are-rsa-2048-the-current-the-next-and-the-previous-are-published
/**
 * A signing key of the tenant; `id` is its `kid`. Of the keys of an algorithm, the `current` one signs and all are
 * published.
 */
export interface SigningKeyRecord extends Stored {
  state: 'current' | 'next' | 'previous';
  /** The private key as a JWK with `kid`, `use` and `alg`; it signs with no other algorithm. */
  jwk: Record<string, unknown>;
  /** The self-signed certificate over the public key, base64 DER, published as `x5c`. */
  x5c: string[];
  /** Epoch seconds. */
  createdAt: number;
  /** When a rotation made it the current key, epoch seconds; not set if it was created as the current one. */
  currentSince?: number;
}

/** Returns since when a current key signs, epoch seconds: it was published before, for as long as the key before it signed. */
export function signsSince({
  createdAt,
  currentSince,
}: Pick<SigningKeyRecord, 'createdAt' | 'currentSince'>): number {
  return currentSince ?? createdAt;
}

/** A key that signs requests to an identity provider. */
export interface ConnectionKeyRecord extends SigningKeyRecord {
  /** The id of the connection. */
  connection: string;
}

/** A key check value, which shows whether a key kept outside the store (`id`) is the right one. */
export interface KeyCheckRecord extends Stored {
  value: string;
}

/** Returns the id of the {@link KeyCheckRecord} that records that the store has had signing keys of an algorithm. */
export function signingCheck(alg: SigningAlg): string {
  return alg === 'RS256' ? 'signing' : `signing:${alg}`;
}

/** A secret that all processes of a tenant share; `id` is its purpose. */
export interface SharedSecretRecord extends Stored {
  /** base64url. */
  value: string;
}

/** An artifact of the OIDC engine (session, code, refresh token …); `id` is its model and a hash of its value. */
export interface ArtifactRecord extends Stored {
  model: string;
  payload: Record<string, unknown>;
}

/** A user's consent to an application; `id` is {@link consentId}. The resource `""` stands for the OIDC scopes. */
export interface ConsentRecord extends Stored {
  user_id: string;
  client_id: string;
  scopes: Record<string, string[]>;
  /** The hosts of callbacks that the user was shown for a stranger's application. */
  hosts?: string[];
}

export function consentId(userId: string, clientId: string): string {
  return `${userId}\n${clientId}`;
}
