// What an AuthnRequest asks for (SAML Core §3.4.1), and what of it the hosted login is told.
import type { Element } from '@xmldom/xmldom';
import { type Expected, readEnvelope } from './message.ts';
import { BINDING, NS } from './names.ts';
import type { ServiceProvider } from './settings.ts';
import { attribute, badMessage, booleanAttribute, childOf, elementsOf, isNamed, textOf } from './xml.ts';

/** A request to log somebody in; JSON, so that it can wait for its user. */
export interface LoginRequest {
  /** None when nobody asked: a login that starts here. */
  id?: string | undefined;
  /** The service provider's entity ID. */
  issuer?: string | undefined;
  acsUrl: string;
  relayState?: string | undefined;
  isPassive: boolean;
  forceAuthn: boolean;
  nameIdFormat?: string | undefined;
  spNameQualifier?: string | undefined;
  /** Authentication contexts that would do. */
  classRefs: string[];
  /** The user it must be about, by NameID. */
  subject?: string | undefined;
  /** Only an answer by POST can be had. */
  unsupportedBinding: boolean;
}

/**
 * Reads an AuthnRequest.
 * @throws AuthError 400 when it is none, or would have the answer sent where it must not go.
 */
export function readAuthnRequest(
  root: Element,
  provider: ServiceProvider,
  expected: Omit<Expected, 'name'>,
  relayState: string | undefined,
): LoginRequest & { id: string } {
  const { id, issuer } = readEnvelope(root, { ...expected, name: 'AuthnRequest' });
  const policy = childOf(root, NS.protocol, 'NameIDPolicy');
  const binding = attribute(root, 'ProtocolBinding');
  return {
    id,
    issuer,
    acsUrl: acsUrl(provider, attribute(root, 'AssertionConsumerServiceURL')),
    relayState,
    isPassive: booleanAttribute(root, 'IsPassive'),
    forceAuthn: booleanAttribute(root, 'ForceAuthn'),
    nameIdFormat: policy && attribute(policy, 'Format'),
    spNameQualifier: policy && attribute(policy, 'SPNameQualifier'),
    classRefs: classRefs(root),
    subject: subjectOf(root),
    unsupportedBinding: binding !== undefined && binding !== BINDING.post,
  };
}

/** A login that starts here, for the application's first address. @throws AuthError 400 when it has none. */
export function unsolicited(provider: ServiceProvider, relayState: string | undefined): LoginRequest {
  return {
    acsUrl: acsUrl(provider, undefined),
    relayState,
    isPassive: false,
    forceAuthn: false,
    classRefs: [],
    unsupportedBinding: false,
  };
}

/** Whoever sends the request chooses among registered addresses, and never another. */
function acsUrl({ acsUrls }: ServiceProvider, asked: string | undefined): string {
  const found = asked === undefined ? acsUrls[0] : acsUrls.find((url) => url === asked);
  if (found !== undefined) return found;
  throw badMessage(
    asked === undefined
      ? 'The application has no callback that a SAML response could go to.'
      : `The AssertionConsumerServiceURL "${asked}" is not in the list of allowed callback URLs.`,
  );
}

/** A minimum or better cannot be judged without an order of contexts: those named are then as good as any. */
function classRefs(root: Element): string[] {
  const requested = childOf(root, NS.protocol, 'RequestedAuthnContext');
  if (requested === undefined) return [];
  return elementsOf(requested)
    .filter((element) => isNamed(element, NS.assertion, 'AuthnContextClassRef'))
    .map((element) => textOf(element).trim());
}

function subjectOf(root: Element): string | undefined {
  const subject = childOf(root, NS.assertion, 'Subject');
  const nameId = subject && childOf(subject, NS.assertion, 'NameID');
  return nameId && textOf(nameId);
}

/** How strong the authentication was, in the words of contexts. */
const MULTI_FACTOR = [
  'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
  'https://refeds.org/profile/mfa',
  'urn:oasis:names:tc:SAML:2.0:ac:classes:MobileTwoFactorContract',
  'urn:oasis:names:tc:SAML:2.0:ac:classes:TimeSyncToken',
];
const PASSWORD = [
  'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
  'urn:oasis:names:tc:SAML:2.0:ac:classes:Password',
];
const UNSPECIFIED = 'urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified';

/** The `acr_values` that ask for a second factor, where every context asked for means one. */
export function acrValues({ classRefs: asked }: LoginRequest): string | undefined {
  if (asked.length === 0 || !asked.every((one) => MULTI_FACTOR.includes(one))) return undefined;
  return MULTI_FACTOR[0];
}

/**
 * The context to be stated for a login.
 * @param amr its methods (RFC 8176); none known of one is taken for a password.
 * @returns undefined when nothing asked for was met.
 */
export function statedContext(
  asked: readonly string[],
  amr: readonly string[],
  otherwise: string,
): string | undefined {
  if (asked.length === 0) return otherwise;
  const isMultiFactor = amr.includes('mfa');
  const isPassword = isMultiFactor || amr.length === 0 || amr.includes('pwd');
  return asked.find(
    (one) =>
      one === UNSPECIFIED ||
      one === otherwise ||
      (isMultiFactor && MULTI_FACTOR.includes(one)) ||
      (isPassword && PASSWORD.includes(one)),
  );
}
