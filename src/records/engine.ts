// What the OIDC engine keeps: keys, artifacts, consents.
import type { Stored } from './record.ts';
import type { SigningAlg } from './signing-algs.ts';

/** A signing key of the tenant; `id` is its `kid`. Of those of an algorithm `current` signs; all are published. */
export interface SigningKeyRecord extends Stored {
  state: 'current' | 'next' | 'previous';
  /** The private key as a JWK with `kid`, `use`, and the `alg` that it signs with, and no other. */
  jwk: Record<string, unknown>;
  /** The self-signed certificate over the public key, base64 DER, published as `x5c`. */
  x5c: string[];
  /** Epoch seconds. */
  createdAt: number;
}

/** A key that requests to an identity provider are signed with. */
export interface ConnectionKeyRecord extends SigningKeyRecord {
  /** The connection's id. */
  connection: string;
}

/** What tells a key that is kept outside the store (`id`) from another: its key check value. */
export interface KeyCheckRecord extends Stored {
  value: string;
}

/** The id of the {@link KeyCheckRecord} that says that the store has had signing keys of an algorithm. */
export function signingCheck(alg: SigningAlg): string {
  return alg === 'RS256' ? 'signing' : `signing:${alg}`;
}

/** A secret that all processes of a tenant have in common; `id` says for what. */
export interface SharedSecretRecord extends Stored {
  /** base64url. */
  value: string;
}

/** An artifact of the OIDC engine (session, code, refresh token …); `id` is of its model and a hash of its value. */
export interface ArtifactRecord extends Stored {
  model: string;
  payload: Record<string, unknown>;
}

/** What a user allowed an application; `id` is {@link consentId}. Resource `""` is the OIDC scopes. */
export interface ConsentRecord extends Stored {
  user_id: string;
  client_id: string;
  scopes: Record<string, string[]>;
}

/** The id of a user's consent for an application. */
export function consentId(userId: string, clientId: string): string {
  return `${userId}\n${clientId}`;
}
