// Creates the Koa application. Koa checks every object body with `instanceof Response`; the first such check makes
// Node.js load its fetch client, which takes 8 MB and 60 ms. JSON bodies are therefore kept away from that check.

import { createHash } from 'node:crypto';
import type http from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Random } from '../../runtime/secrets.ts';
import { createShares } from '../../runtime/shares.ts';
import type { Tracing } from '../../runtime/tracing.ts';
import { originOf } from '../addresses.ts';

// Logs, traces and measures each request.

interface RequestLogDependencies {
  log: Logger;
  clock: Clock;
  random: Random;
}

/**
 * Returns the middleware that logs each request, and also traces and measures it where those are on.
 * @param isProxy reports whether an address is a proxy's. Only a proxy may name the trace that a request belongs to.
 */
export function watchRequests(
  deps: RequestLogDependencies & {
    tracing?: Pick<Tracing, 'request'> | undefined;
    metrics?: { measures: RequestMeasures } | undefined;
  },
  isProxy: (address: string) => boolean,
): Middleware[] {
  const log = requestLog(deps, deps.metrics?.measures);
  return deps.tracing === undefined ? [log] : [traceRequests(deps.tracing, isProxy), log];
}

type RequestMeasures = Pick<Measures, 'requestBegan' | 'requestEnded'>;

/**
 * Logs a line per request at level debug, with the id that its error page shows. The query is left out because it may
 * hold codes and tokens.
 * @param measures also called for each request where metrics are on.
 */
function requestLog({ log, clock, random }: RequestLogDependencies, measures?: RequestMeasures): Middleware {
  // Makes the ids unique without using randomness for each request.
  const run = random(6).toString('base64url');
  let count = 0;
  const timed = async (ctx: Context, next: Next) => {
    const started = clock();
    // Read before `next`: the engine is handed the request with another method and path.
    const { method, path } = ctx;
    await next();
    const { status, ip, state } = ctx;
    const { requestId } = state;
    log.debug({ requestId, method, path, status, ms: clock() - started, ip }, 'request');
  };
  const logged: Middleware = (ctx, next) => {
    ctx.state.requestId = `${run}-${(++count).toString(36)}`;
    return log.isLevelEnabled('debug') ? timed(ctx, next) : next();
  };
  return measures === undefined ? logged : measured(logged, measures);
}

function traceRequests(
  { request }: Pick<Tracing, 'request'>,
  isProxy: (address: string) => boolean,
): Middleware {
  return (ctx, next) => {
    // Read before `next`: the engine is handed the request with another method.
    const { method } = ctx;
    const parent = isProxy(ctx.req.socket.remoteAddress ?? '') ? ctx.req.headers : undefined;
    return request(parent, next, () => ({
      method: METHODS.has(method) ? method : '_OTHER',
      route: routeOf(ctx.state),
      status: ctx.status,
    }));
  };
}

/** Other methods become `_OTHER`: a stranger could send any number of them. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const routeOf = ({ route }: Record<string, unknown>) => (typeof route === 'string' ? route : undefined);

/** Measures each request under the route that the router finds for it. */
function measured(inner: Middleware, { requestBegan, requestEnded }: RequestMeasures): Middleware {
  return async (ctx, next) => {
    const began = performance.now();
    // Read before the handler, as for traces.
    const { method } = ctx;
    requestBegan();
    try {
      await inner(ctx, next);
    } finally {
      const { status } = ctx;
      requestEnded({ method, route: routeOf(ctx.state), status }, (performance.now() - began) / 1000);
    }
  };
}

// Which parameters of a request carry a credential, judged by their name. What a stranger's request contains is passed on, to
// upstream providers and to actions, and a list of names would have gaps.

/** The last word of the name of a credential: `client_secret`, `session_transfer_token`, `code_verifier`, `passwd`. */
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set(
  `apikey assertion cookie credential credentials csrf jwt otp pass passcode passphrase passwd password pin proof pwd secret
  session signature ticket token totp verifier`.split(/\s+/),
);

/** Codes that prove something, and keys. Other names end so, too: `country_code`, `promo_code`, `sort_key`. */
const CREDENTIAL_ENDINGS = [
  /^(?:(?:auth|authorization|binding|connect|device|login|mfa|oob|otp|recovery|sms|user|verification)_?)?code$/,
  /(?:^|_)(?:access|api|private|secret|signing)_key$/,
];

/** Credentials, and messages that contain some, whose names do not say so. */
const OTHERS: ReadonlySet<string> = new Set([
  'auth_req_id',
  'authn_response',
  'id_token_hint',
  'repeat',
  'request',
  'request_uri',
  'samlrequest',
  'samlresponse',
]);

