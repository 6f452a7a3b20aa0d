// Regular expressions that the checker refuses or cannot judge, and why each is harmless.

interface Exception {
  /** As in the source. */
  regex: string;
  /** The longest text that it meets, UTF-16 units, and what bounds it. */
  maxLength: number;
  reason: string;
}

const raw = String.raw;

export const EXCEPTIONS: readonly Exception[] = [
  {
    regex: 'new RegExp(value)',
    maxLength: 0,
    reason: "A copy of a script's own expression, in the sandbox, whose time is limited.",
  },
  {
    regex: raw`new RegExp(${'`[\\\\0${begin}]|\\\\p{Surrogate}`'}, 'gu')`,
    maxLength: Number.POSITIVE_INFINITY,
    reason: 'One character at a time.',
  },
  {
    regex: raw`new RegExp(${'`${begin}(?:([\\\\x01\\\\x02])|\\\\x03([0-9a-f]{4}))`'}, 'g')`,
    maxLength: Number.POSITIVE_INFINITY,
    reason: 'Six characters at most, and nothing is repeated without bound.',
  },
  {
    regex: raw`new RegExp(${'`[\\\\0${begin}\\\\ud800-\\\\udfff]`'})`,
    maxLength: Number.POSITIVE_INFINITY,
    reason: 'One character at a time.',
  },
  {
    regex: raw`/\s*([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)\s*=\s*((?!\s)(?:\\[0-9A-Fa-f]{2}|\\[ "#+,;<=>\\]|[^\\",+;<>\0])*)([,+]|$)/gy`,
    maxLength: 16_384,
    reason:
      'The checker does not know that a sticky expression is tried at one place only. There it is linear.',
  },
  {
    regex: raw`/\sencoding\s{0,9}=\s{0,9}["']([\w.-]{1,40})["']/`,
    maxLength: 256,
    reason: 'Too long to be judged. The text is an XML declaration, which is cut to this length.',
  },
  {
    regex: raw`new RegExp(
  ${"`(^|[\\\\s(+!-])(${FIELDS.map((name) => name.replace('.', '\\\\.')).join('|')}|(app|user)_metadata\\\\.[^\\\\s:]+):`"},
  'u',
)`,
    maxLength: 16_384,
    reason: 'A search of an administrator in a URL: at most a thousand field names of 16 KiB.',
  },
  {
    regex: raw`/^[[\p{L}\p{N} +_.,:#\-]--\p{Default_Ignorable_Code_Point}]{1,64}$/v`,
    maxLength: 64,
    reason: 'The checker does not know the flag v. It is one set of characters, at most 64 times.',
  },
];
