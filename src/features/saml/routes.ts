// Routes of the SAML identity provider: /samlp/<client_id> and below.
import type { Context } from 'koa';
import { z } from 'zod';
import type { Views } from '../../capabilities/pages/views.ts';
import {
  receive,
  relayStateOfQuery,
  sendByPost,
  verifyMessage,
} from '../../capabilities/saml-messages/bindings.ts';
import { refuseReplay } from '../../capabilities/saml-messages/message.ts';
import { STATUS } from '../../capabilities/saml-messages/names.ts';
import { badMessage } from '../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../http/errors.ts';
import { optional } from '../../http/parameter-schemas.ts';
import type { RouteDeclaration, RouteDeclarations } from '../../http/routes.ts';
import { audienceOf } from './audience.ts';
import { answerLogin, beginLogin, refuse, type SamlDependencies } from './login.ts';
import { logoutRoutes, type SamlLogoutRoutesDependencies } from './logout-routes.ts';
import { metadata } from './metadata.ts';
import { type LoginRequest, readAuthnRequest, unsolicitedRequest } from './request.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';

export interface SamlRoutesDependencies extends SamlDependencies, SamlLogoutRoutesDependencies {
  baseUrl: string;
  views: Views;
}

const samlp = { limit: 'samlp', cors: 'none', errors: 'page' } as const;

const requestParameters = {
  SAMLRequest: optional(
    'An AuthnRequest in base64; also deflated with GET. Without it the login is IdP-initiated.',
  ),
  RelayState: optional('Returned unchanged.'),
};
const signature = {
  SigAlg: optional('The algorithm of the signature (SAML Bindings §3.4.4.1).'),
  Signature: optional(
    'The signature of the query, in base64; required if the application has a certificate.',
  ),
};

const forwardedParameters = {
  connection: optional('The connection to log in with.'),
  organization: optional('The organization, by id or name.'),
  login_hint: optional('Fills in the e-mail address or username.'),
  ui_locales: optional('Languages of the pages, preferred first.'),
};

const LOGIN_ANSWERS = {
  302: 'The login continues in the browser.',
  200: 'A page with a SAMLResponse that gives the reason for the refusal, in a form that submits itself to the application.',
} as const;

/** The routes of the SAML identity provider. */
export const samlRoutes: RouteDeclarations<SamlRoutesDependencies> = {
  'GET|HEAD /samlp/metadata/:client_id': {
    ...samlp,
    summary: 'The metadata of the identity provider, for one application',
    answers: { 200: 'Metadata in XML (SAML Metadata §2.4.3)' },
    handle: sendMetadata,
  },
  ...recordRejections({
    'GET /samlp/:client_id': {
      ...samlp,
      summary: 'Log in by SAML 2.0 (HTTP-Redirect binding), or by an IdP-initiated login',
      query: z.object({ ...requestParameters, ...signature, ...forwardedParameters }),
      answers: LOGIN_ANSWERS,
      handle: handleLogin,
    },
    'POST /samlp/:client_id': {
      ...samlp,
      summary: 'Log in by SAML 2.0 (HTTP-POST binding)',
      body: z.object(requestParameters),
      bodyTypes: ['form'],
      answers: LOGIN_ANSWERS,
      handle: handleLogin,
    },
    'GET /samlp/:client_id/callback': { ...samlp, handle: finishLogin },
    ...logoutRoutes,
  }),
};

function providerOf({ config }: SamlRoutesDependencies, ctx: Context): Promise<ServiceProvider> {
  return serviceProvider(config, String(ctx.params.client_id));
}

async function sendMetadata(deps: SamlRoutesDependencies, ctx: Context): Promise<void> {
  const document = await metadata(deps.idp, await providerOf(deps, ctx));
  const host = new URL(deps.baseUrl).hostname.replaceAll(/[^A-Za-z0-9-]/g, '_');
  ctx.set('Content-Type', 'application/xml; charset=utf-8');
  ctx.set('Content-Disposition', `attachment; filename="${host}-metadata.xml"`);
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.body = document;
}

async function handleLogin(deps: SamlRoutesDependencies, ctx: Context): Promise<void> {
  const sp = await providerOf(deps, ctx);
  const request = await requestOf(deps, ctx, sp);
  if (request.unsupportedBinding) {
    const status = { code: STATUS.responder, detail: STATUS.unsupportedBinding };
    return sendByPost(ctx, deps.views, await refuse(deps, sp, request, status), sp);
  }
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(await beginLogin(deps, ctx, sp, request));
}

async function finishLogin(deps: SamlRoutesDependencies, ctx: Context): Promise<void> {
  const sp = await providerOf(deps, ctx);
  const outcome = await deps.delegatedLogins.finish(ctx, sp.clientId);
  await sendByPost(ctx, deps.views, await answerLogin(deps, sp, outcome), sp);
}

/** Records rejected messages as log events, where administrators look for the reason. */
function recordRejections(
  routes: RouteDeclarations<SamlRoutesDependencies>,
): RouteDeclarations<SamlRoutesDependencies> {
  return Object.fromEntries(
    Object.entries(routes).map(([key, route]) => [key, { ...route, handle: recordRejection(route.handle) }]),
  );
}

function recordRejection(handle: RouteDeclaration<SamlRoutesDependencies>['handle']) {
  return async (deps: SamlRoutesDependencies, ctx: Context): Promise<void> => {
    try {
      await handle(deps, ctx);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        deps.events.record({
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

/** Reads the login request. @throws AuthError 400 when it is rejected. */
async function requestOf(
  deps: SamlRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
): Promise<LoginRequest> {
  const received = receive(ctx);
  if (received === undefined) {
    if (ctx.method === 'POST') throw badMessage('Missing required parameter: SAMLRequest');
    return unsolicitedRequest(sp, relayStateOfQuery(ctx));
  }
  if (received.kind !== 'request') throw badMessage('A SAMLResponse is not expected here.');
  const root = verifyMessage(received, sp.verifier);
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
  // An unsigned request can be repeated by anybody, so storing its ID would only fill the store.
  if (sp.verifier !== undefined) {
    await refuseReplay(deps.store, deps.clock, sp.clientId, request.id);
  }
  return request;
}

/** Rejects a request before the login. @throws AuthError 400 when the issuer may be another application's. */
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