/** Whether a parameter with this name carries a credential, or a message that contains one. */
export function isCredentialName(name: string): boolean {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  const joined = words.join('_');
  return (
    CREDENTIAL_WORDS.has(words.at(-1) ?? '') ||
    CREDENTIAL_ENDINGS.some((ending) => ending.test(joined)) ||
    OTHERS.has(joined) ||
    OTHERS.has(name.toLowerCase())
  );
}

// Handles the requests of a connection one after the other. Node.js starts all pipelined requests (RFC 9112 §9.3.2) at
// once, so a few connections could stop the server for everybody.
// docs/understand/decisions/requests.md#requests-on-one-connection-are-handled-one-after-another

/** The maximum number of requests waiting behind the current one; browsers, proxies and SDKs do not pipeline. */
const MAX_WAITING = 8;

/** The number of refused requests after which the connection is cut: each costs memory until then. */
const MAX_REFUSED = 100;

interface Turns {
  busy: boolean;
  waiting: [IncomingMessage, ServerResponse][];
  /** The number of requests refused so far. */
  refused: number;
}

/**
 * Handles each connection's requests one after the other. A request too many gets 503 (RFC 9110 §15.6.4) after the
 * responses before it, and the connection closes.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Turns>();
  const take = (turns: Turns, request: IncomingMessage, response: ServerResponse): void => {
    // The connection may have closed while the request waited (RFC 9112 §9.6).
    if (!request.socket.writable) return;
    turns.busy = true;
    response.once('close', () => {
      turns.busy = false;
      const next = turns.waiting.shift();
      if (next !== undefined) take(turns, ...next);
    });
    handle(request, response);
  };
  return (request, response) => {
    const { socket } = request;
    const turns = connections.get(socket) ?? { busy: false, waiting: [], refused: 0 };
    connections.set(socket, turns);
    if (!turns.busy) take(turns, request, response);
    else if (turns.waiting.length < MAX_WAITING && turns.refused === 0)
      turns.waiting.push([request, response]);
    else refuse(turns, socket, response);
  };
}

function refuse(turns: Turns, socket: Socket, response: ServerResponse): void {
  turns.refused += 1;
  if (turns.refused > MAX_REFUSED) breakOff(socket);
  // Only the first one is answered: the connection closes before the turn of the others.
  if (turns.refused > 1) return;
  socket.pause();
  closeInStages(socket);
  response.writeHead(503, {
    'Retry-After': '1',
    'Cache-Control': 'no-store',
    'Content-Type': 'application/json; charset=utf-8',
    Connection: 'close',
  });
  response.end(
    JSON.stringify({
      error: 'temporarily_unavailable',
      error_description: 'Too many requests at once on one connection.',
    }),
  );
}

/**
 * Cuts a connection while data is still arriving. Node.js would first parse all that has arrived, maybe thousands of
 * requests. Its parser stops when its callback returns an unexpected value; that is not a public interface, but
 * without it the cut would only take longer.
 */
function breakOff(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming?: () => number } };
  if (parser !== undefined && parser !== null) parser.onIncoming = () => -1;
  socket.destroy();
}

// Closes connections whose request body is not read.

/** How long a connection still accepts data after its last answer, milliseconds. */
const LINGER_MS = 1_000;

/**
 * Closes the connection after answering a request whose unread body is long or endless, because the next request
 * would only come after it. Node.js skips a short body.
 * @param maxSkippedBytes the length of a body that is skipped, bytes.
 */
export function closeUnread(maxSkippedBytes: number): Middleware {
  return async ({ req, res }, next) => {
    await next();
    const { 'transfer-encoding': coding, 'content-length': length } = req.headers;
    if (req.complete || (coding === undefined && Number(length ?? 0) <= maxSkippedBytes)) return;
    if (!res.headersSent) res.setHeader('Connection', 'close');
    closeInStages(req.socket);
  };
}

/**
 * Closes a connection in two stages after its last response (RFC 9112 §9.6): our side at once, the rest a moment
 * later. Otherwise a reset could make the client's system discard the response.
 * @param socket the connection on which the last response, with `Connection: close`, is being sent.
 */
function closeInStages(socket: Socket): void {
  // Node.js calls this after the last answer.
  socket.destroySoon = () => {
    socket.end();
    const late = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(late));
  };
}

// Shares the connections of a server among its clients. A connection takes memory even if it says nothing, so there is a
// bound; beyond it, whoever has most gives one back, first those in which no request is in progress.

/** How often it is logged that connections are cut, milliseconds. */
const LOG_INTERVAL = 10_000;

