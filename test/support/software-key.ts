// An authenticator in software, whose answers the test controls.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

interface Statement {
  fmt: string;
  attStmt: Map<string, unknown>;
}

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const sha256 = (text: string) => createHash('sha256').update(text).digest();

/**
 * Returns the answer to a registration in the form of `toJSON`.
 * @param asked the options of `navigator.credentials.create`.
 * @param origin the page's origin.
 * @param statement the attestation statement; none by default.
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
  // Flags: user present, user verified, attested credential data included.
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

/** What an answer says instead of the truth. */
export interface Said {
  origin?: string;
  /** The host that requested it (the RP ID). */
  rpId?: string;
  challenge?: string;
  type?: 'webauthn.get' | 'webauthn.create';
  /** Flags (WebAuthn Level 3 §6.1): 1 user present, 4 user verified. */
  flags?: number;
  count?: number;
  /** For a page in a frame: whether an ancestor has another origin, and the top one's origin. */
  crossOrigin?: boolean;
  topOrigin?: string;
  /** The user handle of the credential. */
  userHandle?: string;
}

type CoseKey = Map<number, number | Uint8Array>;

const bytes = (value = '') => new Uint8Array(Buffer.from(value, 'base64url'));

/** Returns a key pair with its public key in COSE (RFC 9053 §7) and the hash of its signatures. */
function keysOf(alg: 'ES256' | 'ES384' | 'EdDSA' | 'RS256') {
  if (alg === 'RS256') {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { n, e } = publicKey.export({ format: 'jwk' });
    const cose: CoseKey = new Map<number, number | Uint8Array>([
      [1, 3],
      [3, -257],
      [-1, bytes(n)],
      [-2, bytes(e)],
    ]);
    return { privateKey, cose, hash: 'sha256' };
  }
  if (alg === 'EdDSA') {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const { x } = publicKey.export({ format: 'jwk' });
    const cose: CoseKey = new Map<number, number | Uint8Array>([
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, bytes(x)],
    ]);
    return { privateKey, cose, hash: undefined };
  }
  const isSmall = alg === 'ES256';
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: isSmall ? 'P-256' : 'P-384' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const cose: CoseKey = new Map<number, number | Uint8Array>([
    [1, 2],
    [3, isSmall ? -7 : -35],
    [-1, isSmall ? 1 : 2],
    [-2, bytes(x)],
    [-3, bytes(y)],
  ]);
  return { privateKey, cose, hash: isSmall ? 'sha256' : 'sha384' };
}

/**
 * Returns an authenticator with one discoverable credential, which answers as the test says.
 * @param aaguid its model, in hexadecimal with hyphens; none by default.
 */
export function softwareKey(alg: Parameters<typeof keysOf>[0] = 'ES256', aaguid = '') {
  const { privateKey, cose, hash } = keysOf(alg);
  const make = aaguid === '' ? Buffer.alloc(16) : Buffer.from(aaguid.replaceAll('-', ''), 'hex');
  const id = randomBytes(16);
  let handle = '';
  const dataOf = (
    asked: { challenge: string },
    rpId: string,
    origin: string,
    said: Said,
    type: Said['type'],
  ) => {
    const { flags = 5, count = 0 } = said;
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(count);
    return {
      head: (attached: number) =>
        Buffer.concat([sha256(said.rpId ?? rpId), Buffer.from([flags | attached]), counter]),
      client: Buffer.from(
        JSON.stringify({
          type: said.type ?? type,
          challenge: said.challenge ?? asked.challenge,
          origin: said.origin ?? origin,
          ...(said.crossOrigin !== undefined && { crossOrigin: said.crossOrigin }),
          ...(said.topOrigin !== undefined && { topOrigin: said.topOrigin }),
        }),
      ),
    };
  };
  const text = (data: Buffer) => data.toString('base64url');
  const answer = (response: object) => ({
    id: text(id),
    rawId: text(id),
    type: 'public-key',
    clientExtensionResults: {},
    response,
  });
  return {
    /** Returns the answer to a registration. */
    create: (
      asked: { challenge: string; rp: { id: string }; user: { id: string } },
      origin: string,
      said: Said = {},
    ): object => {
      handle = asked.user.id;
      const { head, client } = dataOf(asked, asked.rp.id, origin, said, 'webauthn.create');
      const key = Buffer.from(isoCBOR.encode(cose));
      const authData = Buffer.concat([head(0x40), make, Buffer.from([0, 16]), id, key]);
      const object = new Map<string, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', new Uint8Array(authData)],
      ]);
      const attestationObject = text(Buffer.from(isoCBOR.encode(object as never)));
      return answer({ clientDataJSON: text(client), attestationObject });
    },
    /** Returns the answer to a login. */
    get: (asked: { challenge: string; rpId: string }, origin: string, said: Said = {}): object => {
      const { head, client } = dataOf(asked, asked.rpId, origin, said, 'webauthn.get');
      const authenticatorData = head(0);
      const signed = Buffer.concat([authenticatorData, createHash('sha256').update(client).digest()]);
      return answer({
        clientDataJSON: text(client),
        authenticatorData: text(authenticatorData),
        signature: text(sign(hash, signed, privateKey)),
        userHandle: said.userHandle ?? handle,
      });
    },
  };
}
