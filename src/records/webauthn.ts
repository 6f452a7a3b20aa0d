// Credentials of Web Authentication, as they are kept.

/** A public key credential (WebAuthn Level 3 §4 "credential record"). */
export interface WebAuthnCredential {
  /** Base64url. */
  credential_id: string;
  /** The public key in COSE, base64url. */
  credential_key: string;
  /** How often it was used, where the authenticator counts; 0 where it does not. */
  sign_count: number;
  transports: string[];
  /** Whether it can be copied to other devices of its owner, and whether it is. */
  backup_eligible: boolean;
  backed_up: boolean;
  /** The model of the authenticator; zeros where it does not say. */
  aaguid: string;
}
