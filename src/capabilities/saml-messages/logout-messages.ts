// Reads and writes LogoutRequest and LogoutResponse (SAML Core §3.7).
import { epochSeconds } from '../../runtime/clock.ts';
import { type NameId, nameIdMarkup } from './name-id.ts';
import { NS, STATUS } from './names.ts';
import {
  type Envelope,
  type ExpectedMessage,
  epochOf,
  instantOf,
  readEnvelope,
  SKEW,
} from './saml-message.ts';
import { attribute, badMessage, childOf, isNamed, textOf, type XmlElement, xml } from './xml.ts';

/** Lifetime of our requests in seconds. */
const LIFETIME = 300;

/** A service provider's request to end sessions. */
export interface LogoutRequest extends Envelope {
  nameId: string;
  format: string | undefined;
  /** Empty: all sessions of the user at that service provider. */
  sessionIndexes: string[];
}

/** @throws AuthError 400 when it is malformed, has no NameID, or has expired. */
export function readLogoutRequest(root: XmlElement, expected: Omit<ExpectedMessage, 'name'>): LogoutRequest {
  const envelope = readEnvelope(root, { ...expected, name: 'LogoutRequest' });
  const until = attribute(root, 'NotOnOrAfter');
  const end = epochOf(until);
  if (until !== undefined && (end === undefined || epochSeconds(expected.clock) >= end + SKEW)) {
    throw badMessage('The NotOnOrAfter of the LogoutRequest has passed.');
  }
  const nameId = childOf(root, NS.assertion, 'NameID');
  if (nameId === undefined) throw badMessage('The LogoutRequest has no NameID.');
  return {
    ...envelope,
    nameId: textOf(nameId),
    format: attribute(nameId, 'Format'),
    sessionIndexes: root.children.filter((child) => isNamed(child, NS.protocol, 'SessionIndex')).map(textOf),
  };
}

/** Reads a LogoutResponse; `isSuccess`: the service provider ended its session. @throws AuthError 400 when malformed. */
export function readLogoutResponse(
  root: XmlElement,
  expected: Omit<ExpectedMessage, 'name'>,
): Envelope & { isSuccess: boolean } {
  const envelope = readEnvelope(root, { ...expected, name: 'LogoutResponse' });
  const status = childOf(root, NS.protocol, 'Status');
  const code = status && childOf(status, NS.protocol, 'StatusCode');
  return { ...envelope, isSuccess: code !== undefined && attribute(code, 'Value') === STATUS.success };
}

/** Returns our LogoutRequest, unsigned. @param sessionIndex undefined for all sessions of the user. */
export function logoutRequest(
  frame: { id: string; issuer: string; now: number; destination: string },
  nameId: NameId,
  sessionIndex: string | undefined,
): string {
  const { markup } = xml(
    'samlp:LogoutRequest',
    {
      'xmlns:samlp': NS.protocol,
      'xmlns:saml': NS.assertion,
      ID: frame.id,
      Version: '2.0',
      IssueInstant: instantOf(frame.now),
      Destination: frame.destination,
      NotOnOrAfter: instantOf(frame.now + LIFETIME),
    },
    xml('saml:Issuer', {}, frame.issuer),
    nameIdMarkup(nameId),
    sessionIndex === undefined ? undefined : xml('samlp:SessionIndex', {}, sessionIndex),
  );
  return markup;
}
