// Reading and writing XML. What is read comes from strangers: it is measured and stripped of all that SAML
// does not need (document types, entities, comments, instructions) before a parser sees it.
import { DOMParser, type Element, type Node } from '@xmldom/xmldom';
import { AuthError } from '../http/errors.ts';

/** Of a message, in bytes; logout requests of service providers are some 2,000. */
export const LARGEST_MESSAGE = 65_536;
const DEEPEST = 24;
const MOST_ELEMENTS = 500;
const MOST_ATTRIBUTES = 40;

/** A message of a service provider that is not taken. */
export function badMessage(description: string, cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', description, cause === undefined ? {} : { cause });
}

/** Characters that XML 1.0 §2.2 does not have. */
const FORBIDDEN = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/**
 * Parses a message.
 * @returns its root element.
 * @throws AuthError 400 for anything but plain, bounded, well-formed XML.
 */
export function parseXml(message: Uint8Array | string): Element {
  const text = typeof message === 'string' ? message : decodeUtf8(message);
  if (text.length > LARGEST_MESSAGE) throw badMessage('The SAML message is too large.');
  // A comment splits a text in two, and some read only the first part; a document type brings entities.
  if (/<!/.test(text)) {
    throw badMessage('SAML messages must not contain document types, entities, comments or CDATA.');
  }
  if (/<\?(?!xml[ \t\r\n])/.test(text) || text.indexOf('<?', 1) > 0) {
    throw badMessage('SAML messages must not contain processing instructions.');
  }
  if (text.search(FORBIDDEN) >= 0) throw notXml();
  const root = parse(text);
  measure(root);
  return root;
}

function notXml(cause?: unknown): AuthError {
  return badMessage('The SAML message is not well-formed XML.', cause);
}

function decodeUtf8(bytes: Uint8Array): string {
  if (bytes.length > LARGEST_MESSAGE) throw badMessage('The SAML message is too large.');
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
    const { documentElement } = new DOMParser({ onError: fail }).parseFromString(text, 'text/xml');
    if (documentElement !== null) return documentElement;
  } catch (thrown) {
    throw notXml(thrown);
  }
  throw notXml();
}

/** Whoever walks the tree later may do so recursively. */
function measure(root: Element): void {
  const open: [Element, number][] = [[root, 1]];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, depth] = next;
    count++;
    if (depth > DEEPEST || count > MOST_ELEMENTS || element.attributes.length > MOST_ATTRIBUTES) {
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

/** A piece of XML that is complete as it is. */
export type Markup = { readonly markup: string };

/** Writes an element: strings among its content are text, and escaped. */
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

/** Escapes for text and for attributes in double quotes; what XML cannot say is left out. */
function escapeXml(text: string): string {
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
