// Distinguished names, read from certificates (X.501, DER) and from text (RFC 4514), and compared by meaning rather
// than spelling.

/** Attribute types by the short names of RFC 4514 §3, RFC 4519 and ETSI EN 319 412-1. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  CN: '2.5.4.3',
  SN: '2.5.4.4',
  SERIALNUMBER: '2.5.4.5',
  C: '2.5.4.6',
  L: '2.5.4.7',
  ST: '2.5.4.8',
  STREET: '2.5.4.9',
  O: '2.5.4.10',
  OU: '2.5.4.11',
  TITLE: '2.5.4.12',
  BUSINESSCATEGORY: '2.5.4.15',
  POSTALCODE: '2.5.4.17',
  GIVENNAME: '2.5.4.42',
  GN: '2.5.4.42',
  ORGANIZATIONIDENTIFIER: '2.5.4.97',
  DC: '0.9.2342.19200300.100.1.25',
  UID: '0.9.2342.19200300.100.1.1',
  EMAILADDRESS: '1.2.840.113549.1.9.1',
  JURISDICTIONLOCALITYNAME: '1.3.6.1.4.1.311.60.2.1.1',
  JURISDICTIONSTATEORPROVINCENAME: '1.3.6.1.4.1.311.60.2.1.2',
  JURISDICTIONCOUNTRYNAME: '1.3.6.1.4.1.311.60.2.1.3',
};

/** One attribute: the OID of its type, and its value as text. */
interface Attribute {
  type: string;
  value: string;
}

/** Relative names, the most specific first, as in RFC 4514 §2.1; a relative name may have several attributes. */
export type DistinguishedName = readonly (readonly Attribute[])[];

/**
 * Returns whether two names are equal by caseIgnoreMatch (RFC 4517 §4.2.11), which ignores case and repeated spaces.
 */
export function isSameName(one: DistinguishedName, other: DistinguishedName): boolean {
  return one.length > 0 && canonical(one) === canonical(other);
}

/** The attributes of a relative name are a set (X.501 §9.3). */
function canonical(name: DistinguishedName): string {
  const text = ({ type, value }: Attribute) => [
    type,
    value.normalize('NFKC').trim().replaceAll(/\s+/g, ' ').toLowerCase(),
  ];
  return JSON.stringify(name.map((relative) => relative.map((one) => JSON.stringify(text(one))).sort()));
}

