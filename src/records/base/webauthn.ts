// Stored WebAuthn credentials.

/** A public key credential ("credential record", WebAuthn Level 3 §4). */
export interface WebAuthnCredential {
  /** In base64url. */
  credential_id: string;
  /** The public key in COSE format, base64url. */
  credential_key: string;
  /** The signature counter; 0 if the authenticator has none. */
  sign_count: number;
  transports: string[];
  /** Whether it can be backed up to other devices, and whether it is. */
  backup_eligible: boolean;
  backed_up: boolean;
  /** The authenticator's model; zeros if it is not disclosed. */
  aaguid: string;
}
