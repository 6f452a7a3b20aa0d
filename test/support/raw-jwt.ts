// JWTs with any header, including those that no library signs.
import { createHmac, type KeyObject, sign } from 'node:crypto';

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** Signs by ES256 with a key, or by HS256 with a secret. @param header beside `alg`. */
export function rawJwt(key: KeyObject | string, header: object, claims: object): string {
  const alg = typeof key === 'string' ? 'HS256' : 'ES256';
  const input = `${encoded({ alg, ...header })}.${encoded(claims)}`;
  const signature =
    typeof key === 'string'
      ? createHmac('sha256', key).update(input).digest()
      : sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}
