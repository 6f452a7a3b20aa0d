// Messages that answer a request with a status (SAML Core §3.2.2).

import { NS } from './names.ts';
import { instantOf } from './saml-message.ts';
import { type Markup, xml } from './xml.ts';

/** Status code, second-level code, and a message for people (Core §3.2.2.1). */
export interface Status {
  code: string;
  detail?: string;
  message?: string;
}

export interface ResponseFrame {
  /** Our entity ID. */
  issuer: string;
  /** Epoch seconds. */
  now: number;
  inResponseTo: string | undefined;
  destination: string;
}

/** Returns a message of type StatusResponseType (SAML Core §3.2.2). */
export function statusResponse(
  name: 'samlp:Response' | 'samlp:LogoutResponse',
  { issuer, now, inResponseTo, destination }: ResponseFrame,
  id: string,
  { code, detail, message }: Status,
  content?: Markup,
): Markup {
  const secondLevel = detail === undefined ? undefined : xml('samlp:StatusCode', { Value: detail });
  return xml(
    name,
    {
      'xmlns:samlp': NS.protocol,
      'xmlns:saml': NS.assertion,
      ID: id,
      InResponseTo: inResponseTo,
      Version: '2.0',
      IssueInstant: instantOf(now),
      Destination: destination,
    },
    xml('saml:Issuer', {}, issuer),
    xml(
      'samlp:Status',
      {},
      xml('samlp:StatusCode', { Value: code }, secondLevel),
      message === undefined ? undefined : xml('samlp:StatusMessage', {}, message),
    ),
    content,
  );
}
