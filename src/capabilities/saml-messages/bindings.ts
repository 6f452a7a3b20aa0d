// The HTTP-Redirect and HTTP-POST bindings (SAML Bindings §3.4, §3.5).
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Context } from 'koa';
import { bodyObject } from '../../http/server/body.ts';
import { declarePage, type Views } from '../pages/views.ts';
import { parseXml, textOfMessage, verifyRoot } from './reader.ts';
import { SMALL } from './scan.ts';
import { allowedAlgorithm, SIGNATURE_URI, type Signer, type Verifier, wrongSignature } from './signature.ts';
import { isSignedBy } from './verification.ts';
import { badMessage, type XmlElement } from './xml.ts';

/** The standard allows 80 bytes, but service providers put whole URLs in. */
const MAX_RELAY_STATE_LENGTH = 2048;

/** A message as received, not verified yet. */
export interface ReceivedMessage {
  kind: 'request' | 'response';
  text: string;
  relayState: string | undefined;
  /** A posted message has an enveloped signature; a redirect has a signature in the query. */
  binding: 'post' | 'redirect';
  query?: SignedQuery;
}

/**
 * @returns undefined when it has none.
 * @throws AuthError 400 when it has both a request and a response, or one that cannot be decoded.
 */
export function receive(ctx: Context): ReceivedMessage | undefined {
  const parameters = ctx.method === 'POST' ? formOf(ctx) : readParameters(ctx.querystring);
  const { SAMLRequest: request, SAMLResponse: response } = parameters;
  const relayState = relayStateOf(parameters);
  const message = request ?? response;
  if (message === undefined) return undefined;
  if (request !== undefined && response !== undefined) {
    throw badMessage('A SAMLRequest and a SAMLResponse cannot come together.');
  }
  const kind = request === undefined ? 'response' : 'request';
  if (ctx.method === 'POST') {
    return { kind, text: postedMessage(message.value, kind), relayState, binding: 'post' };
  }
  const encoded = fromBase64(message.value, parameterOf(kind));
  if (!['', ENCODING].includes(parameters.SAMLEncoding?.value ?? '')) {
    throw badMessage('This SAMLEncoding is not known.');
  }
  const query = signedQuery(message, parameters);
  const text = textOfMessage(inflate(encoded));
  return { kind, text, relayState, binding: 'redirect', ...(query === undefined ? {} : { query }) };
}

const ENCODING = 'urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE';

/** Returns the parameters of a form. Other content types have none (Bindings §3.5.4). */
function formOf(ctx: Context): Parameters {
  return ctx.is('application/x-www-form-urlencoded') ? readFormParameters(bodyObject(ctx)) : {};
}

/** @throws AuthError 400 when it is too long. */
function relayStateOf({ RelayState: parameter }: Parameters): string | undefined {
  if (parameter !== undefined && Buffer.byteLength(parameter.value) > MAX_RELAY_STATE_LENGTH) {
    throw badMessage('RelayState is too long.');
  }
  return parameter?.value;
}

/**
 * Returns the RelayState of an IdP-initiated login, which has no message.
 * @throws AuthError 400 when it is too long.
 */
export function relayStateOfQuery(ctx: Context): string | undefined {
  return relayStateOf(readParameters(ctx.querystring));
}