/** A value with the space after it, up to an unescaped comma or plus sign. */
const ATTRIBUTE =
  /\s*([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)\s*=\s*((?!\s)(?:\\[0-9A-Fa-f]{2}|\\[ "#+,;<=>\\]|[^\\",+;<>\0])*)([,+]|$)/gy;

/** Parses a name in text form (RFC 4514 §3). @returns undefined if it is malformed or has an unknown attribute type. */
export function parseName(text: string): DistinguishedName | undefined {
  const name: Attribute[][] = [];
  let end = ',';
  let at = 0;
  ATTRIBUTE.lastIndex = 0;
  while (at < text.length || end !== '') {
    const [whole = '', label = '', value = '', separator = ''] = ATTRIBUTE.exec(text) ?? [];
    const type = SHORT_NAMES[label.toUpperCase()] ?? (/^\d/.test(label) ? label : undefined);
    const plain = unescaped(value);
    if (whole === '' || type === undefined || plain === undefined || plain === '') return undefined;
    if (end === '+') name.at(-1)?.push({ type, value: plain });
    else name.push([{ type, value: plain }]);
    at += whole.length;
    end = separator;
    if (end === '' && at < text.length) return undefined;
  }
  return name;
}

/** RFC 4514 §2.4; after `#` comes the value in BER. */
function unescaped(value: string): string | undefined {
  if (value.startsWith('#')) {
    const read = readElement(Buffer.from(value.slice(1), 'hex'), 0);
    return read === undefined ? undefined : textOf(read);
  }
  // In one pass, so that what an escape yields is not taken for another one; pairs together are the bytes of a character.
  const parts = value.match(/(?:\\[0-9A-Fa-f]{2})+|\\.|[^\\]/gs) ?? [];
  while (parts.at(-1)?.trim() === '') parts.pop();
  return parts
    .map((part) => (/^\\[0-9A-Fa-f]{2}/.test(part) ? bytesOf(part) : part.replace('\\', '')))
    .join('');
}

const bytesOf = (pairs: string) => Buffer.from(pairs.replaceAll('\\', ''), 'hex').toString('utf8');

/** Returns a name in text form (RFC 4514). */
export function formatName(name: DistinguishedName): string {
  const labels = new Map(Object.entries(SHORT_NAMES).map(([label, type]) => [type, label]));
  const escaped = (value: string) =>
    value
      .replaceAll(/[\\",+;<>=]/g, '\\$&')
      .replaceAll(/^[ #]| $/g, '\\$&')
      .replaceAll('\0', '\\00');
  return name
    .map((relative) =>
      relative.map(({ type, value }) => `${labels.get(type) ?? type}=${escaped(value)}`).join('+'),
    )
    .join(',');
}

/** An element of DER: its tag, and where its contents begin and end. */
interface Element {
  tag: number;
  contents: Buffer;
  end: number;
}

function readElement(der: Buffer, at: number): Element | undefined {
  const tag = der[at];
  const first = der[at + 1];
  if (tag === undefined || first === undefined) return undefined;
  const size = first < 0x80 ? 0 : first & 0x7f;
  if (size > 4 || (first >= 0x80 && size === 0) || at + 2 + size > der.length) return undefined;
  const length = size === 0 ? first : der.readUIntBE(at + 2, size);
  const start = at + 2 + size;
  const end = start + length;
  return end > der.length ? undefined : { tag, contents: der.subarray(start, end), end };
}

function elements(contents: Buffer): Element[] {
  const all: Element[] = [];
  for (let at = 0; at < contents.length; ) {
    const one = readElement(contents, at);
    if (one === undefined) throw new RangeError('an element of a certificate is cut off');
    all.push(one);
    at = one.end;
  }
  return all;
}

/** @param der a certificate (RFC 5280 §4.1). @throws RangeError when it is malformed. */
export function subjectOf(der: Buffer): DistinguishedName {
  const [certificate] = elements(der);
  const [body] = elements(certificate?.contents ?? Buffer.alloc(0));
  const fields = elements(body?.contents ?? Buffer.alloc(0));
  // The version is tagged and optional; serial number, signature, issuer and validity come before the subject.
  const subject = fields[fields[0]?.tag === 0xa0 ? 5 : 4];
  const relatives = elements(subject?.contents ?? Buffer.alloc(0)).map(({ contents }) =>
    elements(contents).map((attribute) => {
      const [type, value] = elements(attribute.contents);
      return {
        type: identifierOf(type?.contents ?? Buffer.alloc(0)),
        value: value === undefined ? '' : (textOf(value) ?? ''),
      };
    }),
  );
  return relatives.reverse();
}

/** X.690 §8.19. */
function identifierOf(bytes: Buffer): string {
  const parts: number[] = [];
  let part = 0;
  for (const byte of bytes) {
    part = part * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    parts.push(part);
    part = 0;
  }
  const [first = 0, ...rest] = parts;
  const root = Math.min(2, Math.floor(first / 40));
  return [root, first - root * 40, ...rest].join('.');
}

/** The string types of names (X.520); undefined for other types. */
function textOf({ tag, contents }: Element): string | undefined {
  if (tag === 0x0c) return contents.toString('utf8');
  if (tag === 0x13 || tag === 0x16 || tag === 0x12) return contents.toString('latin1');
  // BMPString is big-endian.
  if (tag === 0x1e && contents.length % 2 === 0) return Buffer.from(contents).swap16().toString('utf16le');
  return tag === 0x14 ? contents.toString('latin1') : undefined;
}
