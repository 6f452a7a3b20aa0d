// Converts ECDSA signatures from DER (a SEQUENCE of two INTEGERs, RFC 3279 §2.2.3), which most devices return, to the
// form of JWS.

/** Length of each of the two numbers for P-256, bytes (RFC 7518 §3.4). */
const INTEGER_SIZE = 32;

/**
 * Returns the signature in the form of JWS.
 * @param signature a signature in either form.
 * @throws Error for anything else.
 */
export function joseSignature(signature: Uint8Array): Buffer {
  const bytes = Buffer.from(signature);
  if (bytes.length === 2 * INTEGER_SIZE) return bytes;
  if (bytes[0] !== 0x30 || bytes[1] !== bytes.length - 2)
    throw new Error('the ECDSA signature has no known form');
  const first = integerAt(bytes, 2);
  const second = integerAt(bytes, first.end);
  if (second.end !== bytes.length) throw new Error('the ECDSA signature has no known form');
  return Buffer.concat([first.number, second.number]);
}

function integerAt(bytes: Buffer, at: number): { number: Buffer; end: number } {
  const length = bytes[at + 1] ?? 0;
  const end = at + 2 + length;
  const digits = bytes.subarray(at + 2, end);
  // A leading zero keeps the number positive.
  const number = digits.subarray(digits.findIndex((byte) => byte !== 0));
  if (bytes[at] !== 0x02 || length === 0 || end > bytes.length || number.length > INTEGER_SIZE) {
    throw new Error('the ECDSA signature has no known form');
  }
  return { number: Buffer.concat([Buffer.alloc(INTEGER_SIZE - number.length), number]), end };
}
