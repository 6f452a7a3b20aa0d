// The Response to a login (SAML Core §3.3.3, Profiles §4.1.4.2).
import type { Random } from '../runtime/random.ts';
import type { Attribute, AttributeValue, NameId } from './attributes.ts';
import { encryptAssertion } from './encryption.ts';
import { instantOf, newId } from './message.ts';
import { NS, STATUS } from './names.ts';
import type { ServiceProvider } from './service-provider.ts';
import { type Signer, signElement } from './signature.ts';
import { type Markup, xml } from './xml.ts';

/** A code, one below it, and a sentence for people. */
export interface Status {
  code: string;
  detail?: string;
  message?: string;
}

/** What every response of ours says. */
export interface ResponseFrame {
  /** Our entity ID. */
  issuer: string;
  /** Epoch seconds. */
  now: number;
  inResponseTo: string | undefined;
  destination: string;
}

/** What an assertion says. */
export interface Login {
  nameId: NameId;
  attributes: readonly Attribute[];
  audience: string;
  recipient: string;
  sessionIndex: string;
  /** Epoch seconds. */
  authTime: number;
  context: string;
}

/** Service providers' clocks go slow as well, seconds. */
const BACKDATED = 60;

/** The Response for a login that succeeded, signed and encrypted as the service provider has it. */
export function loginResponse(
  frame: ResponseFrame,
  login: Login,
  provider: ServiceProvider,
  signer: Signer,
  random: Random,
): string {
  const assertion = assertionOf(frame, login, provider, signer, random);
  const sealed =
    provider.encryptionKey === undefined
      ? { markup: assertion }
      : encryptAssertion(assertion, provider.encryptionKey, random);
  const id = newId(random);
  const { markup } = response(frame, id, { code: STATUS.success }, sealed);
  return provider.signResponse ? signElement(markup, id, signer) : markup;
}

/** The Response for a login that did not; signed, so that nobody else can say so. */
export function failureResponse(
  frame: ResponseFrame,
  status: Status,
  signer: Signer,
  random: Random,
): string {
  const id = newId(random);
  return signElement(response(frame, id, status).markup, id, signer);
}

function response(frame: ResponseFrame, id: string, status: Status, assertion?: Markup): Markup {
  return statusResponse('samlp:Response', frame, id, status, assertion);
}

/** A message of type StatusResponseType (SAML Core §3.2.2). */
export function statusResponse(
  name: 'samlp:Response' | 'samlp:LogoutResponse',
  { issuer, now, inResponseTo, destination }: ResponseFrame,
  id: string,
  { code, detail, message }: Status,
  content?: Markup,
): Markup {
  const below = detail === undefined ? undefined : xml('samlp:StatusCode', { Value: detail });
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
      xml('samlp:StatusCode', { Value: code }, below),
      message === undefined ? undefined : xml('samlp:StatusMessage', {}, message),
    ),
    content,
  );
}

function assertionOf(
  { issuer, now, inResponseTo }: ResponseFrame,
  login: Login,
  provider: ServiceProvider,
  signer: Signer,
  random: Random,
): string {
  const id = newId(random);
  const until = instantOf(now + provider.lifetimeInSeconds);
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
      nameIdMarkup(login.nameId),
      xml(
        'saml:SubjectConfirmation',
        { Method: 'urn:oasis:names:tc:SAML:2.0:cm:bearer' },
        xml('saml:SubjectConfirmationData', {
          NotOnOrAfter: until,
          Recipient: login.recipient,
          InResponseTo: inResponseTo,
        }),
      ),
    ),
    xml(
      'saml:Conditions',
      { NotBefore: instantOf(now - BACKDATED), NotOnOrAfter: until },
      xml('saml:AudienceRestriction', {}, xml('saml:Audience', {}, login.audience)),
    ),
    xml(
      'saml:AuthnStatement',
      { AuthnInstant: instantOf(login.authTime), SessionIndex: login.sessionIndex },
      xml('saml:AuthnContext', {}, xml('saml:AuthnContextClassRef', {}, login.context)),
    ),
    attributeStatement(login.attributes, provider),
  );
  return provider.signAssertion ? signElement(markup, id, signer) : markup;
}

/** A NameID, as assertions and logout requests have it. */
export function nameIdMarkup({ value, format, spNameQualifier }: NameId): Markup {
  return xml('saml:NameID', { Format: format, SPNameQualifier: spNameQualifier }, value);
}

function attributeStatement(attributes: readonly Attribute[], provider: ServiceProvider): Markup | undefined {
  if (attributes.length === 0) return undefined;
  return xml('saml:AttributeStatement', {}, ...attributes.map((one) => attributeMarkup(one, provider)));
}

function attributeMarkup({ name, values }: Attribute, provider: ServiceProvider): Markup {
  return xml(
    'saml:Attribute',
    { Name: name, NameFormat: provider.includeAttributeNameFormat ? nameFormat(name) : undefined },
    ...values.map((value) =>
      xml(
        'saml:AttributeValue',
        { 'xsi:type': provider.typedAttributes ? typeOf(value) : undefined },
        String(value),
      ),
    ),
  );
}

/** Core §8.2: a URI, a plain name, or whatever. */
function nameFormat(name: string): string {
  const format = 'urn:oasis:names:tc:SAML:2.0:attrname-format:';
  if (/^(https?:|urn:)/i.test(name)) return `${format}uri`;
  return /^[A-Za-z_][\w.-]*$/.test(name) ? `${format}basic` : `${format}unspecified`;
}

function typeOf(value: AttributeValue): string {
  if (typeof value === 'boolean') return 'xs:boolean';
  return typeof value === 'number' ? 'xs:double' : 'xs:string';
}
