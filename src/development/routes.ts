// The development home page: what runs here, and "Try login". For this machine alone, and not in production.
import Router from '@koa/router';
import type { Middleware } from 'koa';
import type { Outbox } from '../delivery/outbox.ts';
import type { Csrf } from '../http/csrf.ts';
import type { Views } from '../http/views.ts';
import type { Directory } from '../tenant/directory.ts';
import { TRY_LOGIN } from '../tenant/schema.ts';
import { INBOX_PATH, inboxRoutes } from './inbox.ts';
import { thisMachineOnly } from './this-machine.ts';
import { TRY_LOGIN_CALLBACK } from './try-login.ts';

export interface DevelopmentDependencies {
  baseUrl: string;
  /** Gatehouse's own, as the page shows it. */
  version: string;
  directory: Directory;
  outbox: Outbox;
  views: Views;
  csrf: Csrf;
}

/** The routes of the development pages. The try itself runs in the browser, as a single-page application does. */
export function developmentRoutes({
  baseUrl,
  version,
  directory,
  outbox,
  views,
  csrf,
}: DevelopmentDependencies): Middleware {
  const router = new Router();
  const tryLogin = { clientId: TRY_LOGIN, callback: `${baseUrl}${TRY_LOGIN_CALLBACK}` };
  router.use(thisMachineOnly(baseUrl));
  router.get('/', async (ctx) => {
    const [clients, connections] = await Promise.all([directory.clients(), directory.connections()]);
    await views.page(ctx, 'development/home', {
      baseUrl,
      version,
      clients,
      connections,
      tryLogin,
      inboxUrl: INBOX_PATH,
    });
  });
  router.get(TRY_LOGIN_CALLBACK, (ctx) => views.page(ctx, 'development/tokens', { tryLogin }));
  router.use(inboxRoutes({ outbox, views, csrf }));
  return router.routes() as Middleware;
}
