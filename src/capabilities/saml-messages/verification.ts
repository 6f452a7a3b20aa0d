// Verifies XML signatures. The key is always the configured one, never the message's KeyInfo. Verified content is read
// from the signed bytes and never from the message around them, against signature wrapping. Who signed is verified
// first: the content of a stranger's message is not canonicalized.
// docs/understand/decisions/saml.md#verified-content-is-read-from-the-signed-bytes-themselves
import { createHash, createVerify } from 'node:crypto';
import type { Element } from '@xmldom/xmldom';
import { canonical } from './canonical.ts';
import { childElements, parseDom, plain } from './dom.ts';
import { NS } from './names.ts';
import {
  allowedAlgorithm,
  allowedDigest,
  type DigestAlgorithm,
  ENVELOPED,
  EXCLUSIVE_C14N,
  HASH,
  type SignatureAlgorithm,
  type Verifier,
  wrongSignature,
} from './signature.ts';
import { attribute, badMessage, childOf, descendantsOf, isNamed, textOf, type XmlElement } from './xml.ts';

/** Which element of a message is signed: its root, or the child element of the root at an index. */
export type SignedPlace = 'root' | number;

/** A usual SignedInfo has six. */
const MAX_ELEMENTS_IN_SIGNED_INFO = 12;
const MAX_PREFIXES = 32;

/**
 * Verifies the signature of an element, which is a child of that element.
 * @param text a measured message.
 * @returns the root of the signed content; read nothing else from then on.
 * @throws AuthError 400 when it is missing, invalid, or does not cover that element.
 */
export function verifySigned(text: string, place: SignedPlace, verifier: Verifier): XmlElement {
  const root = parseDom(text);
  const element = place === 'root' ? root : childElements(root)[place];
  if (element === undefined) throw wrongSignature();
  const unverified = plain(element);
  const described = childOf(unverified, NS.signature, 'Signature');
  if (described === undefined) throw badMessage('The SAML message must be signed.');
  const form = formOf(described, attribute(unverified, 'ID') ?? '', verifier);
  refuseSecondId(plain(root), form.id);
  const content = signedContent(element, form, verifier);
  const isWhole =
    isNamed(content, unverified.namespaceURI, unverified.localName) && attribute(content, 'ID') === form.id;
  if (!isWhole) throw wrongSignature();
  return content;
}

function signedContent(element: Element, form: SignatureForm, verifier: Verifier): XmlElement {
  const signature = childElements(element).find(
    ({ namespaceURI, localName }) => namespaceURI === NS.signature && localName === 'Signature',
  );
  const [signedInfo] = signature === undefined ? [] : childElements(signature);
  if (signature === undefined || signedInfo === undefined) throw wrongSignature();
  const isFromSender = isSignedBy(
    verifier,
    form.algorithm,
    Buffer.from(canonicalOrRefused(signedInfo, form.infoPrefixes)),
    form.value,
  );
  if (!isFromSender) throw wrongSignature();
  element.removeChild(signature);
  const text = canonicalOrRefused(element, form.contentPrefixes);
  const digest = createHash(form.digestAlgorithm).update(text).digest();
  if (!digest.equals(Buffer.from(form.digest, 'base64'))) throw wrongSignature();
  return plain(parseDom(text));
}

/** @param algorithm one that {@link allowedAlgorithm} has returned. */
export function isSignedBy(
  { publicKeys }: Verifier,
  algorithm: SignatureAlgorithm,
  octets: Uint8Array,
  signature: string,
): boolean {
  return publicKeys.some((key) =>
    createVerify(HASH[algorithm]).update(octets).verify(key, signature, 'base64'),
  );
}

/** {@link canonical}. @throws AuthError 400 */
function canonicalOrRefused(element: Element, prefixes: readonly string[]): string {
  try {
    return canonical(element, prefixes);
  } catch (thrown) {
    throw wrongSignature(thrown);
  }
}

