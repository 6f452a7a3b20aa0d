// Second factors, and what a user's devices are known by.
import type { Stored } from './record.ts';
import type { WebAuthnCredential } from './webauthn.ts';

/** A second factor of a user. `id` is told to applications: kind, bar, `dev_…`. */
export interface AuthenticatorRecord extends Stored {
  user_id: string;
  /** That of its factor, such as `otp` (`SECOND_FACTORS`). */
  kind: string;
  /** It counts from its first use on. */
  active: boolean;
  /** Until then: the version of the credential that it was begun with. */
  credential_version?: number;
  /** The user's first, confirmed on the word of the first factor alone: there is one such at most. */
  first?: boolean;
  /** ISO 8601. */
  created_at: string;
  /** E.164, of `sms`. */
  phone_number?: string;
  /** Of `email`. */
  email?: string;
  /** Of `push`: what the device calls itself. */
  name?: string;
  /** Of `otp`: the shared secret in base32. */
  secret?: string;
  /** Of `otp`: the last time step that was used; it and those before are never good again (RFC 6238 §5.2). */
  lastStep?: number;
  /** SHA-256 of the recovery code: of `recovery-code`; of another the one it brings when it is confirmed. */
  codeHash?: string;
  /** Of `push`: the device's public key, a JWK. */
  publicKey?: Record<string, unknown>;
  /** Of `push`: where a push message wakes the device. */
  pushEndpoint?: string;
  /** Of `webauthn-roaming` and `webauthn-platform`. */
  webauthn?: WebAuthnCredential;
  /** When it was last given, ISO 8601. */
  last_used_at?: string;
}

/** The latest changes of a user's second factors, oldest first; `id` is the user's. */
export interface FactorChangesRecord extends Stored {
  /** Each with a random id, when it was (epoch seconds), and the id of the token that it was made with. */
  changes: { id: string; at: number; by?: string }[];
}

/**
 * A browser that a user has logged in with, or an address that a second factor was given from; `id` is a hash
 * of its cookie or of the address, and of the user.
 */
export interface BrowserRecord extends Stored {
  user_id: string;
  /** The version of the user's credential back then: with another one it is not known. */
  credential_version?: number;
  /** Where it was last. */
  ip: string;
  /** Epoch seconds until which it is not asked for a second factor. */
  rememberedUntil?: number;
}
