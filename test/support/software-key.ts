// An authenticator in software, which answers as its test wants.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

interface Statement {
  fmt: string;
  attStmt: Map<string, unknown>;
}

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const sha256 = (text: string) => createHash('sha256').update(text).digest();

/**
 * The answer to a registration, as `toJSON` writes it.
 * @param asked the options of `navigator.credentials.create`.
 * @param origin the page's.
 * @param statement what is said of the authenticator; nothing by default.
 */
export function newCredential(
  asked: { challenge: string; rp: { id: string } },
  origin: string,
  { fmt, attStmt }: Statement = { fmt: 'none', attStmt: new Map() },
): object {
  const { x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
  const point = (value = '') => new Uint8Array(Buffer.from(value, 'base64url'));
  // ES256 on P-256 (RFC 9053 §2.1).
  const entries: [number, number | Uint8Array][] = [
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, point(x)],
    [-3, point(y)],
  ];
  const id = randomBytes(16);
  // Somebody was there and verified, and a credential is attached.
  const flags = Buffer.from([0x45, 0, 0, 0, 0]);
  const key = Buffer.from(isoCBOR.encode(new Map(entries)));
  const authData = Buffer.concat([
    sha256(asked.rp.id),
    flags,
    Buffer.alloc(16),
    Buffer.from([0, 16]),
    id,
    key,
  ]);
  const object = new Map<string, unknown>([
    ['fmt', fmt],
    ['attStmt', attStmt],
    ['authData', new Uint8Array(authData)],
  ]);
  return {
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
    clientExtensionResults: {},
    response: {
      clientDataJSON: encoded({ type: 'webauthn.create', challenge: asked.challenge, origin }),
      attestationObject: Buffer.from(isoCBOR.encode(object as never)).toString('base64url'),
    },
  };
}
