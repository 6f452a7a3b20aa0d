// XML signatures and signed queries. The verification key is always the configured one, never the message's
// KeyInfo. Verified content is read from the signed bytes and never from the message around them, against signature
// wrapping.
import type { KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Element } from '@xmldom/xmldom';
import type { SignatureAlgorithm as SignatureAlgorithmOfLibrary } from 'xml-crypto';
import { NS } from './names.ts';
import { attribute, badMessage, childOf, elementsOf, isNamed, type MessageLimits, parseXml } from './xml.ts';

/** Loaded with the first signature and not at each start: it is large, and most tenants do not use SAML. */
const signatures = () => createRequire(import.meta.url)('xml-crypto') as typeof import('xml-crypto');

const EXCLUSIVE_C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';

const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';

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
 * Signs the element with an ID. The signature follows its Issuer, as the schemas require.
 * @throws what `signer` throws; Error when there is no such element.
 */
export async function signElement(markup: string, id: string, signer: Signer): Promise<string> {
  const signedXml = new (signatures().SignedXml)({
    // The library requires a key, but only passes it to the algorithm, which is ours and ignores it.
    privateKey: 'elsewhere',
    publicCert: `-----BEGIN CERTIFICATE-----\n${signer.certificate}\n-----END CERTIFICATE-----`,
    signatureAlgorithm: SIGNATURE_URI[signer.signatureAlgorithm],
    canonicalizationAlgorithm: EXCLUSIVE_C14N,
  });
  const element = `//*[@ID='${id}']`;
  signedXml.addReference({
    xpath: element,
    transforms: [ENVELOPED, EXCLUSIVE_C14N],
    digestAlgorithm: DIGEST_URI[signer.digestAlgorithm],
  });
  const issuer = `${element}/*[local-name(.)='Issuer']`;
  signedXml.SignatureAlgorithms[SIGNATURE_URI[signer.signatureAlgorithm]] = algorithmOf(signer);
  await new Promise<void>((resolve, reject) => {
    signedXml.computeSignature(
      markup,
      { prefix: 'ds', location: { reference: issuer, action: 'after' } },
      (fault) => (fault ? reject(fault) : resolve()),
    );
  });
  return signedXml.getSignedXml();
}

/** Returns a signer as a class, as the library expects it. */
function algorithmOf({ sign, signatureAlgorithm }: Signer): new () => SignatureAlgorithmOfLibrary {
  const getSignature = (
    info: unknown,
    _key: unknown,
    done: (fault: Error | null, value?: string) => void,
  ) => {
    sign(signatureAlgorithm, Buffer.from(String(info))).then(
      (signature) => done(null, Buffer.from(signature).toString('base64')),
      (thrown: Error) => done(thrown),
    );
  };
  // The library's types do not allow an algorithm that is only asynchronous, and expect a class.
  const algorithm = {
    getAlgorithmName: () => SIGNATURE_URI[signatureAlgorithm],
    getSignature,
    verifySignature: () => false,
  } as unknown as SignatureAlgorithmOfLibrary;
  return function signatureAlgorithmOfLibrary() {
    return algorithm;
  } as unknown as new () => SignatureAlgorithmOfLibrary;
}

/**
 * Verifies the only signature in a message.
 * @returns the root of the signed content; read nothing else from then on.
 * @throws AuthError 400 when it is missing, invalid, or does not cover the whole message.
 */
export function verifyEnveloped(text: string, root: Element, verifier: Verifier): Element {
  const content = verifyElement(text, root, verifier);
  if (root.getElementsByTagNameNS(NS.signature, 'Signature').length !== 1) throw wrongSignature();
  return content;
}

/**
 * Verifies the signature of an element, which is a child of that element.
 * @param text the whole message.
 * @returns the root of the signed content; read nothing else from then on.
 * @throws AuthError 400 when it is missing, invalid, or does not cover that element.
 */
export function verifyElement(
  text: string,
  element: Element,
  verifier: Verifier,
  limits?: MessageLimits,
): Element {
  const signature = childOf(element, NS.signature, 'Signature');
  if (signature === undefined) throw badMessage('The SAML message must be signed.');
  const algorithm = checkShape(signature, attribute(element, 'ID') ?? '', verifier);
  const signedContent = signedContentOf(signature, text, algorithm, verifier);
  const content = parseXml(signedContent, limits);
  const isWhole =
    isNamed(content, element.namespaceURI ?? '', element.localName ?? '') &&
    attribute(content, 'ID') === attribute(element, 'ID');
  if (!isWhole) throw wrongSignature();
  return content;
}

