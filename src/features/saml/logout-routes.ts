// Routes of single logout: /samlp/<client_id>/logout and its steps.
import type { Context } from 'koa';
import { z } from 'zod';
import type { Views } from '../../capabilities/pages/views.ts';
import { receive, sendByPost, sendByRedirect } from '../../capabilities/saml-messages/bindings.ts';
import { badMessage } from '../../capabilities/saml-messages/xml.ts';
import { optional } from '../../http/parameter-schemas.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { finishLogout, handleLogoutRequest, type SamlLogoutDependencies } from './logout.ts';
import { handleLogoutResponse, nextLogoutRequest } from './logout-participants.ts';
import type { LogoutStep } from './logout-response.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';

export interface SamlLogoutRoutesDependencies extends SamlLogoutDependencies {
  views: Views;
}

type LogoutHandler = (
  deps: SamlLogoutRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
) => Promise<LogoutStep>;

const logoutRoute = (handler: LogoutHandler) =>
  ({
    limit: 'samlp',
    cors: 'none',
    errors: 'page',
    handle: async (deps: SamlLogoutRoutesDependencies, ctx: Context): Promise<void> => {
      const sp = await serviceProvider(deps.config, String(ctx.params.client_id));
      await sendStep(deps, ctx, sp, await handler(deps, ctx, sp));
    },
  }) as const;

const message = {
  SAMLRequest: optional('A LogoutRequest in base64; also deflated with GET.'),
  SAMLResponse: optional('A LogoutResponse to a LogoutRequest of this server, encoded in the same way.'),
  RelayState: optional('Returned unchanged.'),
};

/** The routes of single logout. */
export const logoutRoutes: RouteDeclarations<SamlLogoutRoutesDependencies> = {
  'GET /samlp/:client_id/logout': {
    ...logoutRoute(handleMessage),
    summary: 'SAML single logout (HTTP-Redirect binding)',
    query: z.object({
      ...message,
      SigAlg: optional('The algorithm of the signature (SAML Bindings §3.4.4.1).'),
      Signature: optional('The signature of the query, in base64.'),
    }),
    answers: { 302: 'To the next application of the session, or back with a LogoutResponse.' },
  },
  'POST /samlp/:client_id/logout': {
    ...logoutRoute(handleMessage),
    summary: 'SAML single logout (HTTP-POST binding)',
    body: z.object(message),
    bodyTypes: ['form'],
    answers: {
      200: 'A page with the next message in a form that submits itself.',
      302: 'To the next application of the session, or back with a LogoutResponse.',
    },
  },
  'GET /samlp/:client_id/logout/next': logoutRoute((deps, ctx, sp) =>
    nextLogoutRequest(deps, ctx, sp, stateOf(ctx)),
  ),
  'GET /samlp/:client_id/logout/done': logoutRoute((deps, ctx, sp) => finishLogout(deps, sp, stateOf(ctx))),
};

function stateOf({ query }: Context): string {
  return typeof query.state === 'string' ? query.state : '';
}

async function handleMessage(
  deps: SamlLogoutRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
): Promise<LogoutStep> {
  const received = receive(ctx);
  if (received === undefined) throw badMessage('Missing required parameter: SAMLRequest');
  if (received.kind === 'request') return handleLogoutRequest(deps, ctx, sp, received);
  return handleLogoutResponse(deps, ctx, sp, received);
}

async function sendStep(
  { idp, views }: SamlLogoutRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
  step: LogoutStep,
): Promise<void> {
  if ('message' in step) {
    if (sp.logoutBinding === 'post') return sendByPost(ctx, views, step.message, sp);
    return sendByRedirect(ctx, step.message, idp.signer(sp));
  }
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(step.redirect);
}
