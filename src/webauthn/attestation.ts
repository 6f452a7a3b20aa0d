// What an authenticator says of itself with a new credential (WebAuthn Level 3 §6.5).

/**
 * An attestation object with the statement that was asked for: none (§6.5.4, §8.7). To verify another, the certificates in it
 * would be read, and the addresses in those asked for lists of revoked ones: a stranger would choose what this server fetches.
 * @returns undefined where it is no attestation object.
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
