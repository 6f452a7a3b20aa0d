// An authenticator in software, which answers as its test wants.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
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

/** What an answer says in place of the truth. */
export interface Said {
  origin?: string;
  /** The host that the authenticator was asked by. */
  rpId?: string;
  challenge?: string;
  type?: 'webauthn.get' | 'webauthn.create';
  /** WebAuthn Level 3 §6.1: 1 somebody was there, 4 they were verified. */
  flags?: number;
  count?: number;
}

/** An authenticator with one discoverable credential, whose owner has it say what the test wants. */
export function softwareKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const point = (value: string) => new Uint8Array(Buffer.from(value, 'base64url'));
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
    /** The answer to a registration. */
    create: (
      asked: { challenge: string; rp: { id: string }; user: { id: string } },
      origin: string,
      said: Said = {},
    ): object => {
      handle = asked.user.id;
      const { head, client } = dataOf(asked, asked.rp.id, origin, said, 'webauthn.create');
      const entries: [number, number | Uint8Array][] = [
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, point(x)],
        [-3, point(y)],
      ];
      const key = Buffer.from(isoCBOR.encode(new Map(entries)));
      const authData = Buffer.concat([head(0x40), Buffer.alloc(16), Buffer.from([0, 16]), id, key]);
      const object = new Map<string, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', new Uint8Array(authData)],
      ]);
      const attestationObject = text(Buffer.from(isoCBOR.encode(object as never)));
      return answer({ clientDataJSON: text(client), attestationObject });
    },
    /** The answer to a login. */
    get: (asked: { challenge: string; rpId: string }, origin: string, said: Said = {}): object => {
      const { head, client } = dataOf(asked, asked.rpId, origin, said, 'webauthn.get');
      const authenticatorData = head(0);
      const signed = Buffer.concat([authenticatorData, createHash('sha256').update(client).digest()]);
      return answer({
        clientDataJSON: text(client),
        authenticatorData: text(authenticatorData),
        signature: text(sign('sha256', signed, privateKey)),
        userHandle: handle,
      });
    },
  };
}
