// Text in PostgreSQL. The database cannot store NUL, nor lone surrogates, neither in columns nor in JSON, but ids and
// JSON texts may contain both. They are written as escape sequences that begin with U+0001 and keep the order of texts;
// U+0001 itself is escaped, too.

import { sha256 } from '../../runtime/secrets.ts';
import { columnText } from './row.ts';

const begin = String.fromCharCode(1);
const special = new RegExp(`[\\0${begin}]|\\p{Surrogate}`, 'gu');
const written = new RegExp(`${begin}(?:([\\x01\\x02])|\\x03([0-9a-f]{4}))`, 'g');
/** A quick check that most texts pass; it also finds paired surrogates, which the exact pattern then ignores. */
const maySpecial = new RegExp(`[\\0${begin}\\ud800-\\udfff]`);

const specialJson = /\\(?:u(0000|0001|d[89a-f][0-9a-f]{2})|.)/gs;
const maySpecialJson = /\\u(?:000[01]|d[89a-f])/;
const writtenJson = /\\u0001(?:\\u000([12])|\\u0003([0-9a-f]{4}))|\\./gs;

/** Converts a text for a column or a parameter. */
export function toPostgres(text: string): string {
  if (!maySpecial.test(text)) return text;
  return text.replace(special, (one) => {
    if (one === '\0') return '\u0001\u0001';
    return one === '\u0001' ? '\u0001\u0002' : `\u0001\u0003${one.charCodeAt(0).toString(16)}`;
  });
}

export type PlainParameter = string | number | null;

/** Converts a parameter for the client: texts, and each text of a list, by {@link toPostgres}. */
export function parameterToPostgres(parameter: PlainParameter | readonly PlainParameter[]): unknown {
  if (typeof parameter === 'string') return toPostgres(parameter);
  return Array.isArray(parameter) ? parameter.map(parameterToPostgres) : parameter;
}

/** Reverses {@link toPostgres}. */
export function fromPostgres(text: string): string {
  if (!text.includes(begin)) return text;
  return text.replace(written, (_, control?: string, surrogate?: string) => {
    if (surrogate !== undefined) return String.fromCharCode(Number.parseInt(surrogate, 16));
    return control === '\u0001' ? '\0' : '\u0001';
  });
}

/** Converts a JSON text (as JSON.stringify returns it) so that its strings are as {@link toPostgres} returns them. */
export function jsonToPostgres(json: string): string {
  if (!maySpecialJson.test(json)) return json;
  return json.replace(specialJson, (token, code?: string) => {
    if (code === undefined) return token;
    if (code === '0000') return '\\u0001\\u0001';
    return code === '0001' ? '\\u0001\\u0002' : `\\u0001\\u0003${code}`;
  });
}

/** Reverses {@link jsonToPostgres}. */
export function jsonFromPostgres(json: string): string {
  if (!json.includes('\\u0001')) return json;
  return json.replace(writtenJson, (token, control?: string, surrogate?: string) => {
    if (surrogate !== undefined) return `\\u${surrogate}`;
    if (control === undefined) return token;
    return control === '1' ? '\\u0000' : '\\u0001';
  });
}

/** An index entry in PostgreSQL holds at most 2,704 bytes, all columns together. */
const longestId = 700;
const longestValue = 1700;

/** Returns the column text of an id; a long id becomes its beginning and its hash. */
export const idText = (id: string): string => shortened(columnText(id), longestId);

/** Returns the column text of a key's value; long values are shortened as ids are. */
export const valueText = (value: string): string => shortened(columnText(value), longestValue);

function shortened(text: string, longest: number): string {
  if (text.length * 3 <= longest || Buffer.byteLength(text) <= longest) return text;
  // Cut without splitting a character, and shorter than any text that is not cut.
  const beginning = text.slice(0, Math.floor(longest / 4)).toWellFormed();
  return `${beginning}\n${sha256(text)}`;
}
