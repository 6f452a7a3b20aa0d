// Signs JWTs (RFC 7519 §7.1).
import type { SigningAlg } from '../../records/base/signing-algs.ts';
import type { Signing } from './signing.ts';

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** Signs claims with the current key of an algorithm. @returns the compact serialization (RFC 7515 §3.1). */
export async function signJwt(
  signing: Pick<Signing, 'sign' | 'current'>,
  { alg, typ }: { alg: SigningAlg; typ: string },
  claims: object,
): Promise<string> {
  const { id: kid } = await signing.current(alg);
  const input = `${encoded({ alg, typ, kid })}.${encoded(claims)}`;
  return `${input}.${(await signing.sign(alg, kid, Buffer.from(input))).toString('base64url')}`;
}
