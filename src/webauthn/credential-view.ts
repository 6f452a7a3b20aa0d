// A WebAuthn credential, passkey or second factor, as applications and administrators are shown it.
import type { Frozen } from '../records/record.ts';
import type { WebAuthnCredential } from '../records/webauthn.ts';

/** Returns the view of a credential. It contains nothing secret: the private key never leaves the authenticator. */
export function credentialView(one: Frozen<WebAuthnCredential>) {
  return {
    key_id: one.credential_id,
    public_key: one.credential_key,
    credential_device_type: one.backup_eligible ? ('multi_device' as const) : ('single_device' as const),
    credential_backed_up: one.backed_up,
    transports: one.transports,
    aaguid: one.aaguid,
  };
}
