// Authenticators: second factors, and known browsers of users.
import type { Stored } from '../base/record.ts';
import type { WebAuthnCredential } from '../base/webauthn.ts';

/** A second factor of a user. Applications see its `id`: the type, a bar, `dev_…`. */
export interface AuthenticatorRecord extends Stored {
  user_id: string;
  /** The name of its factor, such as `otp` (`SECOND_FACTORS`). */
  kind: string;
  /** Whether it is confirmed; it counts as a factor only after its first use. */
  active: boolean;
  /** Before it is confirmed: the version of the user's credential at the start of the enrollment. */
  credential_version?: number;
  /** True if it was the user's first one, enrolled with the first factor only; a user can have one such at most. */
  first?: boolean;
  /** ISO 8601. */
  created_at: string;
  /** Of `sms`: the phone number, E.164. */
  phone_number?: string;
  /** Of `email`: the address. */
  email?: string;
  /** Of `push`: the name that the device gives itself. */
  name?: string;
  /** Of `otp`: the shared secret in base32. */
  secret?: string;
  /** Of `otp`: the last time step that was used; it and earlier ones are not accepted again (RFC 6238 §5.2). */
  lastStep?: number;
  /**
   * SHA-256 of the recovery code: of `recovery-code` itself; for another factor, of the recovery code that is enrolled
   * when it is confirmed.
   */
  codeHash?: string;
  /** Of `push`: the device's public key, as a JWK. */
  publicKey?: Record<string, unknown>;
  /** Of `push`: where messages to the device are sent. */
  pushEndpoint?: string;
  /** Whether a device says that it shows the details of requests (`authorization_details`). */
  showsDetails?: boolean;
  /** Of `webauthn-roaming` and `webauthn-platform`. */
  webauthn?: WebAuthnCredential;
  /** When it was last used, ISO 8601. */
  last_used_at?: string;
}

// docs/understand/decisions/moving.md#a-user-whose-second-factor-does-not-move-is-not-let-in-by-the-password-alone
/**
 * The kind of a record that stands for second factors which a user had at an old tenant and which did not move here. It is
 * no second factor: while it is all that a user has, they are not let in.
 */
export const LEFT_BEHIND = 'left-behind';

/** The latest changes of a user's second factors, oldest first; `id` is the user's. */
export interface FactorChangesRecord extends Stored {
  /** Each with a random id, its time (epoch seconds), and the id of the token that made the change. */
  changes: { id: string; at: number; by?: string }[];
}

/**
 * A browser that a user has logged in with, or an address that a second factor was given from; `id` is a hash of its
 * cookie or of the address, and of the user.
 */
export interface BrowserRecord extends Stored {
  user_id: string;
  /** The version of the user's credential at that time; the browser is not recognized with another version. */
  credential_version: number;
  /** The address of its last login. */
  ip: string;
  /** The time until which it is not asked for a second factor, in epoch seconds. */
  rememberedUntil?: number;
}

/** The name of the turn (`writeInTurn`) in which a user gets authenticators, and is linked. */
export const factorsTurn = (userId: string) => `authenticators of ${userId}`;
