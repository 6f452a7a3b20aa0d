// A WebAuthn credential, passkey or second factor, as applications and administrators are shown it.
import type { Frozen } from '../../records/base/record.ts';
import type { WebAuthnCredential } from '../../records/base/webauthn.ts';

/** Returns the view of a credential. It contains nothing secret: the private key never leaves the authenticator. */
export function credentialView(credential: Frozen<WebAuthnCredential>) {
  return {
    key_id: credential.credential_id,
    public_key: credential.credential_key,
    credential_device_type: credential.backup_eligible
      ? ('multi_device' as const)
      : ('single_device' as const),
    credential_backed_up: credential.backed_up,
    transports: credential.transports,
    aaguid: credential.aaguid,
  };
}
