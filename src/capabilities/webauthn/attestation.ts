// The attestation of a new credential (WebAuthn Level 3 §6.5).

/**
 * Returns an attestation object without its attestation statement (format `none`, §8.7), which is what the server
 * asked for. To verify a statement, the library would fetch the revocation lists that its certificates name, so a
 * stranger would choose what this server fetches (SSRF).
 * @param encodedObject base64url.
 * @returns undefined when it is not an attestation object.
 */
export async function withoutStatement(encodedObject: string): Promise<string | undefined> {
  const { decodeAttestationObject, isoCBOR } = await import('@simplewebauthn/server/helpers');
  try {
    const authData = decodeAttestationObject(new Uint8Array(Buffer.from(encodedObject, 'base64url'))).get(
      'authData',
    );
    const statement = new Map<string, never>();
    const entries: [string, string | Uint8Array | typeof statement][] = [
      ['fmt', 'none'],
      ['attStmt', statement],
      ['authData', authData],
    ];
    return Buffer.from(isoCBOR.encode(new Map(entries))).toString('base64url');
  } catch {
    return undefined;
  }
}
