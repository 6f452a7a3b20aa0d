// The interface of a place that keeps signing keys.
import type { SignatureAlg } from './local.ts';

/** Where the signing keys are. */
export type SigningSettings =
  | { kind: 'local' }
  | {
      kind: 'command';
      /** The program and its first arguments. */
      command: readonly string[];
      /** Names of variables that the program does not get. */
      hidden: readonly string[];
    }
  | { kind: 'http'; url: string; secret: string };

/** A place that keeps signing keys. */
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
