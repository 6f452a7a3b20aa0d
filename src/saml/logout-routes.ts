// The addresses of single logout: /samlp/<client_id>/logout and its steps. Nothing is decided here.
import type Router from '@koa/router';
import type { Context } from 'koa';
import type { Views } from '../http/views.ts';
import { receive, sendByPost, sendByRedirect } from './bindings.ts';
import { finishLogout, type SamlLogoutDependencies, type Step, takeLogoutRequest } from './logout.ts';
import { askNext, takeLogoutResponse } from './logout-others.ts';
import { type ServiceProvider, serviceProvider } from './settings.ts';
import { badMessage } from './xml.ts';

export interface SamlLogoutRoutesDependencies extends SamlLogoutDependencies {
  views: Views;
}

/** Adds the routes of single logout. */
export function addLogoutRoutes(router: Router, deps: SamlLogoutRoutesDependencies): void {
  const step =
    (decide: (ctx: Context, provider: ServiceProvider) => Promise<Step>) => async (ctx: Context) => {
      const provider = await serviceProvider(deps.directory, String(ctx.params.client_id));
      await carryOut(deps, ctx, provider, await decide(ctx, provider));
    };
  const stateOf = ({ query }: Context) => (typeof query.state === 'string' ? query.state : '');
  router.register(
    '/samlp/:client_id/logout',
    ['get', 'post'],
    step(async (ctx, provider) => {
      const received = receive(ctx);
      if (received === undefined) throw badMessage('Missing required parameter: SAMLRequest');
      if (received.kind === 'request') return takeLogoutRequest(deps, ctx, provider, received);
      return takeLogoutResponse(deps, provider, received);
    }),
  );
  router.get(
    '/samlp/:client_id/logout/next',
    step((ctx, provider) => askNext(deps, provider, stateOf(ctx))),
  );
  router.get(
    '/samlp/:client_id/logout/done',
    step((ctx, provider) => finishLogout(deps, provider, stateOf(ctx))),
  );
}

async function carryOut(
  { idp, views }: SamlLogoutRoutesDependencies,
  ctx: Context,
  provider: ServiceProvider,
  step: Step,
): Promise<void> {
  if ('message' in step) {
    if (provider.logoutBinding === 'post') return sendByPost(ctx, views, step.message, provider);
    return sendByRedirect(ctx, step.message, idp.signer(provider));
  }
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(step.redirect);
}
