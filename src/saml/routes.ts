// The routes of the SAML identity provider: /samlp/<client_id> and below.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Route } from '../http/routes.ts';
import type { Views } from '../pages/views.ts';
import { audienceOf } from './audience.ts';
import { type Outgoing, open, receive, relayStateAlone, sendByPost } from './bindings.ts';
import { answerLogin, beginLogin, refuse, type SamlDependencies } from './login.ts';
import { logoutRoutes, type SamlLogoutRoutesDependencies } from './logout-routes.ts';
import { countOnce } from './message.ts';
import { metadata } from './metadata.ts';
import { STATUS } from './names.ts';
import { type LoginRequest, readAuthnRequest, unsolicited } from './request.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';
import { badMessage } from './xml.ts';

export interface SamlRoutesDependencies extends SamlDependencies, SamlLogoutRoutesDependencies {
  baseUrl: string;
  views: Views;
}

/** The routes of the SAML identity provider. */
export function samlRoutes(deps: SamlRoutesDependencies): Route[] {
  const providerOf = (ctx: Context) => serviceProvider(deps.config, String(ctx.params.client_id));
  const fileName = `${new URL(deps.baseUrl).hostname.replaceAll(/[^A-Za-z0-9-]/g, '_')}-metadata.xml`;
  const samlp = { limit: 'samlp', cors: 'none', errors: 'page' } as const;
  const messages: Route[] = [
    {
      ...samlp,
      methods: ['GET', 'POST'],
      path: '/samlp/:client_id',
      handle: async (ctx) => {
        const sp = await providerOf(ctx);
        const request = await requestOf(deps, ctx, sp);
        if (request.unsupportedBinding) {
          const status = { code: STATUS.responder, detail: STATUS.unsupportedBinding };
          return answer(deps, ctx, sp, await refuse(deps, sp, request, status));
        }
        ctx.set('Cache-Control', 'no-store');
        ctx.redirect(await beginLogin(deps, ctx, sp, request));
      },
    },
    {
      ...samlp,
      methods: ['GET'],
      path: '/samlp/:client_id/callback',
      handle: async (ctx) => {
        const sp = await providerOf(ctx);
        const outcome = await deps.internalRequests.finish(ctx, sp.clientId);
        await answer(deps, ctx, sp, await answerLogin(deps, sp, outcome));
      },
    },
    ...logoutRoutes(deps),
  ];
  return [
    {
      ...samlp,
      methods: ['GET', 'HEAD'],
      path: '/samlp/metadata/:client_id',
      handle: async (ctx) => {
        const document = await metadata(deps.idp, await providerOf(ctx));
        ctx.set('Content-Type', 'application/xml; charset=utf-8');
        ctx.set('Content-Disposition', `attachment; filename="${fileName}"`);
        ctx.set('Cache-Control', 'public, max-age=300');
        ctx.body = document;
      },
    },
    ...messages.map((route) => ({ ...route, handle: recorded(deps, route.handle) })),
  ];
}

/** Records refused messages as log events: administrators look for the reason there. */
function recorded({ events }: SamlRoutesDependencies, handle: Route['handle']) {
  return async (ctx: Context): Promise<void> => {
    try {
      await handle(ctx);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        events.record({
          type: ctx.path.includes('/logout') ? 'flo' : 'f',
          client_id: String(ctx.params.client_id),
          ip: ctx.ip,
          description: `SAML: ${thrown.error_description}`,
        });
      }
      throw thrown;
    }
  };
}

function answer(
  { views }: SamlRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
  message: Outgoing,
): Promise<void> {
  return sendByPost(ctx, views, message, sp);
}

/** Reads the login request. @throws AuthError 400 when it is refused. */
async function requestOf(
  deps: SamlRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
): Promise<LoginRequest> {
  const received = receive(ctx);
  if (received === undefined) {
    if (ctx.method === 'POST') throw badMessage('Missing required parameter: SAMLRequest');
    return unsolicited(sp, relayStateAlone(ctx));
  }
  if (received.kind !== 'request') throw badMessage('A SAMLResponse is not expected here.');
  const root = open(received, sp.verifier);
  const request = readAuthnRequest(
    root,
    sp,
    {
      destination: deps.idp.addresses(sp.clientId).login,
      destinationRequired: sp.verifier !== undefined,
      clock: deps.wallClock,
    },
    received.relayState,
  );
  await checkAudience(deps, sp, request);
  // An unsigned request can be sent anew by anybody: remembering it would only fill the store.
  if (sp.verifier !== undefined) {
    await countOnce(deps.store, deps.clock, sp.clientId, request.id);
  }
  return request;
}

/** Refuses before the login. @throws AuthError 400 when the issuer may be another application's. */
async function checkAudience(
  { config, idp }: SamlRoutesDependencies,
  sp: ServiceProvider,
  { issuer }: LoginRequest,
): Promise<void> {
  const entityId = await idp.entityId(sp.clientId);
  if ((await audienceOf(config, sp, issuer, entityId)) !== undefined) return;
  throw badMessage(
    `The Issuer "${issuer?.slice(0, 255)}" may be another application's. If it is this one's, it must be the audience in its SAML addon.`,
  );
}