interface Sharing {
  /** How many connections all servers together may have. */
  max: number;
  /** Whether an address is that of a trusted proxy, whose connections are those of many clients and are never cut. */
  isProxy(address: string): boolean;
  log: Pick<Logger, 'warn'>;
}

/** Shares the connections of some servers, from the moment they are accepted, also before a TLS handshake. */
export function shareConnections(
  servers: readonly http.Server[],
  { max, isProxy, log }: Sharing,
): { size(): number } {
  const shares = createShares<Socket>();
  const ofProxies = new Set<Socket>();
  /** The TLS socket of a request and the TCP socket below it have the same ports. */
  const byClient = new Map<string, Socket>();
  const size = () => shares.size() + ofProxies.size;
  const cuts = cutsLogged(log);
  const onConnection = (socket: Socket): void => {
    const { remoteAddress } = socket;
    // It has been closed meanwhile.
    if (remoteAddress === undefined) return void socket.destroy();
    const client = clientOf(socket);
    const forget = () => {
      ofProxies.delete(socket);
      shares.delete(socket);
      if (byClient.get(client) === socket) byClient.delete(client);
    };
    socket.once('close', forget);
    if (isProxy(remoteAddress)) ofProxies.add(socket);
    else {
      shares.add(socket, originOf(remoteAddress));
      byClient.set(client, socket);
    }
    if (size() <= max) return;
    const cut = shares.toGiveUp('oldest') ?? socket;
    cuts.count(cut.remoteAddress);
    shares.delete(cut);
    cut.destroy();
  };
  const onRequest = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    const socket = byClient.get(clientOf(request.socket));
    if (socket === undefined) return;
    shares.keep(socket);
    response.once('close', () => shares.release(socket));
  };
  for (const server of servers) server.on('connection', onConnection).on('request', onRequest);
  return { size };
}

