// What an AuthnRequest asks for (SAML Core §3.4.1), and what of it the hosted login is told.
import type { Element } from '@xmldom/xmldom';
import { type Expected, readEnvelope } from './message.ts';
import { BINDING, NS } from './names.ts';
import type { ServiceProvider } from './service-provider.ts';
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
  /** Authentication contexts that would do; none given where any would. */
  classRefs?: string[] | undefined;
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
    nameIdFormat: policy && short(attribute(policy, 'Format'), 'The Format of NameIDPolicy'),
    spNameQualifier: policy && short(attribute(policy, 'SPNameQualifier'), 'SPNameQualifier'),
    classRefs: classRefs(root),
    subject: short(subjectOf(root), 'The Subject'),
    unsupportedBinding: binding !== undefined && binding !== BINDING.post,
  };
}

/** What a request says waits with it, for anybody who asks: names have the length of names. */
const LONGEST = 256;
const MOST_CLASSES = 20;

/** @throws AuthError 400 when it is longer than a name may be. */
function short(text: string | undefined, what: string): string | undefined {
  if (text !== undefined && text.length > LONGEST) throw badMessage(`${what} is too long.`);
  return text;
}

/** A login that starts here, for the application's first address. @throws AuthError 400 when it has none. */
export function unsolicited(provider: ServiceProvider, relayState: string | undefined): LoginRequest {
  return {
    acsUrl: acsUrl(provider, undefined),
    relayState,
    isPassive: false,
    forceAuthn: false,
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
      : `The AssertionConsumerServiceURL "${asked.slice(0, LONGEST)}" is not in the list of allowed callback URLs.`,
  );
}

/**
 * The classes that a request is content with (Core §3.3.2.2.1). Without an order of contexts a minimum or maximum
 * is met by what is equal alone, and nothing is better than another; declarations are none of ours.
 * @returns undefined when it asks for none. @throws AuthError 400 for another comparison.
 */
function classRefs(root: Element): string[] | undefined {
  const requested = childOf(root, NS.protocol, 'RequestedAuthnContext');
  if (requested === undefined || elementsOf(requested).length === 0) return undefined;
  const comparison = attribute(requested, 'Comparison') ?? 'exact';
  if (!['exact', 'minimum', 'maximum', 'better'].includes(comparison)) {
    throw badMessage('The Comparison of RequestedAuthnContext is not known.');
  }
  if (comparison === 'better') return [];
  const classes = elementsOf(requested)
    .filter((element) => isNamed(element, NS.assertion, 'AuthnContextClassRef'))
    .map((element) => textOf(element).trim());
  if (classes.length > MOST_CLASSES) throw badMessage('RequestedAuthnContext names too many classes.');
  for (const one of classes) short(one, 'An AuthnContextClassRef');
  return classes;
}

function subjectOf(root: Element): string | undefined {
  const subject = childOf(root, NS.assertion, 'Subject');
  const nameId = subject && childOf(subject, NS.assertion, 'NameID');
  return nameId && textOf(nameId);
}
