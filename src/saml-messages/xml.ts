// Reads and writes XML. Messages come from anybody: size, nesting, and everything SAML does not need (document types,
// entities, comments, processing instructions) are refused.
import { createRequire } from 'node:module';
import type { Element, Node } from '@xmldom/xmldom';
import { AuthError } from '../http/errors.ts';

/** How large a message may be. */
export interface MessageLimits {
  bytes: number;
  elements: number;
}

/** Requests, and messages about logout: a usual one has 2,000 bytes. */
export const SMALL: MessageLimits = { bytes: 65_536, elements: 500 };
/** Responses and metadata: somebody may be in hundreds of groups, and a provider may have many certificates. */
export const LARGE: MessageLimits = { bytes: 262_144, elements: 5_000 };
const DEEPEST = 24;
const MOST_ATTRIBUTES = 40;

/** The error for a message that is refused. */
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
  // Comments split text nodes, which some readers then cut short; document types define entities.
  if (/<!/.test(text)) {
    throw badMessage('SAML messages must not contain document types, entities, comments or CDATA.');
  }
  if (/<\?(?!xml[ \t\r\n])/.test(text) || text.indexOf('<?', 1) > 0) {
    throw badMessage('SAML messages must not contain processing instructions.');
  }
  if (text.search(FORBIDDEN) >= 0) throw notXml();
  const root = parse(text);
  measure(root, limits);
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
    // Read with the first message, not at each start: it is large, and most tenants speak no SAML.
    const { DOMParser } = createRequire(import.meta.url)('@xmldom/xmldom') as typeof import('@xmldom/xmldom');
    const { documentElement } = new DOMParser({ onError: fail }).parseFromString(text, 'text/xml');
    if (documentElement !== null) return documentElement;
  } catch (thrown) {
    throw notXml(thrown);
  }
  throw notXml();
}

/** Limits depth and size, so that later code may recurse. */
function measure(root: Element, limits: MessageLimits): void {
  const open: [Element, number][] = [[root, 1]];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, depth] = next;
    count++;
    if (depth > DEEPEST || count > limits.elements || element.attributes.length > MOST_ATTRIBUTES) {
      throw badMessage('The SAML message is nested too deeply or has too many elements.');
    }
    for (const child of elementsOf(element)) open.push([child, depth + 1]);
  }
}

/** The child elements. */
export function elementsOf(element: Element): Element[] {
  return Array.from<Node>(element.childNodes).filter(isElement);
}

function isElement(node: Node): node is Element {
  return node.nodeType === node.ELEMENT_NODE;
}

/** Whether an element has that local name in that namespace. */
export function isNamed(element: Element, namespace: string, name: string): boolean {
  return element.namespaceURI === namespace && element.localName === name;
}

/** The child of that name. @throws AuthError 400 when there are several. */
export function childOf(element: Element, namespace: string, name: string): Element | undefined {
  const [found, another] = elementsOf(element).filter((child) => isNamed(child, namespace, name));
  if (another !== undefined) throw badMessage(`The SAML message has more than one ${name}.`);
  return found;
}

/** The text of an element that has nothing else in it. @throws AuthError 400 when it has. */
export function textOf(element: Element): string {
  if (elementsOf(element).length > 0) throw badMessage(`${element.localName} must contain text alone.`);
  return element.textContent ?? '';
}

/** An attribute without a namespace; undefined where it is not set. */
export function attribute(element: Element, name: string): string | undefined {
  return element.getAttributeNS(null, name) ?? undefined;
}

/** A boolean attribute (XML Schema §3.2.2); false where it is not set. @throws AuthError 400 for any other text. */
export function booleanAttribute(element: Element, name: string): boolean {
  const value = attribute(element, name)?.trim() ?? 'false';
  if (!/^(true|false|0|1)$/.test(value)) throw badMessage(`${name} must be true or false.`);
  return value === 'true' || value === '1';
}

/** Finished XML, not escaped again. */
export type Markup = { readonly markup: string };

/** Writes an element; strings in its content are escaped as text. */
export function xml(
  name: string,
  attributes: Readonly<Record<string, string | undefined>>,
  ...content: (Markup | string | undefined)[]
): Markup {
  const written = Object.entries(attributes)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  const inside = content.map((piece) =>
    typeof piece === 'string' ? escapeXml(piece) : (piece?.markup ?? ''),
  );
  return { markup: `<${name}${written.join('')}>${inside.join('')}</${name}>` };
}

/** Escapes text and attribute values; characters that XML does not allow are dropped. */
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
