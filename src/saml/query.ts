// The parameters of HTTP-Redirect (SAML Bindings §3.4.4), read once: what is verified and what is used are the
// same piece of the query, so that no second reading of it can find something that nobody signed.
import { badMessage } from './xml.ts';

const NAMES = ['SAMLRequest', 'SAMLResponse', 'RelayState', 'SAMLEncoding', 'SigAlg', 'Signature'] as const;

export type ParameterName = (typeof NAMES)[number];

/** A parameter as it was sent, and what it means. */
export interface Parameter {
  /** `name=value`, in the octets of the query: what a signature is of. */
  raw: string;
  /** Decoded. */
  value: string;
}

export type Parameters = Partial<Record<ParameterName, Parameter>>;

/**
 * The SAML parameters of a query; what else there is in it is left alone.
 * @param query without the question mark, as it came.
 * @throws AuthError 400 when one comes twice, under an escaped name, or cannot be decoded: a name that the
 *   signature's reader and the value's reader do not both know would let an unsigned value in.
 */
export function readParameters(query: string): Parameters {
  const found: Parameters = {};
  for (const raw of query.split('&')) {
    const [written = ''] = raw.split('=', 1);
    const name = NAMES.find((known) => known === decode(written));
    if (name === undefined) continue;
    if (written !== name) throw badMessage(`The name of ${name} must be written without escapes.`);
    if (found[name] !== undefined) throw twice();
    const value = decode(raw.slice(written.length + 1));
    if (value === undefined) throw badMessage(`${name} cannot be decoded.`);
    found[name] = { raw, value };
  }
  return found;
}

/**
 * The SAML parameters of a form. Nothing of it is signed but the message, inside.
 * @param form as the body parser read it.
 * @throws AuthError 400 when one comes twice, or is no text.
 */
export function readFormParameters(form: Readonly<Record<string, unknown>>): Parameters {
  const found: Parameters = {};
  for (const name of NAMES) {
    const value = Object.hasOwn(form, name) ? form[name] : undefined;
    if (value === undefined) continue;
    if (typeof value !== 'string') throw twice();
    found[name] = { raw: '', value };
  }
  return found;
}

function twice() {
  return badMessage('The SAML parameters must come once.');
}

/** @returns undefined for what is no UTF-8 in percent-encoding (RFC 3986 §2.1). */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
