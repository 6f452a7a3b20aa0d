// Measures a message in one pass over its characters before a parser sees it: the parser takes time in the square of
// the nesting, and canonicalization in the product of elements and namespaces. The pass accepts less than XML 1.0 does
// (what SAML never needs is refused), so that it and the parser cannot disagree about what a message has.
// docs/understand/decisions/saml.md#a-saml-message-is-measured-before-it-is-parsed
import { badMessage, FORBIDDEN, notXml } from './xml.ts';

/** How large a message may be. */
export interface MessageLimits {
  bytes: number;
  elements: number;
  /** Of all elements together. */
  attributes: number;
}

/** For requests and logout messages; a usual one has 2,000 bytes. They are read on the thread that answers. */
export const SMALL: MessageLimits = { bytes: 65_536, elements: 500, attributes: 1_000 };
/** For responses: a user may be in hundreds of groups. */
export const LARGE: MessageLimits = { bytes: 262_144, elements: 5_000, attributes: 10_000 };
/** For metadata: a provider may have many certificates, and AD FS describes every claim that it knows. */
export const METADATA: MessageLimits = { ...LARGE, bytes: 1024 * 1024 };

const MAX_NESTING = 24;
const MAX_ATTRIBUTES = 40;
/** Namespaces that are declared around one element. Providers declare a few, but often again in every value. */
const MAX_NAMESPACES_IN_SCOPE = 64;
const MAX_NAME_LENGTH = 256;
/** Canonicalization repeats the declaration of a namespace in every element that uses it. */
const MAX_NAMESPACE_LENGTH = 256;

/** Whether a message is so small that reading and verifying it takes no noticeable time. */
export type Measured = { isSmall: boolean };

interface OpenElement {
  name: string;
  /** Declared here or around it. */
  namespaces: number;
}

/**
 * @throws AuthError 400 when it is larger than its limits, or has what SAML does not need: document types, entities,
 *   comments, CDATA and processing instructions.
 */
export function measure(text: string, limits: MessageLimits): Measured {
  if (text.length > limits.bytes) throw badMessage('The SAML message is too large.');
  // Comments split text nodes, of which some readers then see only the first part. Document types define entities.
  if (text.includes('<!')) {
    throw badMessage('SAML messages must not contain document types, entities, comments or CDATA.');
  }
  const start = endOfDeclaration(text);
  if (text.includes('<?', start)) throw badMessage('SAML messages must not contain processing instructions.');
  if (text.search(FORBIDDEN) >= 0) throw notXml();
  const { elements, attributes } = count(text, start, limits);
  const isSmall = text.length <= SMALL.bytes && elements <= SMALL.elements && attributes <= SMALL.attributes;
  return { isSmall };
}

/** Returns where the content begins: after the XML declaration, if there is one. */
function endOfDeclaration(text: string): number {
  if (!/^<\?xml[ \t\r\n]/.test(text)) return 0;
  const end = text.slice(0, MAX_NAME_LENGTH).indexOf('?>');
  if (end < 0) throw notXml();
  return end + 2;
}

function count(text: string, start: number, limits: MessageLimits): { elements: number; attributes: number } {
  const open: OpenElement[] = [];
  let elements = 0;
  let attributes = 0;
  const read = tagReader(text);
  for (let at = text.indexOf('<', start); at >= 0; at = text.indexOf('<', at)) {
    const tag = read(at);
    at = tag.end;
    if (tag.kind === 'end') {
      if (open.pop()?.name !== tag.name) throw notXml();
      continue;
    }
    const namespaces = (open.at(-1)?.namespaces ?? 0) + tag.namespaces;
    elements++;
    attributes += tag.attributes;
    const isBounded =
      open.length < MAX_NESTING &&
      namespaces <= MAX_NAMESPACES_IN_SCOPE &&
      elements <= limits.elements &&
      attributes <= limits.attributes;
    if (!isBounded) throw tooMuch();
    if (tag.kind === 'start') open.push({ name: tag.name, namespaces });
  }
  if (open.length > 0 || elements === 0) throw notXml();
  return { elements, attributes };
}

function tooMuch() {
  return badMessage('The SAML message is nested too deeply or has too many elements.');
}

/** Returns the place after a child element of the root, the first with a local name; undefined when there is none. */
export function endOfChild(text: string, localName: string): number | undefined {
  const read = tagReader(text);
  let depth = 0;
  for (let at = text.indexOf('<', endOfDeclaration(text)); at >= 0; at = text.indexOf('<', at)) {
    const { kind, name, end } = read(at);
    at = end;
    if (kind === 'end') depth--;
    const isChild = depth === 1 && name.split(':').at(-1) === localName;
    if (isChild && kind !== 'start') return end;
    if (kind === 'start') depth++;
  }
  return undefined;
}

interface Tag {
  kind: 'start' | 'empty' | 'end';
  name: string;
  attributes: number;
  /** How many of the attributes declare a namespace. */
  namespaces: number;
  /** The place after it. */
  end: number;
}

/** @throws AuthError 400 when it is not well-formed. */
function tagReader(text: string): (at: number) => Tag {
  // A name has at most MAX_NAME_LENGTH characters. Other patterns would take long on long runs of spaces.
  const opening = /<(\/?)([^\s"'<>/=&]{1,256})/y;
  const attribute = /[ \t\r\n]+([^\s"'<>/=&]{1,256})[ \t\r\n]*=[ \t\r\n]*("[^<"]*"|'[^<']*')/y;
  const closing = /[ \t\r\n]*(\/?)>/y;
  const match = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  return (at) => {
    const opened = match(opening, at);
    if (opened === null) throw notXml();
    const [, slash, tagName = ''] = opened;
    let end = opening.lastIndex;
    let [attributes, namespaces] = [0, 0];
    for (let found = match(attribute, end); found !== null; found = match(attribute, end)) {
      end = attribute.lastIndex;
      attributes++;
      const [, attributeName = '', value = ''] = found;
      const isNamespace = attributeName === 'xmlns' || attributeName.startsWith('xmlns:');
      if (isNamespace) namespaces++;
      if (attributes > MAX_ATTRIBUTES || (isNamespace && value.length > MAX_NAMESPACE_LENGTH))
        throw tooMuch();
    }
    const closed = match(closing, end);
    const isEnd = slash === '/';
    const isEmpty = closed?.[1] === '/';
    if (closed === null || (isEnd && (isEmpty || attributes > 0))) throw notXml();
    const kind = isEnd ? 'end' : isEmpty ? 'empty' : 'start';
    return { kind, name: tagName, attributes, namespaces, end: closing.lastIndex };
  };
}
