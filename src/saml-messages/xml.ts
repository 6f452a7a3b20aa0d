// Reads and writes XML. Anybody can send messages, so their size and nesting are limited, and everything that SAML
// does not need (document types, entities, comments, processing instructions) is rejected.
import { createRequire } from 'node:module';
import type { Element, Node } from '@xmldom/xmldom';
import { AuthError } from '../http/errors.ts';

/** How large a message may be. */
export interface MessageLimits {
  bytes: number;
  elements: number;
}

/** For requests and logout messages; a usual one has 2,000 bytes. */
export const SMALL: MessageLimits = { bytes: 65_536, elements: 500 };
/** For responses and metadata: a user may be in hundreds of groups, and a provider may have many certificates. */
export const LARGE: MessageLimits = { bytes: 262_144, elements: 5_000 };
const MAX_NESTING = 24;
const MAX_ATTRIBUTES = 40;

/** Returns the error for a message that is rejected. */
export function badMessage(description: string, cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', description, cause === undefined ? {} : { cause });
}

/** Characters that XML 1.0 §2.2 does not allow. */
const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/**
 * Parses a message.
 * @returns its root element.
 * @throws AuthError 400 for anything but plain, bounded, well-formed XML.
 */
export function parseXml(message: Uint8Array | string, limits = SMALL): Element {
  if (message.length > limits.bytes) throw badMessage('The SAML message is too large.');
  const text = typeof message === 'string' ? message : decodeUtf8(message);
  // Comments split text nodes, of which some readers then see only the first part. Document types define entities.
  if (/<!/.test(text)) {
    throw badMessage('SAML messages must not contain document types, entities, comments or CDATA.');
  }
  if (/<\?(?!xml[ \t\r\n])/.test(text) || text.indexOf('<?', 1) > 0) {
    throw badMessage('SAML messages must not contain processing instructions.');
  }
  if (text.search(FORBIDDEN) >= 0) throw notXml();
  const root = parse(text);
  checkSize(root, limits);
  return root;
}

function notXml(cause?: unknown): AuthError {
  return badMessage('The SAML message is not well-formed XML.', cause);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    throw notXml(thrown);
  }
}

function parse(text: string): Element {
  const fail = (_level: string, fault: string): never => {
    throw new Error(fault);
  };
  try {
    // Loaded with the first message and not at each start: it is large, and most tenants do not use SAML.
    const { DOMParser } = createRequire(import.meta.url)('@xmldom/xmldom') as typeof import('@xmldom/xmldom');
    const { documentElement } = new DOMParser({ onError: fail }).parseFromString(text, 'text/xml');
    if (documentElement !== null) return documentElement;
  } catch (thrown) {
    throw notXml(thrown);
  }
  throw notXml();
}

/** Limits depth and size, so that later code may recurse. */
function checkSize(root: Element, limits: MessageLimits): void {
  const stack: [Element, number][] = [[root, 1]];
  let count = 0;
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [element, depth] = next;
    count++;
    if (depth > MAX_NESTING || count > limits.elements || element.attributes.length > MAX_ATTRIBUTES) {
      throw badMessage('The SAML message is nested too deeply or has too many elements.');
    }
    for (const child of elementsOf(element)) stack.push([child, depth + 1]);
  }
}

/** Returns the child elements. */
export function elementsOf(element: Element): Element[] {
  return Array.from<Node>(element.childNodes).filter(isElement);
}

function isElement(node: Node): node is Element {
  return node.nodeType === node.ELEMENT_NODE;
}

/** Returns whether an element has a local name in a namespace. */
export function isNamed(element: Element, namespace: string, name: string): boolean {
  return element.namespaceURI === namespace && element.localName === name;
}

/** Returns the child with a name. @throws AuthError 400 when there are several. */
export function childOf(element: Element, namespace: string, name: string): Element | undefined {
  const [found, another] = elementsOf(element).filter((child) => isNamed(child, namespace, name));
  if (another !== undefined) throw badMessage(`The SAML message has more than one ${name}.`);
  return found;
}

/** Returns the text of an element. @throws AuthError 400 when it contains elements. */
export function textOf(element: Element): string {
  if (elementsOf(element).length > 0) throw badMessage(`${element.localName} must contain text alone.`);
  return element.textContent ?? '';
}

/** Returns an attribute without a namespace; undefined when it is not set. */
export function attribute(element: Element, name: string): string | undefined {
  return element.getAttributeNS(null, name) ?? undefined;
}

/**
 * Returns a boolean attribute (XML Schema §3.2.2); false when it is not set.
 * @throws AuthError 400 for any other text.
 */
export function booleanAttribute(element: Element, name: string): boolean {
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
