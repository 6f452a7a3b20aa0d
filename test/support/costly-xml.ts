// XML messages that cost a reader as much as their size allows: what a stranger would send to stop a server.

const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const DS = 'http://www.w3.org/2000/09/xmldsig#';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';

type Chance = () => number;
const below = (random: Chance, most: number) => Math.floor(random() * most);

/** A part that is repeated. */
type Part = (index: number, random: Chance) => string;

/** The parts, each of which has been slow in some parser, search or canonicalization. */
const PARTS: Readonly<Record<string, Part>> = {
  empty: () => '<b/>',
  text: () => '<b>x</b>',
  ids: () => '<b ID="x1"/>',
  'many ids': (index) => `<b ID="i${index}" Id="j${index}" id="k${index}"/>`,
  attributes: () => `<b${Array.from({ length: 40 }, (_, at) => ` a${at}=""`).join('')}/>`,
  nested: () => '<b>'.repeat(20) + '</b>'.repeat(20),
  'very nested': () => '<b>'.repeat(300) + '</b>'.repeat(300),
  'open elements': () => '<b>',
  'closed elements': () => '</b>',
  namespaces: (index) =>
    `<b${Array.from({ length: 30 }, (_, at) => ` xmlns:n${at}="urn:${index}"`).join('')}/>`,
  'used namespaces': (index) =>
    `<n${index % 30}:b${Array.from({ length: 7 }, (_, at) => ` n${(index + at) % 30}:a=""`).join('')}/>`,
  'long names': (index) => `<${'n'.repeat(250)}${index}/>`,
  signatures: () => `<Signature xmlns="${DS}"><SignedInfo/></Signature>`,
  references: () => `<Reference xmlns="${DS}" URI="#x"/>`,
  assertions: () => '<Assertion xmlns="urn:oasis:names:tc:SAML:2.0:assertion" ID="x"/>',
  entities: () => '&amp;',
  characters: () => '&#9;',
  returns: () => '\r',
  'closing brackets': () => ']]>',
  greater: () => '>',
  less: () => '<',
  comments: () => '<!--',
  instructions: () => '<?a ',
  spaces: () => ' ',
  'byte order marks': () => '\ufeff',
  quotes: (_index, random) => (random() < 0.5 ? '"' : "'"),
};

export const PART_NAMES = Object.keys(PARTS);

/** A signature in the form that SAML requires, of nobody. */
export function shapedSignature(id: string): string {
  return (
    `<Signature xmlns="${DS}"><SignedInfo><CanonicalizationMethod Algorithm="${EXCLUSIVE}"/>` +
    `<SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/><Reference URI="#${id}"><Transforms>` +
    `<Transform Algorithm="${DS}enveloped-signature"/><Transform Algorithm="${EXCLUSIVE}"/></Transforms>` +
    '<DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><DigestValue>AAAA</DigestValue></Reference>' +
    '</SignedInfo><SignatureValue>AAAA</SignatureValue></Signature>'
  );
}

/**
 * Returns a message of many parts.
 * @param attributes of the root.
 * @param names which parts; each fills an equal share.
 * @param most how many parts of each kind.
 */
export function costlyXml(
  random: Chance,
  {
    root,
    attributes,
    names,
    most,
    length,
  }: { root: string; attributes: string; names: readonly string[]; most: number; length: number },
): string {
  const declared = Array.from({ length: 30 }, (_, at) => ` xmlns:n${at}="urn:${at}"`).join('');
  const head = `<${root} xmlns="${PROTOCOL}" ID="x"${attributes}><Issuer xmlns="urn:oasis:names:tc:SAML:2.0:assertion">urn:sp</Issuer>${shapedSignature('x')}<c${declared}>`;
  const tail = `</c></${root}>`;
  const share = (length - head.length - tail.length) / names.length;
  const parts: string[] = [];
  for (const name of names) {
    let used = 0;
    for (let index = 0; index < most; index++) {
      const part = PARTS[name]?.(index, random) ?? '';
      const size = Buffer.byteLength(part);
      if (used + size > share) break;
      used += size;
      parts.push(part);
    }
  }
  return head + parts.join('') + tail;
}

/** Returns some part names. */
export function someParts(random: Chance): string[] {
  return Array.from(
    { length: 1 + below(random, 3) },
    () => PART_NAMES[below(random, PART_NAMES.length)] ?? '',
  );
}
