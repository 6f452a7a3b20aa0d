// The parser of XML. Only measured text is parsed (scan.ts).
import { createRequire } from 'node:module';
import type { Element } from '@xmldom/xmldom';
import { notXml, type XmlElement } from './xml.ts';

/** Parses measured text. @throws AuthError 400 when it is not well-formed. */
export function parseDom(text: string): Element {
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

export function plain(element: Element): XmlElement {
  const texts: string[] = [];
  for (let node = element.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === node.TEXT_NODE) texts.push(node.nodeValue ?? '');
  }
  return {
    namespaceURI: element.namespaceURI ?? '',
    localName: element.localName ?? '',
    attributes: attributesOf(element),
    children: childElements(element).map(plain),
    text: texts.join(''),
  };
}

function attributesOf({ attributes }: Element): [string, string][] {
  return Array.from(attributes)
    .filter(({ namespaceURI }) => namespaceURI === null)
    .map(({ name, value }) => [name, value]);
}

export function childElements(element: Element): Element[] {
  const found: Element[] = [];
  for (let node = element.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === node.ELEMENT_NODE) found.push(node as Element);
  }
  return found;
}
