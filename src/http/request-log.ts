// Logs, traces and measures each request.
import type { Context, Middleware, Next } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Tracing } from '../runtime/tracing.ts';

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

/** Makes a span for each request. */
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
