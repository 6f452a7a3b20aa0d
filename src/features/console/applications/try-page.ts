// The page on which an application is tried.
import type { Context } from 'koa';
import type { TokenEndpoint } from '../../../engine/token/token-endpoint.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { Client } from '../../../records/collections.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { Config } from '../../../tenant/config.ts';
import { isObject } from '../../management/section.ts';
import { addressOutsideConsole } from '../console-callbacks.ts';
import type { ConsoleSession } from '../console-page.ts';
import { listAll } from './list-all.ts';
import {
  type Application,
  type ApplicationsDependencies,
  applicationAt,
  declareApplicationPage,
  renderApplication,
} from './model.ts';
import type { TryLogins } from './try-logins.ts';

export interface TryDependencies extends ApplicationsDependencies {
  config: Config;
  tokens: Pick<TokenEndpoint, 'token'>;
  tryLogins: TryLogins;
}

/** Returns a hash that stands for the administrator's session, which one browser has. */
const sessionHash = ({ token }: ConsoleSession) => sha256(`try ${token}`);

/** Returns how an application can be tried: by a login, by client credentials, or not at all. */
function tryMethodOf(client: Client | undefined): {
  credentials?: Record<string, string>;
  method?: 'login' | 'machine';
} {
  const credentials = client && credentialsOf(client);
  const grants = client?.grant_types ?? [];
  if (credentials === undefined) return {};
  if (grants.includes('authorization_code')) return { credentials, method: 'login' };
  return grants.includes('client_credentials') && credentials.client_secret
    ? { credentials, method: 'machine' }
    : {};
}

interface TryPage {
  result?: TryResult;
  /** The address that begins the login. */
  goUrl?: string;
}

interface ApplicationsTryModel {
  /** How it can be tried, if it can. */
  by: 'login' | 'machine' | undefined;
  apis: { identifier: string; name: string }[];
  connections: string[];
  tried: TryResult | undefined;
  goUrl: string | undefined;
}

export const APPLICATIONS_TRY_PAGE = declareApplicationPage<ApplicationsTryModel>('console/applications-try');

async function showPage(
  deps: TryDependencies,
  ctx: Context,
  session: ConsoleSession,
  application: Application,
  { result, goUrl }: TryPage = {},
): Promise<void> {
  const { client_id } = application;
  const client = await deps.config.client(client_id);
  const [apis, connections] = await Promise.all([
    session.can('read:resource_servers') ? listAll(deps, ctx, session, 'GET /resource-servers') : [],
    deps.config.connectionsOf(client_id),
  ]);
  await renderApplication(deps, ctx, session, application, {
    tab: 'try',
    page: APPLICATIONS_TRY_PAGE,
    model: {
      by: tryMethodOf(client).method,
      apis: apis.map(({ identifier, name }) => ({
        identifier: String(identifier),
        name: String(name ?? identifier),
      })),
      connections: connections.map(({ name }) => name),
      tried: result,
      goUrl,
    },
  });
}

export async function showTry(deps: TryDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  await showPage(deps, ctx, session, await applicationAt(deps, ctx, session));
}

/** Begins a login, or requests a token by client credentials. */
export async function startTry(deps: TryDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id: clientId } = application;
  const { audience, connection, fresh } = formFields(ctx, 'audience', 'connection', 'fresh');
  const { credentials, method } = tryMethodOf(await deps.config.client(clientId));
  if (credentials === undefined || method === undefined)
    throw new AuthError(400, 'invalid_request', 'This application cannot be tried here.');
  if (method === 'machine') {
    const fields = { grant_type: 'client_credentials', ...credentials, audience };
    return showPage(deps, ctx, session, application, { result: await requestTokens(deps, ctx, fields) });
  }
  const params = {
    ...(audience !== '' && { audience }),
    ...(connection !== '' && { connection }),
    ...(fresh === 'true' && { prompt: 'login' }),
  };
  const goUrl = addressOutsideConsole(
    deps,
    await deps.tryLogins.start(sessionHash(session), { clientId, params }),
  );
  // Not a redirect: the page's form-action policy would block a form's redirect to an upstream provider.
  ctx.set('Refresh', `0; url=${goUrl}`);
  await showPage(deps, ctx, session, application, { goUrl });
}

/** Shows the tokens after the login has returned. */
export async function showTryResult(
  deps: TryDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id: clientId } = application;
  const response = await deps.tryLogins.finish(sessionHash(session), clientId, ctx.query);
  if ('error' in response) return showPage(deps, ctx, session, application, { result: response });
  const { credentials } = tryMethodOf(await deps.config.client(clientId));
  if (credentials === undefined)
    throw new AuthError(400, 'invalid_request', 'This application cannot be tried here.');
  const result = await requestTokens(deps, ctx, {
    grant_type: 'authorization_code',
    ...credentials,
    code: response.code,
    redirect_uri: response.redirectUri,
    code_verifier: response.verifier,
  });
  await showPage(deps, ctx, session, application, { result });
}

// Requests tokens as an application would, with its credentials, and prepares the answer for display.

interface ShownToken {
  /** As JSON; undefined for an opaque token. */
  header?: string;
  claims?: string;
}

/** The answer without the tokens themselves. */
type TryResult =
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
function credentialsOf(client: Client): Record<string, string> | undefined {
  const { client_id, client_secret, token_endpoint_auth_method: method } = client;
  if (client.client_authentication_methods !== undefined || method === undefined) return undefined;
  if (method === 'none') return { client_id };
  return client_secret === undefined ? undefined : { client_id, client_secret };
}

/** @param fields the parameters of the token request. */
async function requestTokens(
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
