// The parameters of HTTP-Redirect (SAML Bindings §3.4.4), parsed once: the verified octets and the used value come from
// the same piece of the query, so that two parsers cannot disagree about what was signed.
import { badMessage } from './xml.ts';

const NAMES = ['SAMLRequest', 'SAMLResponse', 'RelayState', 'SAMLEncoding', 'SigAlg', 'Signature'] as const;

type ParameterName = (typeof NAMES)[number];

/** A parameter, raw and decoded. */
export interface Parameter {
  /** `name=value` as sent: what a signature covers. */
  raw: string;
  value: string;
}

export type Parameters = Partial<Record<ParameterName, Parameter>>;

/**
 * Returns the SAML parameters of a query. Others are ignored.
 * @param query without the question mark, as received.
 * @throws AuthError 400 when one occurs twice, has an escaped name, or cannot be decoded: a name that only one of
 *   two parsers recognizes would let an unsigned value in.
 */
export function readParameters(query: string): Parameters {
  const parameters: Parameters = {};
  for (const raw of query.split('&')) {
    const [writtenName = ''] = raw.split('=', 1);
    const name = NAMES.find((known) => known === decode(writtenName));
    if (name === undefined) continue;
    if (writtenName !== name) throw badMessage(`The name of ${name} must be written without escapes.`);
    if (parameters[name] !== undefined) throw repeatedParameter();
    const value = decode(raw.slice(writtenName.length + 1));
    if (value === undefined) throw badMessage(`${name} cannot be decoded.`);
    parameters[name] = { raw, value };
  }
  return parameters;
}

/**
 * Returns the SAML parameters of a form. Only the message in them is signed.
 * @param form the parsed body.
 * @throws AuthError 400 when one occurs twice, or is not a string.
 */
export function readFormParameters(form: Readonly<Record<string, unknown>>): Parameters {
  const parameters: Parameters = {};
  for (const name of NAMES) {
    const value = Object.hasOwn(form, name) ? form[name] : undefined;
    if (value === undefined) continue;
    if (typeof value !== 'string') throw repeatedParameter();
    parameters[name] = { raw: '', value };
  }
  return parameters;
}

function repeatedParameter() {
  return badMessage('The SAML parameters must come once.');
}

/** Percent-decodes (RFC 3986 §2.1). @returns undefined when malformed or not UTF-8. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
