// Passkeys, with which users log in instead of a password.
import type { Stored } from '../base/record.ts';
import type { WebAuthnCredential } from '../base/webauthn.ts';

/** A discoverable credential. `id` is a hash of the credential id. */
export interface PasskeyRecord extends Stored, WebAuthnCredential {
  user_id: string;
  /** The name of the user's connection. */
  connection: string;
  /** The name that the user or an administrator gave it. */
  name?: string;
  /** The RP ID that it was created for. */
  relying_party_id: string;
  /** The user handle that it was created for, base64url. */
  user_handle: string;
  /** `User-Agent` of the browser that created it. */
  user_agent: string;
  /** ISO 8601. */
  created_at: string;
  last_used_at?: string;
}
