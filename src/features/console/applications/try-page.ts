// The page on which an application is tried.
import type { Context } from 'koa';
import type { TokenEndpoint } from '../../../engine/token-endpoint.ts';
import { formFields } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Client } from '../../../records/collections.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { Config } from '../../../tenant/config.ts';
import { addressOutsideConsole } from '../callbacks.ts';
import type { ConsoleSession } from '../page.ts';
import { listAll } from './list-all.ts';
import {
  type Application,
  type ApplicationsDependencies,
  applicationAt,
  renderApplication,
} from './model.ts';
import type { TryLogins } from './try-logins.ts';
import { credentialsOf, requestTokens, type TryResult } from './try-tokens.ts';

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
    model: {
      by: tryMethodOf(client).method,
      apis: apis.map(({ identifier, name }) => ({ identifier, name: name ?? identifier })),
      connections: connections.map(({ name }) => name),
      tried: result,
      goUrl,
    },
  });
}

/** Shows the form. */
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
