// The only entrance to the engine. Its router ignores case and trailing slashes and treats HEAD as GET, so it only
// gets requests that our endpoints have checked.
import type { IncomingMessage } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context, Middleware } from 'koa';
import mount from 'koa-mount';
import type Provider from 'oidc-provider';
import { AuthError, isBusy } from '../../http/errors.ts';
import { authenticationMethod } from '../../records/clients/client-authentication.ts';
import { isSameSecret, sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';

/** Passes a checked request to the engine. */
export type EnterEngine = (ctx: Context) => Promise<void>;

/**
 * Makes the engine refuse every request except through the returned function.
 * @param renew called before each request.
 * @param readBasic rewrites credentials of HTTP Basic in the form that the engine reads.
 * @throws AuthError, at the request: 404 for others; 503 when something was busy, which the engine would answer as
 *   a server error.
 */
export function engineEntrance(
  provider: Provider,
  renew: () => Promise<void> | undefined,
  readBasic: ReadBasic,
): EnterEngine {
  const admitted = new WeakMap<IncomingMessage, string>();
  const guard: Middleware = async (ctx, next) => {
    // Once, and only for the admitted address.
    const request = admitted.get(ctx.req);
    admitted.delete(ctx.req);
    if (request !== requestOf(ctx)) throw new AuthError(404, 'not_found', 'There is nothing here.');
    await next();
  };
  provider.use(guard);
  const busy = new WeakMap<IncomingMessage, AuthError>();
  provider.on('server_error', (ctx, error) => {
    if (error instanceof AuthError && isBusy(error)) busy.set(ctx.req, error);
  });
  const run = mount(provider);
  return async (ctx) => {
    const renewed = renew();
    if (renewed !== undefined) await renewed;
    const read = readBasic(ctx);
    if (read !== undefined) await read;
    admitted.set(ctx.req, requestOf(ctx));
    await run(ctx, async () => undefined);
    const error = busy.get(ctx.req);
    if (error !== undefined) throw error;
  };
}

function requestOf(ctx: Context): string {
  return `${ctx.method} ${ctx.url}`;
}

// The credentials of an application in HTTP Basic. By RFC 6749 §2.3.1 both are form-encoded first; the contract and
// many clients send them as they are. The two forms differ where a value contains `%` or `+`.
// docs/understand/decisions/clients-keys.md#http-basic-is-read-in-two-forms

interface Credentials {
  id: string;
  secret: string;
}

/** @see basicReader */
export type ReadBasic = (ctx: Pick<Context, 'req'>) => Promise<void> | undefined;

/**
 * Makes the function that decides in which form a request's credentials are, and rewrites its header in the encoded
 * form, the only one that the engine reads. The encoded form is tried first. Both are compared with the secret
 * itself, so that no other text is accepted for it. Each request is read once: its rewritten header has two readings
 * again.
 */
export function basicReader(config: Pick<Config, 'client'>): ReadBasic {
  const read = new WeakSet<IncomingMessage>();
  return ({ req }) => {
    if (read.has(req)) return undefined;
    read.add(req);
    const readings = readingsOf(req.headers.authorization ?? '');
    return readings.length === 0 ? undefined : rewrite(config, req, readings);
  };
}

async function rewrite(
  config: Pick<Config, 'client'>,
  req: IncomingMessage,
  readings: readonly Credentials[],
): Promise<void> {
  // All are compared whichever fits, so that the time does not depend on it.
  const fits = await Promise.all(readings.map((one) => fitOf(config, one)));
  const best = Math.max(...fits);
  const { id = '', secret = '' } = readings[fits.indexOf(best)] ?? {};
  const text = `${encodeURIComponent(id)}:${encodeURIComponent(secret)}`;
  req.headers.authorization = `Basic ${Buffer.from(text).toString('base64')}`;
}

/** Returns how well a reading fits: 2 if the secret is the application's, 1 if there is such an application, else 0. */
async function fitOf({ client: find }: Pick<Config, 'client'>, { id, secret }: Credentials): Promise<number> {
  const client = await find(id);
  if (client === undefined) return 0;
  const hasSecret = authenticationMethod(client).startsWith('client_secret_');
  return hasSecret && isSameSecret(sha256(client.client_secret ?? ''), sha256(secret)) ? 2 : 1;
}

/** Returns what a header may mean, the standard's form first; nothing where there is only one form. */
function readingsOf(header: string): Credentials[] {
  const [scheme, value = '', ...others] = header.split(' ');
  if (scheme?.toLowerCase() !== 'basic' || others.length > 0) return [];
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return [];
  const text = Buffer.from(value, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon === -1 || !/[%+]/.test(text)) return [];
  const raw = { id: text.slice(0, colon), secret: text.slice(colon + 1) };
  const decoded = decodedForm(raw);
  return decoded === undefined ? [raw] : [decoded, raw];
}

/** Returns the values of the encoded form; undefined if it is not properly encoded. */
function decodedForm({ id, secret }: Credentials): Credentials | undefined {
  try {
    return { id: decode(id), secret: decode(secret) };
  } catch {
    return undefined;
  }
}

const decode = (text: string) => decodeURIComponent(text.replaceAll('+', '%20'));

// Gives the engine the parameters that our endpoints have read from a request's body. The engine would read the
// body again, and as a form only.

/** The engine's request class. */
interface RequestClass {
  prototype: object;
}

const parsedBody = Symbol('given parameters');
const body = Symbol('body');

interface ParsedBodyContext {
  state: { [parsedBody]?: ParsedUrlQuery };
}

/**
 * Gives the engine these parameters in place of those of the body.
 * @param fields in the form of a parsed form: strings, and lists of strings.
 */
export function setParsedBody(ctx: Context, fields: ParsedUrlQuery): void {
  // Like the result of a form parser: without a prototype, and a copy that the engine may change.
  (ctx as ParsedBodyContext).state[parsedBody] = Object.assign(Object.create(null), fields);
  // Without a content type the engine does not try to read the body.
  ctx.req.headers['content-type'] = '';
}

/** Makes the engine read the parameters that it was given. @param model its request class. */
export function useParsedBody({ prototype }: RequestClass): void {
  Object.defineProperty(prototype, 'body', {
    get(this: { [body]?: unknown }) {
      return this[body];
    },
    set(this: { ctx: ParsedBodyContext; [body]?: unknown }, read: unknown) {
      this[body] = this.ctx.state[parsedBody] ?? read;
    },
  });
}
