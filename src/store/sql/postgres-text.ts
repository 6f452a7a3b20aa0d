// Text as PostgreSQL takes it: it keeps UTF-8 without the character NUL, in columns and in JSON, and JSON and the texts
// of this program may hold NUL and lone surrogates. Those are written in another form, which keeps their order, and so
// is the character that the form begins with.

import { sha256 } from '../../runtime/secrets.ts';
import { columnText } from './text.ts';

const begin = String.fromCharCode(1);
const special = new RegExp(`[\\0${begin}]|\\p{Surrogate}`, 'gu');
const written = new RegExp(`${begin}(?:([\\x01\\x02])|\\x03([0-9a-f]{4}))`, 'g');
/** Most texts have none: pairs of surrogates are found here, too, and looked at again. */
const maySpecial = new RegExp(`[\\0${begin}\\ud800-\\udfff]`);

const specialJson = /\\(?:u(0000|0001|d[89a-f][0-9a-f]{2})|.)/gs;
const maySpecialJson = /\\u(?:000[01]|d[89a-f])/;
const writtenJson = /\\u0001(?:\\u000([12])|\\u0003([0-9a-f]{4}))|\\./gs;

/** A text for a column or a parameter. */
export function toPostgres(text: string): string {
  if (!maySpecial.test(text)) return text;
  return text.replace(special, (one) => {
    if (one === '\0') return '\u0001\u0001';
    return one === '\u0001' ? '\u0001\u0002' : `\u0001\u0003${one.charCodeAt(0).toString(16)}`;
  });
}

/** A parameter as the client takes it: texts, and those of a list, as {@link toPostgres} makes them. */
export function parameterToPostgres(parameter: string | number | null | readonly string[]): unknown {
  if (typeof parameter === 'string') return toPostgres(parameter);
  return Array.isArray(parameter) ? parameter.map(toPostgres) : parameter;
}

/** What {@link toPostgres} was given. */
export function fromPostgres(text: string): string {
  if (!text.includes(begin)) return text;
  return text.replace(written, (_, control?: string, surrogate?: string) => {
    if (surrogate !== undefined) return String.fromCharCode(Number.parseInt(surrogate, 16));
    return control === '\u0001' ? '\0' : '\u0001';
  });
}

/** The same of a JSON text as JSON.stringify makes it, whose strings then are as {@link toPostgres} makes them. */
export function jsonToPostgres(json: string): string {
  if (!maySpecialJson.test(json)) return json;
  return json.replace(specialJson, (token, code?: string) => {
    if (code === undefined) return token;
    if (code === '0000') return '\\u0001\\u0001';
    return code === '0001' ? '\\u0001\\u0002' : `\\u0001\\u0003${code}`;
  });
}

/** What {@link jsonToPostgres} was given. */
export function jsonFromPostgres(json: string): string {
  if (!json.includes('\\u0001')) return json;
  return json.replace(writtenJson, (token, control?: string, surrogate?: string) => {
    if (surrogate !== undefined) return `\\u${surrogate}`;
    if (control === undefined) return token;
    return control === '1' ? '\\u0000' : '\\u0001';
  });
}

/** An index of PostgreSQL takes 2,704 bytes of all its columns together. */
const longestId = 700;
const longestValue = 1700;

/** An id as it is in a column: a long one by its beginning and its hash, which no other has. */
export const idText = (id: string): string => shortened(columnText(id), longestId);

/** The value of a key as it is in a column: as an id. */
export const valueText = (value: string): string => shortened(columnText(value), longestValue);

function shortened(text: string, longest: number): string {
  if (text.length * 3 <= longest || Buffer.byteLength(text) <= longest) return text;
  // Cut so that a character stays whole, and shorter than what is not cut.
  const beginning = text.slice(0, Math.floor(longest / 4)).toWellFormed();
  return `${beginning}\n${sha256(text)}`;
}
