// Requests tokens as an application would, with its credentials, and prepares the answer for display.
import type { Context } from 'koa';
import type { TokenEndpoint } from '../../../engine/token-endpoint.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Client } from '../../../records/collections.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { isObject } from '../../management/section.ts';

/** A token as it is shown. */
interface ShownToken {
  /** As JSON; undefined for an opaque token. */
  header?: string;
  claims?: string;
}

/** The answer without the tokens themselves. */
export type TryResult =
  | {
      idToken?: ShownToken | undefined;
      accessToken?: ShownToken | undefined;
      answer: string;
      subject: string;
    }
  | { error: string; description: string };

const TOKENS = ['access_token', 'id_token', 'refresh_token'];

/**
 * Returns the parameters by which the application authenticates; undefined when it uses a key that this server does
 * not have.
 */
export function credentialsOf(client: Client): Record<string, string> | undefined {
  const { client_id, client_secret, token_endpoint_auth_method: method } = client;
  if (client.client_authentication_methods !== undefined || method === undefined) return undefined;
  if (method === 'none') return { client_id };
  return client_secret === undefined ? undefined : { client_id, client_secret };
}

/** Requests tokens within a request of the console. @param fields the parameters of the token request. */
export async function requestTokens(
  { tokens }: { tokens: Pick<TokenEndpoint, 'token'> },
  ctx: Context,
  fields: Record<string, string>,
): Promise<TryResult> {
  const { method, url } = ctx;
  // Credentials in the administrator's own request must not authenticate the application.
  delete ctx.req.headers.authorization;
  delete ctx.req.headers.dpop;
  ctx.method = 'POST';
  try {
    await tokens.token(ctx, fields);
    return shownAnswer(ctx.status, ctx.body);
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status >= 500) throw thrown;
    return { error: thrown.error, description: thrown.error_description };
  } finally {
    ctx.method = method;
    ctx.url = url;
    ctx.remove('WWW-Authenticate');
  }
}

function shownAnswer(status: number, body: unknown): TryResult {
  const answer = isObject(body) ? body : {};
  if (status !== 200)
    return { error: String(answer.error ?? status), description: String(answer.error_description ?? '') };
  const others = Object.entries(answer).filter(([name]) => !TOKENS.includes(name));
  const idToken = shownToken(answer.id_token);
  return {
    idToken: idToken?.token,
    accessToken: shownToken(answer.access_token)?.token,
    answer: pretty(Object.fromEntries(others)),
    subject: idToken?.subject ?? '',
  };
}

function shownToken(token: unknown): { token: ShownToken; subject: string } | undefined {
  if (typeof token !== 'string') return undefined;
  const [header, claims] = token.split('.').length === 3 ? token.split('.').slice(0, 2).map(decoded) : [];
  if (!isObject(header) || !isObject(claims)) return { token: {}, subject: '' };
  const { email, name, sub } = claims;
  const subject = [email, name, sub].find((one) => typeof one === 'string') as string | undefined;
  return { token: { header: pretty(header), claims: pretty(claims) }, subject: subject ?? '' };
}

const decoded = (part: string): unknown => jsonOf(Buffer.from(part, 'base64url').toString('utf8'));

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);