const clientOf = ({ remoteAddress, remotePort, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localPort}`;

/** Logs who has too many connections, at most one line in ten seconds. */
function cutsLogged(log: Pick<Logger, 'warn'>): { count(address: string | undefined): void } {
  let last = -Infinity;
  let connections = 0;
  return {
    count: (address) => {
      connections += 1;
      if (performance.now() - last < LOG_INTERVAL) return;
      last = performance.now();
      const network = address === undefined ? undefined : originOf(address).network;
      log.warn({ connections, network }, 'there are too many connections: those of who has most are cut');
      connections = 0;
    },
  };
}

/** The Content-Type that Koa sets for JSON. */
const JSON_TYPE = 'application/json; charset=utf-8';

/** Creates a Koa application whose JSON bodies look as Koa sends them but do not load the fetch client. */
export function createApplication(log: Pick<Logger, 'warn'>): Koa {
  const app = new Koa();
  app.on('error', (error) => log.warn({ err: error }, 'a response could not be sent'));
  const koa = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(app.response), 'body');
  if (koa?.set === undefined) throw new Error('Koa sets bodies in another way');
  const { set } = koa;
  Object.defineProperty(app.response, 'body', {
    ...koa,
    set(this: Context['response'] & { _body: unknown }, body: unknown) {
      if (!isData(body)) return set.call(this, body);
      // Set first: otherwise Koa would look up the content type of a text, and then that of JSON.
      if (!/\bjson\b/i.test(this.type)) this.set('Content-Type', JSON_TYPE);
      // An empty text makes Koa set the status and dispose of a stream set before. The length is only known at the
      // end.
      set.call(this, '');
      this.remove('Content-Length');
      this._body = body;
    },
  });
  // The outermost middleware, so that the others may still change the body.
  app.use(async (ctx, next) => {
    await next();
    if (isData(ctx.body)) ctx.body = JSON.stringify(ctx.body);
  });
  return app;
}

/** Reports whether a body is an array or a plain object. */
function isData(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  if (Array.isArray(body)) return true;
  const prototype = Object.getPrototypeOf(body) as unknown;
  return prototype === Object.prototype || prototype === null;
}

// Sets the security headers of every response, and makes the content security policies of pages.

/** One year, in seconds. */
const HSTS_MAX_AGE = 31_536_000;

/** Content security policy of responses that are not pages. */
const DENY_ALL = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PERMISSIONS = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()';

// docs/understand/decisions/requests.md#hsts-is-not-sent-on-localhost
/**
 * Sets security headers on every response; a handler may override them.
 * Cross-Origin-Opener-Policy is left out: it applies to redirects, too, and an application's login popup must keep
 * its opener throughout (response_mode `web_message`).
 * @param options.hsts whether to send HSTS (RFC 6797). HSTS covers all ports of a host: on `localhost` it would break
 * other applications under development.
 */
export function securityHeaders({ hsts }: { hsts: boolean }): Middleware {
  const headers: [name: string, value: string][] = [
    ['Content-Security-Policy', DENY_ALL],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
    ['Permissions-Policy', PERMISSIONS],
    ['Referrer-Policy', 'no-referrer'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Frame-Options', 'DENY'],
  ];
  if (hsts) headers.unshift(['Strict-Transport-Security', `max-age=${HSTS_MAX_AGE}`]);
  return ({ res }, next) => {
    // `ctx.set` would cost twice as much, and every response needs all of these.
    for (const [name, value] of headers) res.setHeader(name, value);
    return next();
  };
}

interface PagePolicy {
  /** Base64, new for each response. */
  nonce: string;
  // docs/understand/decisions/login-pages.md#pages-whose-form-can-end-at-an-application-or-a-provider-have-no-form-action
  /**
   * Whether a form of the page may lead to an application or a provider. Chromium applies form-action to all redirects after a
   * post, also to those of the application, whose callback may send the browser on to any host or to a desktop application
   * (a private-use scheme): no list of sources contains where that ends, so such a page has no form-action.
   */
  formsLeave: boolean;
  /** The address of the page's font, when it is on another origin. */
  font?: string | undefined;
  /** Addresses of images on other origins; `any` when they are not known. */
  images: readonly string[] | 'any';
  /** Addresses on other origins that the page frames. */
  frames?: readonly string[];
  /** Whether the page calls or frames this server. */
  connects: boolean;
}

/** Returns the policy of a page: only scripts and styles with the nonce, and no framing. */
export function pagePolicy({ nonce, formsLeave, frames = [], images, font, connects }: PagePolicy): string {
  const framed = new Set([...(connects ? ["'self'"] : []), ...frames.map(cspSource)]);
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self'", 'data:', ...imageSources(images)].join(' ')}`,
    ...(font === undefined ? [] : [`font-src ${cspSource(font)}`]),
    ...(connects ? ["connect-src 'self'", "manifest-src 'self'", "worker-src 'self'"] : []),
    ...(framed.size > 0 ? [`frame-src ${[...framed].join(' ')}`] : []),
    ...(formsLeave ? [] : ["form-action 'self'"]),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

// docs/understand/decisions/console-account.md#a-preview-of-a-hosted-page-is-the-page-itself-in-a-sandboxed-frame
/**
 * Returns the policy of a preview, a page shown in a frame of its own origin: it cannot run scripts, send forms or
 * open windows. The sandbox keeps its origin, without which browsers would not load this server's images.
 */
export function previewPolicy({
  nonce,
  images,
  font,
}: Pick<PagePolicy, 'nonce' | 'images' | 'font'>): string {
  return [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self'", 'data:', ...imageSources(images)].join(' ')}`,
    ...(font === undefined ? [] : [`font-src ${cspSource(font)}`]),
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-same-origin',
  ].join('; ');
}

/** Only https addresses are kept: pages load no others. */
function imageSources(images: PagePolicy['images']): string[] {
  if (images === 'any') return ['https:'];
  const secure = images.filter((address) => URL.parse(address)?.protocol === 'https:');
  return [...new Set(secure.map(cspSource))];
}

// docs/understand/decisions/login-pages.md#a-customized-login-page-runs-in-gatehouses-origin
/**
 * Returns the policy of a customized login page, whose form leads to the application. It allows scripts with the nonce, and loading from and calling this server
 * and the origins that the page names. Inline handlers and eval are forbidden, so that injected request values cannot
 * run.
 * @param sources the origins that the page names.
 */
export function customPagePolicy({
  nonce,
  sources,
}: Pick<PagePolicy, 'nonce'> & { sources: readonly string[] }): string {
  const allowed = ["'self'", ...new Set(sources)].join(' ');
  return [
    `default-src ${allowed} data:`,
    `script-src 'nonce-${nonce}' ${allowed}`,
    `style-src 'unsafe-inline' ${allowed}`,
    "object-src 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/**
 * Returns an address as a CSP source: its origin, or its scheme for a private-use scheme (`com.example.app:`) or an
 * IPv6 host, which the CSP grammar lacks. A host name may contain the characters that end a directive or a policy;
 * percent-encoded, they make a source that matches nothing.
 * @throws TypeError when it is not a URL.
 */
export function cspSource(address: string): string {
  const { origin, protocol, hostname } = new URL(address);
  if (origin === 'null' || hostname.startsWith('[')) return protocol;
  return origin.replaceAll(';', '%3B').replaceAll(',', '%2C');
}

/** Returns an inline script as a CSP source, by its hash (CSP Level 3 §2.3.1). */
export function cspHash(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