/** Returns what a signature covers, if one of the keys verifies it. @throws AuthError 400 when none does. */
function signedContentOf(
  signature: Element,
  text: string,
  algorithm: string,
  { publicKeys }: Verifier,
): string {
  let cause: unknown;
  for (const publicCert of publicKeys) {
    const signedXml = new (signatures().SignedXml)({ publicCert, signatureAlgorithm: algorithm });
    // The library must accept no other algorithm than the one that was checked.
    for (const name of Object.keys(signedXml.SignatureAlgorithms)) {
      if (name !== algorithm) delete signedXml.SignatureAlgorithms[name];
    }
    try {
      signedXml.loadSignature(signature.toString());
      const isValid = signedXml.checkSignature(text);
      const [signedContent, another] = signedXml.getSignedReferences();
      if (isValid && signedContent !== undefined && another === undefined) return signedContent;
    } catch (thrown) {
      cause = thrown;
    }
  }
  throw wrongSignature(cause);
}

/** Returns the error, 400, for an invalid signature. @param cause what the verification threw, for the log. */
export function wrongSignature(cause?: unknown) {
  return badMessage('The signature of the SAML message is not valid.', cause);
}

/**
 * Checks the form of a signature (SAML Core §5.4): one reference, to the root by its ID, with the two transforms.
 * @returns the URI of its algorithm.
 */
function checkShape(signature: Element, id: string, verifier: Verifier): string {
  const [info, value, keyInfo, ...rest] = elementsOf(signature);
  const isSignature =
    isDsig(info, 'SignedInfo') &&
    isDsig(value, 'SignatureValue') &&
    elementsOf(value).length === 0 &&
    (keyInfo === undefined || isDsig(keyInfo, 'KeyInfo')) &&
    rest.length === 0;
  if (!isSignature) throw wrongSignature();
  const [c14n, method, reference, ...others] = elementsOf(info);
  const isInfo =
    isDsig(c14n, 'CanonicalizationMethod') &&
    attribute(c14n, 'Algorithm') === EXCLUSIVE_C14N &&
    isDsig(method, 'SignatureMethod') &&
    isDsig(reference, 'Reference') &&
    others.length === 0;
  if (!isInfo) throw wrongSignature();
  checkReference(reference, id, verifier);
  return allowedAlgorithm(attribute(method, 'Algorithm') ?? '', verifier);
}

function checkReference(reference: Element, id: string, verifier: Verifier): void {
  const [transforms, digest, value, ...rest] = elementsOf(reference);
  const isReference =
    id !== '' &&
    attribute(reference, 'URI') === `#${id}` &&
    isDsig(transforms, 'Transforms') &&
    isDsig(digest, 'DigestMethod') &&
    isDsig(value, 'DigestValue') &&
    rest.length === 0;
  if (!isReference) throw wrongSignature();
  const [first, second, ...further] = elementsOf(transforms).map((one) => attribute(one, 'Algorithm'));
  if (first !== ENVELOPED || second !== EXCLUSIVE_C14N || further.length > 0) throw wrongSignature();
  const algorithm = attribute(digest, 'Algorithm');
  const isAllowed =
    algorithm === DIGEST_URI.sha256 ||
    algorithm === DIGEST_URI.sha512 ||
    (algorithm === DIGEST_URI.sha1 && verifier.allowSha1);
  if (!isAllowed) throw badMessage('The digest algorithm of the SAML message is not accepted.');
}

function isDsig(element: Element | undefined, name: string): element is Element {
  return element !== undefined && isNamed(element, NS.signature, name);
}

/**
 * Checks a signature algorithm against the allow-list, which has neither "none" nor HMAC.
 * @returns it.
 * @throws AuthError 400
 */
export function allowedAlgorithm(uri: string, { allowSha1 }: Verifier): string {
  const isAllowed =
    uri === SIGNATURE_URI['rsa-sha256'] ||
    uri === SIGNATURE_URI['rsa-sha512'] ||
    (uri === SIGNATURE_URI['rsa-sha1'] && allowSha1);
  if (!isAllowed) throw badMessage('The signature algorithm of the SAML message is not accepted.');
  return uri;
}
