// Signs messages, and says which algorithms are accepted.
import type { KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import type { SignatureAlgorithm as SignatureAlgorithmOfLibrary } from 'xml-crypto';
import { badMessage } from './xml.ts';

/** Loaded with the first signature and not at each start: it is large, and most tenants do not use SAML. */
const signatures = () => createRequire(import.meta.url)('xml-crypto') as typeof import('xml-crypto');

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

/** Returns the error, 400, for an invalid signature. @param cause what the verification threw, for the log. */
export function wrongSignature(cause?: unknown) {
  return badMessage('The signature of the SAML message is not valid.', cause);
}

/** Returns the signature algorithm of a URI. There is neither "none" nor HMAC. @throws AuthError 400 for another one. */
export function allowedAlgorithm(uri: string, verifier: Verifier): SignatureAlgorithm {
  const name = nameOf(SIGNATURE_URI, uri);
  if (name !== undefined && (name !== 'rsa-sha1' || verifier.allowSha1)) return name;
  throw badMessage('The signature algorithm of the SAML message is not accepted.');
}

/** Returns the digest algorithm of a URI. @throws AuthError 400 for one that is not accepted. */
export function allowedDigest(uri: string, verifier: Verifier): DigestAlgorithm {
  const name = nameOf(DIGEST_URI, uri);
  if (name !== undefined && (name !== 'sha1' || verifier.allowSha1)) return name;
  throw badMessage('The digest algorithm of the SAML message is not accepted.');
}

function nameOf<Name extends string>(uris: Readonly<Record<Name, string>>, uri: string): Name | undefined {
  return (Object.keys(uris) as Name[]).find((name) => uris[name] === uri);
}
