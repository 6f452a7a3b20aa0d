// The credentials of an application in HTTP Basic. By RFC 6749 §2.3.1 both are form-encoded first; the contract and
// many clients send them as they are. The two forms differ where a value contains `%` or `+`.
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { authenticationMethod } from '../../records/client-authentication.ts';
import { isSameSecret, sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';

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
