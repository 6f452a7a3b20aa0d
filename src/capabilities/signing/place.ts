// The interface of a place that keeps signing keys.
import type { SignatureAlg } from './local.ts';

export interface KeyPlace {
  /** Returns the public keys as JWKs with `kid` and `alg`, oldest first. `signal` ends the wait. */
  keys(signal: AbortSignal): Promise<readonly Record<string, unknown>[]>;
  /** Signs; ECDSA signatures may be two numbers or DER. @throws Error with the reason, without a secret. */
  sign(request: SignRequest, signal: AbortSignal): Promise<Uint8Array>;
}

export interface SignRequest {
  alg: SignatureAlg;
  kid: string;
  data: Uint8Array;
}
