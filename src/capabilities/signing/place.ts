// A place that keeps signing keys: the settings that it needs, and how it signs. Each is a file in `places` and a line of
// `PLACES` (settings.ts).
import type { z } from 'zod';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { SignatureAlg } from './local.ts';

export interface KeyPlace {
  /** Returns the public keys as JWKs with `kid` and `alg`, oldest first. `signal` ends the wait. */
  keys(signal: AbortSignal): Promise<readonly Record<string, unknown>[]>;
  /** ECDSA signatures may be two numbers or DER. @throws Error with the reason, without a secret. */
  sign(request: SignRequest, signal: AbortSignal): Promise<Uint8Array>;
}

export interface SignRequest {
  alg: SignatureAlg;
  kid: string;
  data: Uint8Array;
}

/** What places may use to sign. */
export interface PlaceNeeds {
  outbound: Pick<Outbound, 'fetch'>;
  /** Names of environment variables that no other program gets. */
  hidden: readonly string[];
}

type Values<V extends z.ZodRawShape> = z.output<z.ZodObject<V>>;

interface SigningPlaceDeclaration<V extends z.ZodRawShape> {
  /** The value of `SIGNING`. */
  name: string;
  /**
   * The form of its settings, by the names of environment variables, with `meta` as in every group of settings. Each is
   * required with this place, unless its form is optional, and read with no other.
   */
  variables: V;
  /** The variable with the address that signs, which the doctor asks; undefined for a place without one. */
  address: (keyof V & string) | undefined;
  /** Returns undefined for keys that are in the store, with which this process signs. */
  open(values: Values<V>, needs: PlaceNeeds): KeyPlace | undefined;
}

/** A {@link SigningPlaceDeclaration} for every type of settings. */
export interface SigningPlace {
  name: string;
  variables: z.ZodRawShape;
  address: string | undefined;
  /** @param values of its variables, as they were read. */
  open(values: Readonly<Record<string, unknown>>, needs: PlaceNeeds): KeyPlace | undefined;
}

export function signingPlace<V extends z.ZodRawShape>(declared: SigningPlaceDeclaration<V>): SigningPlace {
  // The settings were read by the forms that are declared with it.
  return { ...declared, open: (values, needs) => declared.open(values as Values<V>, needs) };
}

/** Returns the keys of a JWK Set (RFC 7517 §5). @throws Error when the text is no such set. */
export function keySetOf(text: Uint8Array | string): Record<string, unknown>[] {
  let set: { keys?: unknown } | null;
  try {
    set = JSON.parse(Buffer.from(text).toString('utf8')) as { keys?: unknown } | null;
  } catch {
    throw new Error('the key set is no JSON');
  }
  if (!Array.isArray(set?.keys)) throw new Error('the key set has no keys');
  return set.keys.filter((key): key is Record<string, unknown> => typeof key === 'object' && key !== null);
}
