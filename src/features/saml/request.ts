// Reads an AuthnRequest (SAML Core §3.4.1).

import { BINDING, NS } from '../../capabilities/saml-messages/names.ts';
import { type ExpectedMessage, readEnvelope } from '../../capabilities/saml-messages/saml-message.ts';
import {
  attribute,
  badMessage,
  booleanAttribute,
  childOf,
  isNamed,
  textOf,
  type XmlElement,
} from '../../capabilities/saml-messages/xml.ts';
import type { ServiceProvider } from './service-provider.ts';

/** A request for a login. It is plain JSON, because it is stored while the user logs in. */
export interface LoginRequest {
  /** Undefined for an IdP-initiated login. */
  id?: string | undefined;
  /** The service provider's entity ID. */
  issuer?: string | undefined;
  acsUrl: string;
  relayState?: string | undefined;
  isPassive: boolean;
  forceAuthn: boolean;
  nameIdFormat?: string | undefined;
  spNameQualifier?: string | undefined;
  /** Acceptable authentication contexts; undefined for any. */
  classRefs?: string[] | undefined;
  /** The NameID of the user who must log in. */
  subject?: string | undefined;
  /** Whether the request wants another response binding than HTTP-POST. */
  unsupportedBinding: boolean;
}

/** @throws AuthError 400 when it is malformed, or names an assertion consumer URL that is not registered. */
export function readAuthnRequest(
  root: XmlElement,
  sp: ServiceProvider,
  expected: Omit<ExpectedMessage, 'name'>,
  relayState: string | undefined,
): LoginRequest & { id: string } {
  const { id, issuer } = readEnvelope(root, { ...expected, name: 'AuthnRequest' });
  const policy = childOf(root, NS.protocol, 'NameIDPolicy');
  const binding = attribute(root, 'ProtocolBinding');
  return {
    id,
    issuer,
    acsUrl: acsUrl(sp, attribute(root, 'AssertionConsumerServiceURL')),
    relayState,
    isPassive: booleanAttribute(root, 'IsPassive'),
    forceAuthn: booleanAttribute(root, 'ForceAuthn'),
    nameIdFormat: policy && checkLength(attribute(policy, 'Format'), 'The Format of NameIDPolicy'),
    spNameQualifier: policy && checkLength(attribute(policy, 'SPNameQualifier'), 'SPNameQualifier'),
    classRefs: classRefs(root),
    subject: checkLength(subjectOf(root), 'The Subject'),
    unsupportedBinding: binding !== undefined && binding !== BINDING.post,
  };
}

/** Maximum length of a name: the request is stored, and anybody can send one. */
const MAX_NAME_LENGTH = 256;
const MAX_CLASSES = 20;

/** @throws AuthError 400 when it is longer than {@link MAX_NAME_LENGTH}. */
function checkLength(text: string | undefined, what: string): string | undefined {
  if (text !== undefined && text.length > MAX_NAME_LENGTH) throw badMessage(`${what} is too long.`);
  return text;
}

/** Returns an IdP-initiated login to the application's first callback. @throws AuthError 400 when it has none. */
export function unsolicitedRequest(sp: ServiceProvider, relayState: string | undefined): LoginRequest {
  return {
    acsUrl: acsUrl(sp, undefined),
    relayState,
    isPassive: false,
    forceAuthn: false,
    unsupportedBinding: false,
  };
}

/**
 * Returns the assertion consumer URL: the requested one if it is registered, otherwise the first.
 * @throws AuthError 400
 */
function acsUrl({ acsUrls }: ServiceProvider, requested: string | undefined): string {
  const found = requested === undefined ? acsUrls[0] : acsUrls.find((url) => url === requested);
  if (found !== undefined) return found;
  throw badMessage(
    requested === undefined
      ? 'The application has no callback that a SAML response could go to.'
      : `The AssertionConsumerServiceURL "${requested.slice(0, MAX_NAME_LENGTH)}" is not in the list of allowed callback URLs.`,
  );
}

/**
 * Returns the acceptable classes (Core §3.3.2.2.1). Contexts have no order here: `minimum` and `maximum` are met by
 * an equal class, `better` by none. Declaration references are not supported.
 * @returns undefined for any class.
 * @throws AuthError 400 for an unknown Comparison.
 */
function classRefs(root: XmlElement): string[] | undefined {
  const requested = childOf(root, NS.protocol, 'RequestedAuthnContext');
  if (requested === undefined || requested.children.length === 0) return undefined;
  const comparison = attribute(requested, 'Comparison') ?? 'exact';
  if (!['exact', 'minimum', 'maximum', 'better'].includes(comparison)) {
    throw badMessage('The Comparison of RequestedAuthnContext is not known.');
  }
  if (comparison === 'better') return [];
  const classes = requested.children
    .filter((element) => isNamed(element, NS.assertion, 'AuthnContextClassRef'))
    .map((element) => textOf(element).trim());
  if (classes.length > MAX_CLASSES) throw badMessage('RequestedAuthnContext names too many classes.');
  for (const one of classes) checkLength(one, 'An AuthnContextClassRef');
  return classes;
}

function subjectOf(root: XmlElement): string | undefined {
  const subject = childOf(root, NS.assertion, 'Subject');
  const nameId = subject && childOf(subject, NS.assertion, 'NameID');
  return nameId && textOf(nameId);
}
