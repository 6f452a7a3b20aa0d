// Passkeys of users: what they log in with in place of a password.
import type { Stored } from './record.ts';
import type { WebAuthnCredential } from './webauthn.ts';

/** A discoverable credential. `id` is a hash of the credential's own, of which there is no second. */
export interface PasskeyRecord extends Stored, WebAuthnCredential {
  user_id: string;
  /** The connection that its user is of, by name. */
  connection: string;
  /** What its user, or an administrator, calls it. */
  name?: string;
  /** The RP ID that it answers to; the host of `BASE_URL` where nothing is said. */
  relying_party_id?: string;
  /** The user handle that it was made for, base64url. */
  user_handle?: string;
  /** What it was made with: `User-Agent`. */
  user_agent: string;
  /** ISO 8601. */
  created_at: string;
  last_used_at?: string;
}
