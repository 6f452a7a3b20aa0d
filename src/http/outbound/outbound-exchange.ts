// Sends one request over a connection to a checked address, and reads its response.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import zlib from 'node:zlib';
import { OutboundError } from './outbound-error.ts';

interface Exchange {
  request: Request;
  body: Buffer | undefined;
  agent: http.Agent;
  /** The host to connect to, instead of that of the address. */
  peer?: URL;
  lookup: LookupFunction;
  signal: AbortSignal;
  /** The maximum size of the body, decompressed, bytes. */
  maxBytes: number;
  /** Whether to return without the body. */
  headOnly: boolean;
}

/** Headers of the connection rather than the request (RFC 9110 §7.6.1), and those that are computed here. */
const CONNECTION_HEADERS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'host',
  'content-length',
];
/** Statuses without a body (Fetch standard, "null body status"). */
const NULL_BODY_STATUSES = new Set([101, 204, 205, 304]);

/** Sends the request and reads the response. @throws OutboundError when either fails. */
export async function exchange(options: Exchange): Promise<Response> {
  const { request, signal, maxBytes, headOnly } = options;
  const message = await send(options);
  const { statusCode = 0, statusMessage = '', rawHeaders } = message;
  if (statusCode < 200 || statusCode > 599) {
    message.destroy();
    throw new OutboundError('invalid', `${hostOf(request)} answered with the status ${statusCode}`);
  }
  const isEmpty = headOnly || request.method === 'HEAD' || NULL_BODY_STATUSES.has(statusCode);
  if (isEmpty) message.destroy();
  const body = isEmpty ? null : await read(message, request, signal, maxBytes);
  const response = new Response(body, {
    status: statusCode,
    headers: headersOf(rawHeaders),
    statusText: safe(statusMessage),
  });
  Object.defineProperty(response, 'url', { value: request.url });
  return response;
}

/** Resolves with the head of the response. */
function send({ request, body, agent, peer, lookup, signal }: Exchange): Promise<IncomingMessage> {
  const url = new URL(request.url);
  const headers = new Headers(request.headers);
  for (const name of CONNECTION_HEADERS) headers.delete(name);
  if (!headers.has('user-agent')) headers.set('user-agent', 'Gatehouse');
  if (!headers.has('accept')) headers.set('accept', '*/*');
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'gzip, deflate, br');
  const sent = Object.fromEntries(headers);
  if (body !== undefined || ['POST', 'PUT', 'PATCH'].includes(request.method)) {
    sent['content-length'] = String(body?.length ?? 0);
  }
  const options = {
    method: request.method,
    headers: sent,
    agent,
    lookup,
    signal,
    ...(peer && placeOf(peer, url, sent)),
  };
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? https : http).request(url, options, resolve);
    outgoing.once('error', (cause) => {
      reject(new OutboundError('unreachable', `${url.host} could not be reached`, { cause }));
    });
    outgoing.end(body);
  });
}

/** Returns the options by which a request for one host is sent to another. */
function placeOf(
  { hostname, port }: URL,
  { host, hostname: servername }: URL,
  headers: Record<string, string>,
) {
  return { hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port, servername, headers: { ...headers, host } };
}

/** Reads and decompresses the body. @throws OutboundError when it is too large or breaks off. */
async function read(message: IncomingMessage, request: Request, signal: AbortSignal, maxBytes: number) {
  const host = hostOf(request);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of decoded(message) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw new OutboundError('too-large', `${host} answered with too large a body`);
      chunks.push(chunk);
    }
  } catch (cause) {
    message.destroy();
    if (cause instanceof OutboundError || signal.aborted) throw cause;
    throw new OutboundError('invalid', `the answer of ${host} broke off`, { cause });
  }
  return Buffer.concat(chunks, length);
}

function decoded(message: IncomingMessage): Readable {
  const decoder = decoderOf(message.headers['content-encoding']?.trim().toLowerCase());
  // A decoder's error surfaces where the body is read.
  return decoder === undefined ? message : pipeline(message, decoder, () => {});
}

function decoderOf(encoding: string | undefined) {
  if (encoding === 'gzip' || encoding === 'x-gzip') return zlib.createGunzip();
  if (encoding === 'deflate') return zlib.createInflate();
  if (encoding === 'br') return zlib.createBrotliDecompress();
  return undefined;
}

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < raw.length; at += 2) headers.append(raw[at] ?? '', safe(raw[at + 1] ?? ''));
  return headers;
}

/** Replaces characters that a header must not have; llhttp lets some of them pass. */
const safe = (text: string) => text.replace(/[\0\r\n]/g, ' ');

const hostOf = (request: Request) => new URL(request.url).host;
