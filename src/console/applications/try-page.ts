// The page on which an application is tried.
import type { Context } from 'koa';
import type { TokenEndpoint } from '../../engine/token-endpoint.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import type { Client } from '../../records/collections.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { outsideOf } from '../callbacks.ts';
import type { ConsoleSession } from '../page.ts';
import { allOf } from './all-of.ts';
import {
  type Application,
  type ApplicationsDependencies,
  applicationAt,
  renderApplication,
} from './model.ts';
import type { TryLogins } from './try-logins.ts';
import { askForTokens, proofOf, type Tried } from './try-tokens.ts';

export interface TryDependencies extends ApplicationsDependencies {
  config: Config;
  tokens: Pick<TokenEndpoint, 'token'>;
  tryLogins: TryLogins;
}

/** Returns a hash that stands for the administrator's session, which one browser has. */
const sessionOf = ({ token }: ConsoleSession) => sha256(`try ${token}`);

/** Returns how an application can be tried: by a login, by client credentials, or not at all. */
function waysOf(client: Client | undefined): { proof?: Record<string, string>; by?: 'login' | 'machine' } {
  const proof = client && proofOf(client);
  const grants = client?.grant_types ?? [];
  if (proof === undefined) return {};
  if (grants.includes('authorization_code')) return { proof, by: 'login' };
  return grants.includes('client_credentials') && proof.client_secret ? { proof, by: 'machine' } : {};
}

interface Shown {
  tried?: Tried;
  /** The address that begins the login. */
  goUrl?: string;
}

async function showPage(
  deps: TryDependencies,
  ctx: Context,
  session: ConsoleSession,
  application: Application,
  { tried, goUrl }: Shown = {},
): Promise<void> {
  const { client_id } = application;
  const client = await deps.config.client(client_id);
  const [apis, connections] = await Promise.all([
    session.can('read:resource_servers') ? allOf(deps, ctx, session, 'GET /resource-servers') : [],
    deps.config.connectionsOf(client_id),
  ]);
  await renderApplication(deps, ctx, session, application, {
    tab: 'try',
    model: {
      by: waysOf(client).by,
      apis: apis.map(({ identifier, name }) => ({ identifier, name: name ?? identifier })),
      connections: connections.map(({ name }) => name),
      tried,
      goUrl,
    },
  });
}

/** Shows the form. */
export async function showTry(deps: TryDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  await showPage(deps, ctx, session, await applicationAt(deps, ctx, session));
}

/** Begins a login, or requests a token by client credentials. */
export async function beginTry(deps: TryDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id: clientId } = application;
  const { audience, connection, fresh } = formFields(ctx, 'audience', 'connection', 'fresh');
  const { proof, by } = waysOf(await deps.config.client(clientId));
  if (proof === undefined || by === undefined)
    throw new AuthError(400, 'invalid_request', 'This application cannot be tried here.');
  if (by === 'machine') {
    const fields = { grant_type: 'client_credentials', ...proof, audience };
    return showPage(deps, ctx, session, application, { tried: await askForTokens(deps, ctx, fields) });
  }
  const params = {
    ...(audience !== '' && { audience }),
    ...(connection !== '' && { connection }),
    ...(fresh === 'true' && { prompt: 'login' }),
  };
  const goUrl = outsideOf(deps, await deps.tryLogins.begin(sessionOf(session), { clientId, params }));
  // Not a redirect: the page's form-action policy would block a form's redirect to an upstream provider.
  ctx.set('Refresh', `0; url=${goUrl}`);
  await showPage(deps, ctx, session, application, { goUrl });
}

/** Shows the tokens after the login has returned. */
export async function showTried(deps: TryDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const application = await applicationAt(deps, ctx, session);
  const { client_id: clientId } = application;
  const ended = await deps.tryLogins.finish(sessionOf(session), clientId, ctx.query);
  if ('error' in ended) return showPage(deps, ctx, session, application, { tried: ended });
  const { proof } = waysOf(await deps.config.client(clientId));
  if (proof === undefined)
    throw new AuthError(400, 'invalid_request', 'This application cannot be tried here.');
  const tried = await askForTokens(deps, ctx, {
    grant_type: 'authorization_code',
    ...proof,
    code: ended.code,
    redirect_uri: ended.redirectUri,
    code_verifier: ended.verifier,
  });
  await showPage(deps, ctx, session, application, { tried });
}
