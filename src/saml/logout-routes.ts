// The routes of single logout: /samlp/<client_id>/logout and its steps.
import type { Context } from 'koa';
import type { Route } from '../http/routes.ts';
import type { Views } from '../pages/views.ts';
import { receive, sendByPost, sendByRedirect } from './bindings.ts';
import { finishLogout, type SamlLogoutDependencies, takeLogoutRequest } from './logout.ts';
import { askNext, takeLogoutResponse } from './logout-participants.ts';
import type { Step } from './logout-response.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';
import { badMessage } from './xml.ts';

export interface SamlLogoutRoutesDependencies extends SamlLogoutDependencies {
  views: Views;
}

/** The routes of single logout. */
export function logoutRoutes(deps: SamlLogoutRoutesDependencies): Route[] {
  const at = (
    methods: Route['methods'],
    path: string,
    decide: (ctx: Context, sp: ServiceProvider) => Promise<Step>,
  ): Route => ({
    methods,
    path: `/samlp/:client_id/logout${path}`,
    limit: 'samlp',
    cors: 'none',
    errors: 'page',
    handle: async (ctx) => {
      const sp = await serviceProvider(deps.config, String(ctx.params.client_id));
      await carryOut(deps, ctx, sp, await decide(ctx, sp));
    },
  });
  const stateOf = ({ query }: Context) => (typeof query.state === 'string' ? query.state : '');
  return [
    at(['GET', 'POST'], '', async (ctx, sp) => {
      const received = receive(ctx);
      if (received === undefined) throw badMessage('Missing required parameter: SAMLRequest');
      if (received.kind === 'request') return takeLogoutRequest(deps, ctx, sp, received);
      return takeLogoutResponse(deps, ctx, sp, received);
    }),
    at(['GET'], '/next', (ctx, sp) => askNext(deps, ctx, sp, stateOf(ctx))),
    at(['GET'], '/done', (ctx, sp) => finishLogout(deps, sp, stateOf(ctx))),
  ];
}

async function carryOut(
  { idp, views }: SamlLogoutRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
  step: Step,
): Promise<void> {
  if ('message' in step) {
    if (sp.logoutBinding === 'post') return sendByPost(ctx, views, step.message, sp);
    return sendByRedirect(ctx, step.message, idp.signer(sp));
  }
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(step.redirect);
}
