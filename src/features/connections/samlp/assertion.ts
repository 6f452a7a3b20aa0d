// Checks that an assertion, whose signature is verified, is for this server, for this login, and valid now (SAML Profiles
// §4.1.4.3, Core §2.5), and reads it.

import { unspecified } from '../../../capabilities/saml-messages/name-id.ts';
import { NS } from '../../../capabilities/saml-messages/names.ts';
import { checkFresh, epochOf, SKEW } from '../../../capabilities/saml-messages/saml-message.ts';
import {
  attribute,
  badMessage,
  childOf,
  isNamed,
  textOf,
  type XmlElement,
} from '../../../capabilities/saml-messages/xml.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';

const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';

/** What an assertion is checked against. */
interface ExpectedAssertion {
  /** Our entity ID. */
  audience: string;
  /** The URL at which we received it. */
  recipient: string;
  /** The name of the connection. */
  connection: string;
  /** The ID of the request that it must answer; undefined for an unsolicited one. */
  inResponseTo: string | undefined;
  /** The time of day. */
  clock: Clock;
}

export interface AssertionContents {
  id: string;
  nameId: { value: string; format: string; qualifiers: Readonly<Record<string, string>> } | undefined;
  sessionIndex: string | undefined;
  /** The latest AuthnInstant, epoch seconds (Core §2.7.2). */
  authenticatedAt: number | undefined;
  /** Name to values, of which there is at least one. */
  attributes: ReadonlyMap<string, readonly string[]>;
}

/** Checks and reads an assertion. @throws AuthError 400 if it is not for this server, not for this login, or not valid now. */
export function readAssertion(assertion: XmlElement, expected: ExpectedAssertion): AssertionContents {
  if (attribute(assertion, 'Version') !== '2.0') throw badMessage('Only SAML 2.0 is spoken here.');
  const id = attribute(assertion, 'ID') ?? '';
  if (id === '' || id.length > 256) throw badMessage('The assertion has no proper ID.');
  // The replay check does not remember assertions for longer than they are accepted by this check.
  checkFresh(attribute(assertion, 'IssueInstant'), expected.clock);
  checkConditions(assertion, expected);
  const subject = childOf(assertion, NS.assertion, 'Subject');
  if (subject === undefined) throw badMessage('The assertion has no Subject.');
  checkConfirmation(subject, expected);
  const authentication = children(assertion, 'AuthnStatement');
  // Without an AuthnStatement, the assertion does not assert a login (Profiles §4.1.4.2).
  if (authentication.length === 0) throw badMessage('The assertion has no AuthnStatement.');
  return {
    id,
    nameId: nameIdOf(subject),
    sessionIndex: authentication
      .map((one) => attribute(one, 'SessionIndex'))
      .find((one) => one !== undefined),
    authenticatedAt: newest(authentication.map((one) => epochOf(attribute(one, 'AuthnInstant')))),
    attributes: attributesOf(assertion),
  };
}

function newest(instants: readonly (number | undefined)[]): number | undefined {
  const defined = instants.filter((one) => one !== undefined);
  return defined.length === 0 ? undefined : Math.max(...defined);
}

function children(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => isNamed(child, NS.assertion, name));
}

function checkConditions(assertion: XmlElement, { audience, clock }: ExpectedAssertion): void {
  const conditions = childOf(assertion, NS.assertion, 'Conditions');
  if (conditions === undefined) throw badMessage('The assertion has no Conditions.');
  checkPeriod(conditions, clock);
  const restrictions = children(conditions, 'AudienceRestriction');
  // Every restriction must be met; each is met by any one of its audiences (Core §2.5.1.4).
  const isForUs =
    restrictions.length > 0 &&
    restrictions.every((one) =>
      children(one, 'Audience').some((element) => textOf(element).trim() === audience),
    );
  if (!isForUs) throw badMessage('The assertion is for another audience.');
  const isKnown = conditions.children.every(
    ({ namespaceURI, localName }) =>
      namespaceURI === NS.assertion &&
      ['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction'].includes(localName ?? ''),
  );
  // With a condition that is not understood, the validity of the assertion is indeterminate (Core §2.5.1.1).
  if (!isKnown) throw badMessage('The assertion has a condition that is not known.');
}

