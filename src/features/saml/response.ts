// The Response to an AuthnRequest (SAML Core §3.3.3, Profiles §4.1.4.2).

import { type NameId, nameIdMarkup } from '../../capabilities/saml-messages/name-id.ts';
import { NS, STATUS } from '../../capabilities/saml-messages/names.ts';
import { instantOf, newId } from '../../capabilities/saml-messages/saml-message.ts';
import { encryptAssertion } from '../../capabilities/saml-messages/saml-messages-encryption.ts';
import { type Signer, signRoot } from '../../capabilities/saml-messages/signature.ts';
import {
  type ResponseFrame,
  type Status,
  statusResponse,
} from '../../capabilities/saml-messages/status-response.ts';
import { type Markup, xml } from '../../capabilities/saml-messages/xml.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Attribute, AttributeValue } from './attributes.ts';
import { type ServiceProvider, signsAssertion } from './service-provider.ts';

export interface Assertion {
  nameId: NameId;
  attributes: readonly Attribute[];
  audience: string;
  recipient: string;
  sessionIndex: string;
  /** Epoch seconds. */
  authTime: number;
  context: string;
}

/** How far the clock of a service provider may be behind, seconds. */
const BACKDATED = 60;

/** Returns the Response to a successful login, signed and encrypted as the service provider is configured. */
export async function loginResponse(
  frame: ResponseFrame,
  content: Assertion,
  sp: ServiceProvider,
  signer: Signer,
  random: Random,
): Promise<string> {
  const assertion = await assertionOf(frame, content, sp, signer, random);
  const element =
    sp.encryptionKey === undefined
      ? { markup: assertion }
      : encryptAssertion(assertion, sp.encryptionKey, random);
  const id = newId(random);
  const { markup } = response(frame, id, { code: STATUS.success }, element);
  return sp.signResponse ? signRoot(markup, id, signer) : markup;
}

/** Returns the Response to a failed login. It is signed, so that nobody can forge one. */
export function failureResponse(
  frame: ResponseFrame,
  status: Status,
  signer: Signer,
  random: Random,
): Promise<string> {
  const id = newId(random);
  return signRoot(response(frame, id, status).markup, id, signer);
}

function response(frame: ResponseFrame, id: string, status: Status, assertion?: Markup): Markup {
  return statusResponse('samlp:Response', frame, id, status, assertion);
}

async function assertionOf(
  { issuer, now, inResponseTo }: ResponseFrame,
  content: Assertion,
  sp: ServiceProvider,
  signer: Signer,
  random: Random,
): Promise<string> {
  const id = newId(random);
  const until = instantOf(now + sp.lifetimeInSeconds);
  const { markup } = xml(
    'saml:Assertion',
    {
      'xmlns:saml': NS.assertion,
      'xmlns:xs': 'http://www.w3.org/2001/XMLSchema',
      'xmlns:xsi': 'http://www.w3.org/2001/XMLSchema-instance',
      Version: '2.0',
      ID: id,
      IssueInstant: instantOf(now),
    },
    xml('saml:Issuer', {}, issuer),
    xml(
      'saml:Subject',
      {},
      nameIdMarkup(content.nameId),
      xml(
        'saml:SubjectConfirmation',
        { Method: 'urn:oasis:names:tc:SAML:2.0:cm:bearer' },
        xml('saml:SubjectConfirmationData', {
          NotOnOrAfter: until,
          Recipient: content.recipient,
          InResponseTo: inResponseTo,
        }),
      ),
    ),
    xml(
      'saml:Conditions',
      { NotBefore: instantOf(now - BACKDATED), NotOnOrAfter: until },
      xml('saml:AudienceRestriction', {}, xml('saml:Audience', {}, content.audience)),
    ),
    xml(
      'saml:AuthnStatement',
      { AuthnInstant: instantOf(content.authTime), SessionIndex: content.sessionIndex },
      xml('saml:AuthnContext', {}, xml('saml:AuthnContextClassRef', {}, content.context)),
    ),
    attributeStatement(content.attributes, sp),
  );
  return signsAssertion(sp) ? signRoot(markup, id, signer) : markup;
}

function attributeStatement(attributes: readonly Attribute[], sp: ServiceProvider): Markup | undefined {
  if (attributes.length === 0) return undefined;
  return xml('saml:AttributeStatement', {}, ...attributes.map((one) => attributeMarkup(one, sp)));
}

function attributeMarkup({ name, values }: Attribute, sp: ServiceProvider): Markup {
  return xml(
    'saml:Attribute',
    { Name: name, NameFormat: sp.includeAttributeNameFormat ? nameFormat(name) : undefined },
    ...values.map((value) =>
      xml(
        'saml:AttributeValue',
        { 'xsi:type': sp.typedAttributes ? typeOf(value) : undefined },
        String(value),
      ),
    ),
  );
}

/** Returns the NameFormat by the shape of the name (Core §8.2). */
function nameFormat(name: string): string {
  const format = 'urn:oasis:names:tc:SAML:2.0:attrname-format:';
  if (/^(https?:|urn:)/i.test(name)) return `${format}uri`;
  return /^[A-Za-z_][\w.-]*$/.test(name) ? `${format}basic` : `${format}unspecified`;
}

function typeOf(value: AttributeValue): string {
  if (typeof value === 'boolean') return 'xs:boolean';
  return typeof value === 'number' ? 'xs:double' : 'xs:string';
}
