// The development home page: what runs here, and "Try login". For this machine alone, and not in production.
import type { Outbox } from '../delivery/outbox.ts';
import type { Csrf } from '../http/csrf.ts';
import type { Route } from '../http/routes.ts';
import type { Views } from '../pages/views.ts';
import { TRY_LOGIN } from '../records/clients.ts';
import type { Config } from '../tenant/config.ts';
import { INBOX_PATH, inboxRoutes } from './inbox.ts';
import { thisMachineOnly } from './this-machine.ts';
import { TRY_LOGIN_CALLBACK } from './try-login.ts';

export interface DevelopmentDependencies {
  baseUrl: string;
  /** Gatehouse's own, as the page shows it. */
  version: string;
  config: Config;
  outbox: Outbox;
  views: Views;
  csrf: Csrf;
}

/** The routes of the development pages. The try itself runs in the browser, as a single-page application does. */
export function developmentRoutes({
  baseUrl,
  version,
  config,
  outbox,
  views,
  csrf,
}: DevelopmentDependencies): Route[] {
  const tryLogin = { clientId: TRY_LOGIN, callback: `${baseUrl}${TRY_LOGIN_CALLBACK}` };
  const page = { methods: ['GET', 'HEAD'], limit: 'other', cors: 'none', errors: 'page' } as const;
  const onThisMachine = thisMachineOnly(baseUrl);
  const routes: Route[] = [
    {
      ...page,
      path: '/',
      handle: async (ctx) => {
        const [clients, connections] = await Promise.all([config.clients(), config.connections()]);
        await views.page(ctx, 'development/home', {
          baseUrl,
          version,
          clients,
          connections,
          tryLogin,
          inboxUrl: INBOX_PATH,
        });
      },
    },
    {
      ...page,
      path: TRY_LOGIN_CALLBACK,
      handle: (ctx) => views.page(ctx, 'development/tokens', { tryLogin }),
    },
    ...inboxRoutes({ outbox, views, csrf }),
  ];
  return routes.map((route) => ({ ...route, handle: onThisMachine(route.handle) }));
}
