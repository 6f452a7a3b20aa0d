// Signatures of messages in a query (SAML 2.0 Bindings §3.4.4.1).
import { allowedAlgorithm, SIGNATURE_URI, type Signer, type Verifier, wrongSignature } from './signature.ts';
import { isSignedBy } from './verification.ts';
import { badMessage } from './xml.ts';

/** A signed query. The signature covers its octets as sent (Bindings §3.4.4.1). */
export interface SignedQuery {
  octets: string;
  /** URI, decoded. */
  algorithm: string;
  /** Base64, decoded from the query. */
  signature: string;
}

/** Verifies the signature of a query. @throws AuthError 400 when it is missing or invalid. */
export function verifyQuery(query: SignedQuery | undefined, verifier: Verifier): void {
  if (query === undefined) throw badMessage('The SAML message must be signed.');
  const algorithm = allowedAlgorithm(query.algorithm, verifier);
  const octets = Buffer.from(query.octets, 'latin1');
  if (!isSignedBy(verifier, algorithm, octets, query.signature)) throw wrongSignature();
}

/** Adds `SigAlg` and `Signature` to a query. @param query SAMLRequest or SAMLResponse, and RelayState. */
export async function signQuery(query: string, { sign, signatureAlgorithm }: Signer): Promise<string> {
  const octets = `${query}&SigAlg=${encodeURIComponent(SIGNATURE_URI[signatureAlgorithm])}`;
  const signature = Buffer.from(await sign(signatureAlgorithm, Buffer.from(octets))).toString('base64');
  return `${octets}&Signature=${encodeURIComponent(signature)}`;
}
