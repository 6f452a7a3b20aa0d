// XML elements as they are read, and markup as it is written.
import { AuthError } from '../../http/errors.ts';

/** An element as it was read. It is plain data, so that a thread can hand it over. */
export interface XmlElement {
  namespaceURI: string;
  localName: string;
  /** Those without a namespace. */
  attributes: readonly (readonly [name: string, value: string])[];
  children: readonly XmlElement[];
  /** The text directly in it. */
  text: string;
}

/** Characters: the cause is logged, and may quote the message. */
const MAX_CAUSE_LENGTH = 200;

/** @param cause of which the log gets the message alone. */
export function badMessage(description: string, cause?: unknown): AuthError {
  if (cause === undefined) return new AuthError(400, 'invalid_request', description);
  const text = cause instanceof Error ? cause.message : String(cause);
  return new AuthError(400, 'invalid_request', description, { cause: text.slice(0, MAX_CAUSE_LENGTH) });
}

export function notXml(cause?: unknown): AuthError {
  return badMessage('The SAML message is not well-formed XML.', cause);
}

/** Characters that XML 1.0 §2.2 does not allow. */
export const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

export function isNamed(element: XmlElement, namespace: string, name: string): boolean {
  return element.namespaceURI === namespace && element.localName === name;
}

/** Returns the child with a name. @throws AuthError 400 when there are several. */
export function childOf(element: XmlElement, namespace: string, name: string): XmlElement | undefined {
  const [found, another] = element.children.filter((child) => isNamed(child, namespace, name));
  if (another !== undefined) throw badMessage(`The SAML message has more than one ${name}.`);
  return found;
}

/** Returns the elements below an element, in any depth. */
export function descendantsOf(element: XmlElement): XmlElement[] {
  return element.children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Returns the text of an element. @throws AuthError 400 when it contains elements. */
export function textOf(element: XmlElement): string {
  if (element.children.length > 0) throw badMessage(`${element.localName} must contain text alone.`);
  return element.text;
}

/** Returns an attribute without a namespace; undefined when it is not set. */
export function attribute(element: XmlElement, name: string): string | undefined {
  return element.attributes.find(([own]) => own === name)?.[1];
}

/**
 * Returns a boolean attribute (XML Schema §3.2.2); false when it is not set.
 * @throws AuthError 400 for any other text.
 */
export function booleanAttribute(element: XmlElement, name: string): boolean {
  const value = attribute(element, name)?.trim() ?? 'false';
  if (!/^(true|false|0|1)$/.test(value)) throw badMessage(`${name} must be true or false.`);
  return value === 'true' || value === '1';
}

/** Finished XML, which is not escaped again. */
export type Markup = { readonly markup: string };

/** Returns an element. Strings in its content are escaped as text. */
export function xml(
  name: string,
  attributes: Readonly<Record<string, string | undefined>>,
  ...content: (Markup | string | undefined)[]
): Markup {
  const attributeText = Object.entries(attributes)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  const contentText = content.map((piece) =>
    typeof piece === 'string' ? escapeXml(piece) : (piece?.markup ?? ''),
  );
  return { markup: `<${name}${attributeText.join('')}>${contentText.join('')}</${name}>` };
}

/** Escapes text and attribute values, and drops characters that XML does not allow. */
export function escapeXml(text: string): string {
  return text
    .replaceAll(FORBIDDEN, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\r', '&#13;')
    .replaceAll('\n', '&#10;')
    .replaceAll('\t', '&#9;');
}
