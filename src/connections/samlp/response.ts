// Reads a Response (SAML Core §3.3.3, Profiles §4.1.4): what is read of an assertion are the bytes that are signed, never
// the message around them, so that no other element can be put in their place (signature wrapping).
import type { KeyObject } from 'node:crypto';
import type { Element } from '@xmldom/xmldom';
import type { Clock } from '../../runtime/clock.ts';
import { postedMessage } from '../../saml-messages/bindings.ts';
import { decryptAssertion, unreadable } from '../../saml-messages/decryption.ts';
import { issuerOf, readEnvelope } from '../../saml-messages/message.ts';
import { NS, STATUS } from '../../saml-messages/names.ts';
import { type Verifier, verifyElement } from '../../saml-messages/signature.ts';
import {
  attribute,
  badMessage,
  childOf,
  elementsOf,
  isNamed,
  LARGE,
  parseXml,
  textOf,
} from '../../saml-messages/xml.ts';
import { upstreamFault } from '../redirect.ts';

/** What a Response must be. */
interface ExpectedResponse {
  /** Our address that received it. */
  destination: string;
  /** The ID of the request that it must answer; undefined for one that nobody asked for. */
  inResponseTo: string | undefined;
  verifier: Verifier;
  /** Ours, each of which an assertion may be encrypted for. */
  keys: () => Promise<readonly KeyObject[]>;
  /** Whether it may be encrypted by an algorithm (XML Encryption 1.1 §5.2). */
  accepts(algorithm: string): boolean;
  /** The wall clock: it is compared with the sender's. */
  clock: Clock;
}

/**
 * The verified assertion of a Response.
 * @param encoded the form's field.
 * @returns the root of the signed content, and the Response's Issuer (empty where it names none).
 * @throws AuthError for a Response that is none, is not signed, has not one assertion, or says that nobody logged in.
 */
export async function assertionOf(
  encoded: string,
  expected: ExpectedResponse,
): Promise<{ assertion: Element; issuer: string }> {
  const text = postedMessage(encoded, 'response', LARGE).toString('utf8');
  const root = parseXml(text, LARGE);
  if (!isNamed(root, NS.protocol, 'Response')) throw badMessage('The SAML message is no Response.');
  const isSigned = childOf(root, NS.signature, 'Signature') !== undefined;
  const response = isSigned ? verifyElement(text, root, expected.verifier, LARGE) : root;
  const { destination, clock } = expected;
  const envelope = readEnvelope(response, {
    name: 'Response',
    destination,
    destinationRequired: isSigned,
    clock,
  });
  // A status without a signature is believed: it lets nobody in.
  refuseStatus(response);
  if (envelope.inResponseTo !== expected.inResponseTo) {
    throw badMessage('The Response answers another request, or none.');
  }
  const found = onlyAssertion(response);
  if (found.localName === 'EncryptedAssertion') {
    return { assertion: await decrypted(found, isSigned, expected), issuer: envelope.issuer };
  }
  const assertion = isSigned ? found : verifyElement(text, found, expected.verifier, LARGE);
  return { assertion, issuer: envelope.issuer };
}

/** The one assertion, a child of the Response. @throws AuthError 400 for none, several, or one anywhere else. */
function onlyAssertion(response: Element): Element {
  const all = ['Assertion', 'EncryptedAssertion'].flatMap((name) =>
    Array.from(response.getElementsByTagNameNS(NS.assertion, name)),
  );
  const [found, another] = all;
  if (found === undefined || another !== undefined || !elementsOf(response).includes(found)) {
    throw badMessage('The Response must have one assertion.');
  }
  return found;
}

/** What is wrong is never said: the answer would help who tries ciphertexts (XML Encryption 1.1 §6.2). */
async function decrypted(
  encrypted: Element,
  isSigned: boolean,
  { keys, accepts, verifier }: ExpectedResponse,
): Promise<Element> {
  const text = decryptAssertion(encrypted, await keys(), accepts);
  try {
    const assertion = parseXml(text, LARGE);
    if (!isNamed(assertion, NS.assertion, 'Assertion')) throw badMessage('There is no assertion in it.');
    return isSigned ? assertion : verifyElement(text, assertion, verifier, LARGE);
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

/** Second-level codes that say that somebody did not want it, or could not. */
const DENIALS = new Set<string>([
  STATUS.authnFailed,
  STATUS.requestDenied,
  STATUS.noPassive,
  STATUS.unknownPrincipal,
  STATUS.noAuthnContext,
]);

/** @throws AuthError by {@link upstreamFault} for a Response without a login. */
function refuseStatus(response: Element): void {
  const status = childOf(response, NS.protocol, 'Status');
  const code = status && childOf(status, NS.protocol, 'StatusCode');
  const value = code && attribute(code, 'Value');
  if (status === undefined || code === undefined || value === undefined) {
    throw badMessage('The Response has no status.');
  }
  if (value === STATUS.success) return;
  const below = childOf(code, NS.protocol, 'StatusCode');
  const detail = (below && attribute(below, 'Value')) ?? value;
  const message = childOf(status, NS.protocol, 'StatusMessage');
  const words = message === undefined ? '' : textOf(message).trim();
  const description = words === '' ? `The identity provider answered ${detail.split(':').at(-1)}` : words;
  throw upstreamFault(DENIALS.has(detail) ? 'access_denied' : 'invalid_request', description);
}

/** Who an assertion must be of. @throws AuthError 400 for one of somebody else. */
export function checkIssuer(assertion: Element, responseIssuer: string, known: string | undefined): void {
  const issuer = issuerOf(assertion);
  const isOne = issuer !== '' && (responseIssuer === '' || responseIssuer === issuer);
  if (!isOne || (known !== undefined && issuer !== known)) {
    throw badMessage('The Issuer of the assertion is another identity provider.');
  }
}