/** Refuses a message in which another element has the ID of the signed one (a sign of signature wrapping). */
function refuseSecondId(root: XmlElement, id: string): void {
  const withId = [root, ...descendantsOf(root)].filter(({ attributes }) =>
    attributes.some(([name, value]) => /^id$/i.test(name) && value === id),
  );
  if (withId.length !== 1) throw wrongSignature();
}

interface SignatureForm {
  /** Of the signed element. */
  id: string;
  algorithm: SignatureAlgorithm;
  /** The signature, base64. */
  value: string;
  digestAlgorithm: DigestAlgorithm;
  /** Base64. */
  digest: string;
  infoPrefixes: string[];
  contentPrefixes: string[];
}

/** Reads a signature (SAML Core §5.4): one reference, to the signed element by its ID, with the two transforms. */
function formOf(signature: XmlElement, id: string, verifier: Verifier): SignatureForm {
  const [info, value, keyInfo, ...rest] = signature.children;
  const isSignature =
    isDsig(info, 'SignedInfo') &&
    descendantsOf(info).length <= MAX_ELEMENTS_IN_SIGNED_INFO &&
    isDsig(value, 'SignatureValue') &&
    value.children.length === 0 &&
    (keyInfo === undefined || isDsig(keyInfo, 'KeyInfo')) &&
    rest.length === 0;
  if (!isSignature) throw wrongSignature();
  const [c14n, method, reference, ...others] = info.children;
  const isInfo =
    isDsig(c14n, 'CanonicalizationMethod') &&
    attribute(c14n, 'Algorithm') === EXCLUSIVE_C14N &&
    isDsig(method, 'SignatureMethod') &&
    isDsig(reference, 'Reference') &&
    others.length === 0;
  if (!isInfo) throw wrongSignature();
  const referenced = readReference(reference, id, verifier);
  return {
    ...referenced,
    id,
    algorithm: allowedAlgorithm(attribute(method, 'Algorithm') ?? '', verifier),
    value: textOf(value),
    infoPrefixes: inclusivePrefixes(c14n),
  };
}

function readReference(
  reference: XmlElement,
  id: string,
  verifier: Verifier,
): Pick<SignatureForm, 'digestAlgorithm' | 'digest' | 'contentPrefixes'> {
  const [transforms, method, value, ...rest] = reference.children;
  const isReference =
    id !== '' &&
    attribute(reference, 'URI') === `#${id}` &&
    isDsig(transforms, 'Transforms') &&
    isDsig(method, 'DigestMethod') &&
    isDsig(value, 'DigestValue') &&
    rest.length === 0;
  if (!isReference) throw wrongSignature();
  const [first, second, ...further] = transforms.children;
  const isTransforms =
    isDsig(first, 'Transform') &&
    attribute(first, 'Algorithm') === ENVELOPED &&
    isDsig(second, 'Transform') &&
    attribute(second, 'Algorithm') === EXCLUSIVE_C14N &&
    further.length === 0;
  if (!isTransforms) throw wrongSignature();
  return {
    digestAlgorithm: allowedDigest(attribute(method, 'Algorithm') ?? '', verifier),
    digest: textOf(value),
    contentPrefixes: inclusivePrefixes(second),
  };
}

/** Returns the prefixes that are declared where they are not used, too (Exclusive XML Canonicalization §4). */
function inclusivePrefixes(method: XmlElement): string[] {
  const list = childOf(method, EXCLUSIVE_C14N, 'InclusiveNamespaces');
  const prefixes = (list && attribute(list, 'PrefixList'))?.split(/\s/).filter((one) => one !== '') ?? [];
  if (prefixes.length > MAX_PREFIXES) throw wrongSignature();
  return prefixes;
}

function isDsig(element: XmlElement | undefined, name: string): element is XmlElement {
  return element !== undefined && isNamed(element, NS.signature, name);
}
