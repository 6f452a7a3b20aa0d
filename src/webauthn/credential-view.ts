// A credential of WebAuthn as applications and administrators are told of it, a passkey or a second factor.
import type { Frozen } from '../records/record.ts';
import type { WebAuthnCredential } from '../records/webauthn.ts';

/** What is told: never what would prove it, of which there is nothing here. */
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
