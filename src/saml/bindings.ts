// HTTP-Redirect and HTTP-POST (SAML Bindings §3.4, §3.5): how messages travel through the browser.
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Element } from '@xmldom/xmldom';
import type { Context } from 'koa';
import { bodyObject } from '../http/body-fields.ts';
import type { Views } from '../pages/views.ts';
import { type Parameter, type Parameters, readFormParameters, readParameters } from './query.ts';
import {
  type SignedQuery,
  type Signer,
  signQuery,
  type Verifier,
  verifyEnveloped,
  verifyQuery,
} from './signature.ts';
import { badMessage, LARGEST_MESSAGE, parseXml } from './xml.ts';

/** The standard's 80 bytes are kept by few: service providers put whole addresses in. */
const LONGEST_RELAY_STATE = 2048;

/** A message as it came; nothing of it is verified. */
export interface Received {
  kind: 'request' | 'response';
  bytes: Buffer;
  relayState: string | undefined;
  /** A post is signed inside, a redirect beside the message. */
  binding: 'post' | 'redirect';
  query?: SignedQuery;
}

/**
 * The message of a request.
 * @returns undefined when it brings none.
 * @throws AuthError 400 for two at once, or what cannot be decoded.
 */
export function receive(ctx: Context): Received | undefined {
  const parameters = ctx.method === 'POST' ? formOf(ctx) : readParameters(ctx.querystring);
  const { SAMLRequest: request, SAMLResponse: response } = parameters;
  const relayState = relayStateOf(parameters);
  const message = request ?? response;
  if (message === undefined) return undefined;
  if (request !== undefined && response !== undefined) {
    throw badMessage('A SAMLRequest and a SAMLResponse cannot come together.');
  }
  const kind = request === undefined ? 'response' : 'request';
  const encoded = fromBase64(message.value, parameterOf(kind));
  if (ctx.method === 'POST') return { kind, bytes: unpacked(encoded), relayState, binding: 'post' };
  if (!['', ENCODING].includes(parameters.SAMLEncoding?.value ?? '')) {
    throw badMessage('This SAMLEncoding is not known.');
  }
  const query = signedQuery(message, parameters);
  const bytes = inflate(encoded);
  return { kind, bytes, relayState, binding: 'redirect', ...(query === undefined ? {} : { query }) };
}

const ENCODING = 'urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE';

/** Whatever else a body may be: the binding has forms alone (Bindings §3.5.4). */
function formOf(ctx: Context): Parameters {
  return ctx.is('application/x-www-form-urlencoded') ? readFormParameters(bodyObject(ctx)) : {};
}

/** @throws AuthError 400 when it is too long. */
function relayStateOf({ RelayState: given }: Parameters): string | undefined {
  if (given !== undefined && Buffer.byteLength(given.value) > LONGEST_RELAY_STATE) {
    throw badMessage('RelayState is too long.');
  }
  return given?.value;
}

/** RelayState of a request that brings no message. @throws AuthError 400 when it is too long. */
export function relayStateAlone(ctx: Context): string | undefined {
  return relayStateOf(readParameters(ctx.querystring));
}

function fromBase64(value: string, name: string): Buffer {
  const text = value.replaceAll(/\s/g, '');
  if (text === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw badMessage(`${name} is not base64.`);
  return Buffer.from(text, 'base64');
}

/**
 * A posted message. The binding has it as it is (Bindings §3.5.4); passport-saml and its like deflate it first,
 * as for a redirect, unless they are told not to.
 */
function unpacked(bytes: Buffer): Buffer {
  return /^(\ufeff|\s)*</.test(bytes.toString('utf8', 0, 64)) ? bytes : inflate(bytes);
}

function inflate(bytes: Buffer): Buffer {
  try {
    // Stops at the limit: what would be larger is never made.
    return inflateRawSync(bytes, { maxOutputLength: LARGEST_MESSAGE });
  } catch (thrown) {
    throw badMessage('The SAML message is neither XML nor deflated, or is too large.', thrown);
  }
}

/** The signed part of a query, in the octets and the order that the sender signed (Bindings §3.4.4.1). */
function signedQuery(message: Parameter, parameters: Parameters): SignedQuery | undefined {
  const { RelayState: relayState, SigAlg: algorithm, Signature: signature } = parameters;
  if (signature === undefined || algorithm === undefined) return undefined;
  const octets = [message, relayState, algorithm].flatMap((one) => one?.raw ?? []).join('&');
  return { octets, algorithm: algorithm.value, signature: signature.value };
}

/**
 * Parses a message and verifies its signature where there is a verifier.
 * @returns the root element: of what was signed, if it had to be.
 * @throws AuthError 400 when it is no XML, or not signed as it must be.
 */
export function open(received: Received, verifier: Verifier | undefined): Element {
  const root = parseXml(received.bytes);
  if (verifier === undefined) return root;
  if (received.binding === 'post') return verifyEnveloped(received.bytes.toString('utf8'), root, verifier);
  verifyQuery(received.query, verifier);
  return root;
}

/** A message of ours, on its way out. */
export interface Outgoing {
  kind: 'request' | 'response';
  /** Signed already, where it goes by post. */
  markup: string;
  relayState: string | undefined;
  /** Where it goes. */
  location: string;
}

const parameterOf = (kind: Outgoing['kind']) => (kind === 'request' ? 'SAMLRequest' : 'SAMLResponse');

/** Sends by a page whose form posts itself, or is posted by its button. @param client whom the page names. */
export function sendByPost(
  ctx: Context,
  views: Views,
  message: Outgoing,
  client: { name: string },
): Promise<void> {
  const { kind, markup, relayState, location } = message;
  return views.page(
    ctx,
    'saml/post',
    {
      client: { name: client.name },
      action: location,
      parameter: parameterOf(kind),
      message: Buffer.from(markup).toString('base64'),
      relayState,
    },
    { formAction: location },
  );
}

/** Sends by redirect, signed. */
export function sendByRedirect(
  ctx: Context,
  { kind, markup, relayState, location }: Outgoing,
  signer: Signer,
) {
  const encoded = encodeURIComponent(deflateRawSync(markup).toString('base64'));
  const state = relayState === undefined ? '' : `&RelayState=${encodeURIComponent(relayState)}`;
  const query = signQuery(`${parameterOf(kind)}=${encoded}${state}`, signer);
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(`${location}${location.includes('?') ? '&' : '?'}${query}`);
}
