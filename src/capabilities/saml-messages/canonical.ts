// Exclusive XML Canonicalization. Of the library for signatures only this is used: it searches the message for the element
// that is signed, or to be signed, which takes several times as long as all the rest.
// docs/understand/decisions/saml.md#xml-crypto-canonicalizes-xmldomxmldom-parses-and-our-own-templates-write-messages
import { createRequire } from 'node:module';
import type { Element } from '@xmldom/xmldom';

/** Loaded with the first signature and not at each start: it is large, and most tenants do not use SAML. */
const library = () => createRequire(import.meta.url)('xml-crypto') as typeof import('xml-crypto');

/** Canonicalizes an element (Exclusive XML Canonicalization §2). @param prefixes its InclusiveNamespaces. */
export function canonical(element: Element, prefixes: readonly string[] = []): string {
  const { ExclusiveCanonicalization } = library();
  return new ExclusiveCanonicalization().process(element, {
    inclusiveNamespacesPrefixList: [...prefixes],
    ancestorNamespaces: prefixes.length === 0 ? [] : namespacesAround(element),
  });
}

/** Returns the namespaces that are declared around an element, and not by itself. */
function namespacesAround(element: Element): { prefix: string; namespaceURI: string }[] {
  const found = new Map<string, string | undefined>();
  const declared = ({ attributes }: Element) =>
    Array.from(attributes).filter(({ prefix }) => prefix === 'xmlns');
  for (const { localName } of declared(element)) found.set(localName ?? '', undefined);
  for (let { parentNode } = element; parentNode !== null; { parentNode } = parentNode) {
    if (parentNode.nodeType !== parentNode.ELEMENT_NODE) break;
    for (const { localName, value } of declared(parentNode as Element)) {
      if (!found.has(localName ?? '')) found.set(localName ?? '', value);
    }
  }
  return [...found].flatMap(([prefix, namespaceURI]) =>
    namespaceURI === undefined ? [] : [{ prefix, namespaceURI }],
  );
}
