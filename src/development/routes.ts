// The development home page: what runs here, and "Try login". Not mounted in production.
import Router from '@koa/router';
import type { Middleware } from 'koa';
import type { Views } from '../http/views.ts';
import type { Directory } from '../tenant/directory.ts';
import { TRY_LOGIN } from '../tenant/schema.ts';
import { TRY_LOGIN_CALLBACK } from './try-login.ts';

export interface DevelopmentDependencies {
  baseUrl: string;
  /** Gatehouse's own, as the page shows it. */
  version: string;
  directory: Directory;
  views: Views;
}

/** The routes of the development pages. The try itself runs in the browser, as a single-page application does. */
export function developmentRoutes({
  baseUrl,
  version,
  directory,
  views,
}: DevelopmentDependencies): Middleware {
  const router = new Router();
  const tryLogin = { clientId: TRY_LOGIN, callback: `${baseUrl}${TRY_LOGIN_CALLBACK}` };
  router.get('/', async (ctx) => {
    const [clients, connections] = await Promise.all([directory.clients(), directory.connections()]);
    await views.page(ctx, 'development/home', { baseUrl, version, clients, connections, tryLogin });
  });
  router.get(TRY_LOGIN_CALLBACK, (ctx) => views.page(ctx, 'development/tokens', { tryLogin }));
  return router.routes() as Middleware;
}
