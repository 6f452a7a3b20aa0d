// The development pages: home, "Try login", inbox. For this machine only, and not in production.
import type { Context } from 'koa';
import type { Views } from '../../capabilities/pages/views.ts';
import { feature } from '../../engine/feature.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { TRY_LOGIN } from '../../records/clients.ts';
import type { Config } from '../../tenant/config.ts';
import { INBOX_PATH, type InboxDependencies, inboxRoutes } from './inbox.ts';
import { type ApiDescription, openApi } from './openapi.ts';
import { SCRIPTS_PATH, type ScriptLogDependencies, scriptRoutes } from './scripts.ts';
import { onThisMachine } from './this-machine.ts';
import { TRY_LOGIN_CALLBACK } from './try-login.ts';

interface DevelopmentDependencies extends InboxDependencies, ScriptLogDependencies {
  baseUrl: string;
  /** The version of Gatehouse, which the page shows. */
  version: string;
  config: Config;
  /** Returns the example's administrator of the console, if there is one. */
  exampleAdministrator(): Promise<{ email: string; password: string; consoleUrl: string } | undefined>;
  views: Views;
  /** For the OpenAPI document. */
  features: ApiDescription['features'];
  limits: ApiDescription['limits'];
  /**
   * Makes the OpenAPI document of the Management API, at the first request: that takes far longer than the rest of a
   * start.
   */
  managementOpenApi(): object;
}

const page = { limit: 'other', cors: 'none', errors: 'page' } as const;

const routes: RouteDeclarations<DevelopmentDependencies> = {
  'GET|HEAD /': { ...page, handle: showHome },
  // "Try login" runs in the browser, as a single-page application.
  'GET|HEAD /dev/callback': { ...page, handle: showTokens },
  'GET|HEAD /openapi.json': { ...page, handle: sendOpenApi },
  'GET|HEAD /api/v2/openapi.json': { ...page, handle: sendManagementOpenApi },
  ...inboxRoutes,
  ...scriptRoutes,
};

export const development = feature<DevelopmentDependencies>({
  name: 'development',
  pages: ['development/home', 'development/inbox', 'development/scripts', 'development/tokens'],
  routes: onThisMachine(routes),
});

function tryLoginOf({ baseUrl }: DevelopmentDependencies) {
  return { clientId: TRY_LOGIN, callback: `${baseUrl}${TRY_LOGIN_CALLBACK}` };
}

async function showHome(deps: DevelopmentDependencies, ctx: Context): Promise<void> {
  const { baseUrl, version, config, views } = deps;
  const [clients, connections, administrator] = await Promise.all([
    config.clients(),
    config.connections(),
    deps.exampleAdministrator(),
  ]);
  const model = {
    baseUrl,
    version,
    clients,
    connections,
    tryLogin: tryLoginOf(deps),
    inboxUrl: INBOX_PATH,
    scriptsUrl: SCRIPTS_PATH,
    ...(administrator && { administrator }),
  };
  await views.page(ctx, 'development/home', model);
}

function showTokens(deps: DevelopmentDependencies, ctx: Context): Promise<void> {
  return deps.views.page(ctx, 'development/tokens', { tryLogin: tryLoginOf(deps) });
}

function sendOpenApi(
  { baseUrl, version, config, features, limits }: DevelopmentDependencies,
  ctx: Context,
): void {
  const { vendor_host: vendorHost } = config.settings();
  ctx.set('Cache-Control', 'no-store');
  ctx.body = openApi({ version, baseUrl, vendorHost, features, limits });
}

function sendManagementOpenApi({ managementOpenApi }: DevelopmentDependencies, ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = managementOpenApi();
}