function fromBase64(value: string, name: string): Buffer {
  const text = value.replaceAll(/\s/g, '');
  if (text === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw badMessage(`${name} is not base64.`);
  return Buffer.from(text, 'base64');
}

/**
 * Decodes a posted message. The binding does not compress it (Bindings §3.5.4), but passport-saml deflates it by
 * default.
 * @param value the form field.
 * @throws AuthError 400 when it cannot be decoded.
 */
export function postedMessage(value: string, kind: ReceivedMessage['kind'], limits = SMALL): string {
  const bytes = fromBase64(value, parameterOf(kind));
  const isXml = bytes.toString('utf8', 0, 64).trimStart().startsWith('<');
  return textOfMessage(isXml ? bytes : inflate(bytes, limits));
}

function inflate(bytes: Buffer, { bytes: maxOutputLength } = SMALL): Buffer {
  try {
    // Inflating stops at the limit, so a small message cannot fill the memory.
    return inflateRawSync(bytes, { maxOutputLength });
  } catch (thrown) {
    throw badMessage('The SAML message is neither XML nor deflated, or is too large.', thrown);
  }
}

/** Returns the signed octets of a query, in the order of Bindings §3.4.4.1. */
function signedQuery(message: Parameter, parameters: Parameters): SignedQuery | undefined {
  const { RelayState: relayState, SigAlg: algorithm, Signature: signature } = parameters;
  if (signature === undefined || algorithm === undefined) return undefined;
  const octets = [message, relayState, algorithm].flatMap((one) => one?.raw ?? []).join('&');
  return { octets, algorithm: algorithm.value, signature: signature.value };
}

/**
 * Reads a message, and verifies its signature if there is a verifier.
 * @returns the root element; with a verifier, that of the signed content.
 * @throws AuthError 400 when it is not XML, or not signed as required.
 */
export function verifyMessage(received: ReceivedMessage, verifier: Verifier | undefined): XmlElement {
  if (verifier === undefined) return parseXml(received.text);
  if (received.binding === 'post') return verifyRoot(received.text, verifier);
  // The query is verified as it was sent, so nothing of a stranger's message is parsed.
  verifyQuery(received.query, verifier);
  return parseXml(received.text);
}

export interface OutgoingMessage {
  kind: 'request' | 'response';
  /** Already signed, if it is posted. */
  markup: string;
  relayState: string | undefined;
  /** The URL that it is sent to. */
  location: string;
}

const parameterOf = (kind: OutgoingMessage['kind']) => (kind === 'request' ? 'SAMLRequest' : 'SAMLResponse');

interface SamlPostModel {
  client: { name: string };
  action: string;
  parameter: string;
  message: string;
  relayState: string | undefined;
}

export const SAML_POST_PAGE = declarePage<SamlPostModel>('saml/post');

/**
 * Sends a page with a form that posts itself, or by its button without JavaScript.
 * @param client shown on the page.
 */
export function sendByPost(
  ctx: Context,
  views: Views,
  message: OutgoingMessage,
  client: { name: string },
): Promise<void> {
  const { kind, markup, relayState, location } = message;
  return views.page(
    ctx,
    SAML_POST_PAGE,
    {
      client: { name: client.name },
      action: location,
      parameter: parameterOf(kind),
      message: Buffer.from(markup).toString('base64'),
      relayState,
    },
    { formsLeave: true },
  );
}

export async function sendByRedirect(ctx: Context, message: OutgoingMessage, signer: Signer): Promise<void> {
  const address = await redirectAddress(message, signer);
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(address);
}

/**
 * Returns the URL of a message for HTTP-Redirect.
 * @param signer signs the query (Bindings §3.4.4.1); undefined for no signature.
 * @param deflate false for receivers that, against the standard, expect uncompressed messages.
 */
export async function redirectAddress(
  { kind, markup, relayState, location }: OutgoingMessage,
  signer: Signer | undefined,
  deflate = true,
): Promise<string> {
  const bytes = deflate ? deflateRawSync(markup) : Buffer.from(markup);
  const state = relayState === undefined ? '' : `&RelayState=${encodeURIComponent(relayState)}`;
  const query = `${parameterOf(kind)}=${encodeURIComponent(bytes.toString('base64'))}${state}`;
  const finalQuery = signer === undefined ? query : await signQuery(query, signer);
  return `${location}${location.includes('?') ? '&' : '?'}${finalQuery}`;
}

// Signatures of messages in a query (SAML 2.0 Bindings §3.4.4.1).

/** A signed query. The signature covers its octets as sent (Bindings §3.4.4.1). */
interface SignedQuery {
  octets: string;
  /** URI, decoded. */
  algorithm: string;
  /** Base64, decoded from the query. */
  signature: string;
}

/** @throws AuthError 400 when it is missing or invalid. */
export function verifyQuery(query: SignedQuery | undefined, verifier: Verifier): void {
  if (query === undefined) throw badMessage('The SAML message must be signed.');
  const algorithm = allowedAlgorithm(query.algorithm, verifier);
  const octets = Buffer.from(query.octets, 'latin1');
  if (!isSignedBy(verifier, algorithm, octets, query.signature)) throw wrongSignature();
}

/** Adds `SigAlg` and `Signature` to a query. @param query SAMLRequest or SAMLResponse, and RelayState. */
export async function signQuery(query: string, { sign, signatureAlgorithm }: Signer): Promise<string> {
  const octets = `${query}&SigAlg=${encodeURIComponent(SIGNATURE_URI[signatureAlgorithm])}`;
  const signature = Buffer.from(await sign(signatureAlgorithm, Buffer.from(octets))).toString('base64');
  return `${octets}&Signature=${encodeURIComponent(signature)}`;
}

// The parameters of HTTP-Redirect (SAML Bindings §3.4.4), parsed once: the verified octets and the used value come from
// the same piece of the query, so that two parsers cannot disagree about what was signed.

const NAMES = ['SAMLRequest', 'SAMLResponse', 'RelayState', 'SAMLEncoding', 'SigAlg', 'Signature'] as const;

type ParameterName = (typeof NAMES)[number];

/** A parameter, raw and decoded. */
interface Parameter {
  /** `name=value` as sent: what a signature covers. */
  raw: string;
  value: string;
}

type Parameters = Partial<Record<ParameterName, Parameter>>;

/**
 * Returns the SAML parameters of a query. Others are ignored.
 * @param query without the question mark, as received.
 * @throws AuthError 400 when one occurs twice, has an escaped name, or cannot be decoded: a name that only one of
 *   two parsers recognizes would let an unsigned value in.
 */
function readParameters(query: string): Parameters {
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
function readFormParameters(form: Readonly<Record<string, unknown>>): Parameters {
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