/** @throws AuthError 400 outside that period. */
function checkPeriod(element: XmlElement, clock: Clock): void {
  const [from, until] = [attribute(element, 'NotBefore'), attribute(element, 'NotOnOrAfter')];
  const [start, end] = [epochOf(from), epochOf(until)];
  const now = epochSeconds(clock);
  if (from !== undefined && (start === undefined || now < start - SKEW)) {
    throw badMessage('The assertion is not valid yet.');
  }
  if (until !== undefined && (end === undefined || now >= end + SKEW)) {
    throw badMessage('The assertion has expired.');
  }
}

/** Checks that one bearer confirmation is valid, which is enough (Profiles §4.1.4.3). @throws AuthError 400. */
function checkConfirmation(subject: XmlElement, expected: ExpectedAssertion): void {
  const bearers = children(subject, 'SubjectConfirmation').filter(
    (one) => attribute(one, 'Method') === BEARER,
  );
  const faults: unknown[] = [];
  for (const one of bearers) {
    try {
      checkBearer(one, expected);
      return;
    } catch (thrown) {
      faults.push(thrown);
    }
  }
  throw faults[0] ?? badMessage('The assertion has no bearer confirmation.');
}

function checkBearer(confirmation: XmlElement, expected: ExpectedAssertion): void {
  const data = childOf(confirmation, NS.assertion, 'SubjectConfirmationData');
  if (data === undefined) throw badMessage('The assertion has no SubjectConfirmationData.');
  // NotOnOrAfter is required (Profiles §4.1.4.2).
  if (attribute(data, 'NotOnOrAfter') === undefined)
    throw badMessage('The assertion does not say when it ends.');
  checkPeriod(data, expected.clock);
  if (!isRecipient(attribute(data, 'Recipient'), expected))
    throw badMessage('The assertion is for another recipient.');
  if (attribute(data, 'InResponseTo') !== expected.inResponseTo) {
    throw badMessage('The assertion answers another request, or none.');
  }
}

/** Whether a Recipient is our URL. A connection in its query must be this one. */
function isRecipient(value: string | undefined, { recipient, connection }: ExpectedAssertion): boolean {
  const [received, ours] = [URL.parse(value ?? ''), new URL(recipient)];
  if (received === null || received.origin !== ours.origin || received.pathname !== ours.pathname)
    return false;
  const connectionName = received.searchParams.get('connection');
  return connectionName === null || connectionName === connection;
}

function nameIdOf(subject: XmlElement): AssertionContents['nameId'] {
  const nameId = childOf(subject, NS.assertion, 'NameID');
  const value = nameId === undefined ? '' : textOf(nameId).trim();
  if (nameId === undefined || value === '') return undefined;
  const qualifiers = ['NameQualifier', 'SPNameQualifier'].flatMap((name) => {
    const qualifier = attribute(nameId, name);
    return qualifier === undefined ? [] : [[name, qualifier] as const];
  });
  const format = attribute(nameId, 'Format') ?? unspecified.uri;
  return { value, format, qualifiers: Object.fromEntries(qualifiers) };
}

function attributesOf(assertion: XmlElement): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const all = children(assertion, 'AttributeStatement').flatMap((one) => children(one, 'Attribute'));
  for (const one of all) {
    const name = attribute(one, 'Name') ?? '';
    // Values that are elements are not supported.
    const values = children(one, 'AttributeValue')
      .filter((value) => value.children.length === 0)
      .map((value) => textOf(value).trim())
      .filter((value) => value !== '');
    if (name !== '' && values.length > 0) found.set(name, [...(found.get(name) ?? []), ...values]);
  }
  return found;
}
