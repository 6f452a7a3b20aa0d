// Signs messages, and says which algorithms are accepted.
import { createHash, type KeyObject } from 'node:crypto';
import { canonical } from './canonical.ts';
import { parseDom } from './dom.ts';
import { NS } from './names.ts';
import { endOfChild } from './scan.ts';
import { badMessage, type Markup, xml } from './xml.ts';

export const EXCLUSIVE_C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';

export const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';

export type SignatureAlgorithm = 'rsa-sha1' | 'rsa-sha256' | 'rsa-sha512';

export type DigestAlgorithm = 'sha1' | 'sha256' | 'sha512';

export const SIGNATURE_URI: Record<SignatureAlgorithm, string> = {
  'rsa-sha1': 'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
  'rsa-sha256': 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
  'rsa-sha512': 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
};

const DIGEST_URI: Record<DigestAlgorithm, string> = {
  sha1: 'http://www.w3.org/2000/09/xmldsig#sha1',
  sha256: 'http://www.w3.org/2001/04/xmlenc#sha256',
  sha512: 'http://www.w3.org/2001/04/xmlenc#sha512',
};

export const HASH: Record<SignatureAlgorithm, string> = {
  'rsa-sha1': 'RSA-SHA1',
  'rsa-sha256': 'RSA-SHA256',
  'rsa-sha512': 'RSA-SHA512',
};

/** A key to sign with. */
export interface Signer {
  /** Signs octets with the key, which may be in another service. */
  sign(algorithm: SignatureAlgorithm, octets: Uint8Array): Promise<Uint8Array>;
  /** Base64 of the DER. */
  certificate: string;
  signatureAlgorithm: SignatureAlgorithm;
  digestAlgorithm: DigestAlgorithm;
}

/** How signatures of the other side are verified. */
export interface Verifier {
  /** The accepted keys; several while the other side changes its key. */
  publicKeys: readonly KeyObject[];
  /**
   * Whether SHA-1 is accepted, which only the configuration allows: whoever chooses the signed content can make
   * collisions.
   */
  allowSha1: boolean;
}

/**
 * Signs the root of a message of ours. The signature follows its Issuer, as the schemas require.
 * @param id the ID of the root.
 * @throws what `signer` throws; Error when the root has another ID, or no Issuer.
 */
export async function signRoot(markup: string, id: string, signer: Signer): Promise<string> {
  const root = parseDom(markup);
  const place = endOfChild(markup, 'Issuer');
  if (root.getAttribute('ID') !== id || place === undefined) throw new Error('the message cannot be signed');
  const digest = createHash(signer.digestAlgorithm).update(canonical(root)).digest('base64');
  // Its canonical form declares the namespace, which the element around it does in the message.
  const octets = Buffer.from(signedInfo(id, digest, signer, { 'xmlns:ds': NS.signature }).markup);
  const value = await signer.sign(signer.signatureAlgorithm, octets);
  const signature = xml(
    'ds:Signature',
    { 'xmlns:ds': NS.signature },
    signedInfo(id, digest, signer),
    xml('ds:SignatureValue', {}, Buffer.from(value).toString('base64')),
    xml('ds:KeyInfo', {}, xml('ds:X509Data', {}, xml('ds:X509Certificate', {}, signer.certificate))),
  );
  return `${markup.slice(0, place)}${signature.markup}${markup.slice(place)}`;
}

/** Returns a SignedInfo (XML Signature §4.4). It has no character that its canonical form would write in another way. */
function signedInfo(
  id: string,
  digest: string,
  signer: Signer,
  declared: Record<string, string> = {},
): Markup {
  const by = (name: string, Algorithm: string, ...content: Markup[]) => xml(name, { Algorithm }, ...content);
  return xml(
    'ds:SignedInfo',
    declared,
    by('ds:CanonicalizationMethod', EXCLUSIVE_C14N),
    by('ds:SignatureMethod', SIGNATURE_URI[signer.signatureAlgorithm]),
    xml(
      'ds:Reference',
      { URI: `#${id}` },
      xml('ds:Transforms', {}, by('ds:Transform', ENVELOPED), by('ds:Transform', EXCLUSIVE_C14N)),
      by('ds:DigestMethod', DIGEST_URI[signer.digestAlgorithm]),
      xml('ds:DigestValue', {}, digest),
    ),
  );
}

/** Returns the error, 400, for an invalid signature. @param cause what the verification threw, for the log. */
export function wrongSignature(cause?: unknown) {
  return badMessage('The signature of the SAML message is not valid.', cause);
}

// docs/understand/decisions/saml.md#sha-256-is-the-default-of-signatures
/** Returns the signature algorithm of a URI. There is neither "none" nor HMAC. @throws AuthError 400 for another one. */
export function allowedAlgorithm(uri: string, verifier: Verifier): SignatureAlgorithm {
  const name = nameOf(SIGNATURE_URI, uri);
  if (name !== undefined && (name !== 'rsa-sha1' || verifier.allowSha1)) return name;
  throw badMessage('The signature algorithm of the SAML message is not accepted.');
}

/** @throws AuthError 400 for one that is not accepted. */
export function allowedDigest(uri: string, verifier: Verifier): DigestAlgorithm {
  const name = nameOf(DIGEST_URI, uri);
  if (name !== undefined && (name !== 'sha1' || verifier.allowSha1)) return name;
  throw badMessage('The digest algorithm of the SAML message is not accepted.');
}

function nameOf<Name extends string>(uris: Readonly<Record<Name, string>>, uri: string): Name | undefined {
  return (Object.keys(uris) as Name[]).find((name) => uris[name] === uri);
}
