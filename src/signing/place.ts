// What a place that keeps keys is, whoever it is.
import type { SignatureAlg } from './local.ts';

/** Where the keys are. */
export type SigningSettings =
  | { kind: 'local' }
  | { kind: 'command'; command: readonly string[] }
  | { kind: 'http'; url: string; secret: string }
  | { kind: 'pkcs11'; module: string; token: string; pin: string };

/** A place that keeps keys: all that is asked of it. */
export interface KeyPlace {
  /** The public keys as JWKs with `kid` and `alg`, oldest first; `signal` ends the wait. */
  keys(signal: AbortSignal): Promise<readonly Record<string, unknown>[]>;
  /** Signs; ECDSA as the two numbers or as DER. @throws Error that says why not, without a secret. */
  sign(request: SignRequest, signal: AbortSignal): Promise<Uint8Array>;
}

export interface SignRequest {
  alg: SignatureAlg;
  kid: string;
  data: Uint8Array;
}
