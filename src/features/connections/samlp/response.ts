// Reads a Response (SAML Core §3.3.3, Profiles §4.1.4). An assertion is read from the bytes that the signature covers, never
// from the message around them, so that no other element can take its place (signature wrapping).
import type { KeyObject } from 'node:crypto';
import { postedMessage } from '../../../capabilities/saml-messages/bindings.ts';
import { decryptAssertion, unreadable } from '../../../capabilities/saml-messages/decryption.ts';
import { NS, STATUS } from '../../../capabilities/saml-messages/names.ts';
import type { XmlReader } from '../../../capabilities/saml-messages/reader.ts';
import { issuerOf, readEnvelope } from '../../../capabilities/saml-messages/saml-message.ts';
import { LARGE } from '../../../capabilities/saml-messages/scan.ts';
import type { Verifier } from '../../../capabilities/saml-messages/signature.ts';
import {
  attribute,
  badMessage,
  childOf,
  descendantsOf,
  isNamed,
  textOf,
  type XmlElement,
} from '../../../capabilities/saml-messages/xml.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { upstreamFault } from '../redirect.ts';

/** What a Response is checked against. */
interface ExpectedResponse {
  xml: XmlReader;
  /** The URL at which we received it. */
  destination: string;
  /** The ID of the request that it must answer; undefined for an unsolicited one. */
  inResponseTo: string | undefined;
  verifier: Verifier;
  /** Returns our keys, for any of which an assertion may be encrypted. */
  keys: () => Promise<readonly KeyObject[]>;
  /** Whether an encryption algorithm is accepted (XML Encryption 1.1 §5.2). */
  accepts(algorithm: string): boolean;
  /** The time of day, which is compared with the provider's. */
  clock: Clock;
}

/**
 * @param encoded the form field SAMLResponse, base64.
 * @returns its assertion, and the Issuer of the Response (empty if it has none).
 * @throws AuthError if it is not a Response, is not signed, does not have exactly one assertion, or its status is not
 *   success.
 */
export async function verifyResponse(
  encoded: string,
  expected: ExpectedResponse,
): Promise<{ assertion: XmlElement; issuer: string }> {
  const text = postedMessage(encoded, 'response', LARGE);
  const { xml, verifier, destination, clock } = expected;
  const message = await xml.open(text, LARGE);
  const { root } = message;
  const isSigned = childOf(root, NS.signature, 'Signature') !== undefined;
  const envelopeOf = (element: XmlElement) =>
    readEnvelope(element, { name: 'Response', destination, destinationRequired: isSigned, clock });
  // What is not meant for this server is refused before a signature takes any time.
  envelopeOf(root);
  const response = isSigned ? await message.verify('root', verifier) : root;
  const envelope = envelopeOf(response);
  // The status may be unsigned: a forged one can make a login fail, but not succeed.
  refuseStatus(response);
  if (envelope.inResponseTo !== expected.inResponseTo) {
    throw badMessage('The Response answers another request, or none.');
  }
  const found = onlyAssertion(response);
  if (found.localName === 'EncryptedAssertion') {
    return { assertion: await decryptVerified(found, isSigned, expected), issuer: envelope.issuer };
  }
  const place = root.children.indexOf(found);
  const assertion = isSigned ? found : await message.verify(place, verifier);
  return { assertion, issuer: envelope.issuer };
}

/** Returns the only assertion, a child of the Response. @throws AuthError 400 if there is none, several, or one elsewhere. */
function onlyAssertion(response: XmlElement): XmlElement {
  const all = ['Assertion', 'EncryptedAssertion'].flatMap((name) =>
    descendantsOf(response).filter((one) => isNamed(one, NS.assertion, name)),
  );
  const [found, another] = all;
  if (found === undefined || another !== undefined || !response.children.includes(found)) {
    throw badMessage('The Response must have one assertion.');
  }
  return found;
}

/**
 * Decrypts an assertion. Every fault gives the same error, so that an attacker who tries ciphertexts learns nothing (XML
 * Encryption 1.1 §6.2).
 */
async function decryptVerified(
  encrypted: XmlElement,
  isSigned: boolean,
  { keys, accepts, verifier, xml }: ExpectedResponse,
): Promise<XmlElement> {
  const text = decryptAssertion(encrypted, await keys(), accepts);
  try {
    const message = await xml.open(text, LARGE);
    const assertion = message.root;
    if (!isNamed(assertion, NS.assertion, 'Assertion')) throw badMessage('There is no assertion in it.');
    return isSigned ? assertion : await message.verify('root', verifier);
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

/** Second-level status codes that mean that the user or the provider refused the login. All others are configuration faults. */
const DENIALS = new Set<string>([
  STATUS.authnFailed,
  STATUS.requestDenied,
  STATUS.noPassive,
  STATUS.unknownPrincipal,
  STATUS.noAuthnContext,
]);

/** Rejects a Response whose status is not success. @throws AuthError by {@link upstreamFault}. */
function refuseStatus(response: XmlElement): void {
  const status = childOf(response, NS.protocol, 'Status');
  const code = status && childOf(status, NS.protocol, 'StatusCode');
  const value = code && attribute(code, 'Value');
  if (status === undefined || code === undefined || value === undefined) {
    throw badMessage('The Response has no status.');
  }
  if (value === STATUS.success) return;
  const secondLevel = childOf(code, NS.protocol, 'StatusCode');
  const detail = (secondLevel && attribute(secondLevel, 'Value')) ?? value;
  const message = childOf(status, NS.protocol, 'StatusMessage');
  const text = message === undefined ? '' : textOf(message).trim();
  const description = text === '' ? `The identity provider answered ${detail.split(':').at(-1)}` : text;
  throw upstreamFault(DENIALS.has(detail) ? 'access_denied' : 'invalid_request', description);
}

/**
 * Checks the Issuer of an assertion.
 * @param responseIssuer that of the Response, empty if it has none; both must be the same.
 * @param knownIssuer the provider's entity ID, if known.
 * @throws AuthError 400 for another issuer.
 */
export function checkIssuer(
  assertion: XmlElement,
  responseIssuer: string,
  knownIssuer: string | undefined,
): void {
  const issuer = issuerOf(assertion);
  const isConsistent = issuer !== '' && (responseIssuer === '' || responseIssuer === issuer);
  if (!isConsistent || (knownIssuer !== undefined && issuer !== knownIssuer)) {
    throw badMessage('The Issuer of the assertion is another identity provider.');
  }
}
