// The SAML identity provider.

import type { Context } from 'koa';
import { z } from 'zod';
import type { Views } from '../../capabilities/pages/views.ts';
import {
  type ReceivedMessage,
  receive,
  relayStateOfQuery,
  sendByPost,
  sendByRedirect,
  verifyMessage,
} from '../../capabilities/saml-messages/bindings.ts';
import { logoutRequest, readLogoutResponse } from '../../capabilities/saml-messages/logout-messages.ts';
import { NAME_ID_FORMATS } from '../../capabilities/saml-messages/name-id.ts';
import { BINDING, CLAIMS, NS, STATUS } from '../../capabilities/saml-messages/names.ts';
import { parseXml } from '../../capabilities/saml-messages/reader.ts';
import { refuseReplay } from '../../capabilities/saml-messages/saml-message.ts';
import { samlLimits } from '../../capabilities/saml-messages/saml-messages-declaration.ts';
import { attribute, badMessage, type Markup, xml } from '../../capabilities/saml-messages/xml.ts';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import { feature } from '../../engine/provider/feature.ts';
import { AuthError } from '../../http/errors.ts';
import { optional } from '../../http/parameter-schemas.ts';
import type { RouteDeclaration, RouteDeclarations } from '../../http/server/router.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import type { IdentityProvider } from './identity-provider.ts';
import {
  continueLogout,
  type LogoutPropagationDependencies,
  nextParticipant,
  propagationOf,
  samlLogoutChannel,
} from './logout-propagation.ts';
import { type LogoutStep, signForPost } from './logout-response.ts';
import { type LoginRequest, readAuthnRequest, unsolicitedRequest } from './request.ts';
import { audienceOf } from './saml-audience.ts';
import { answerLogin, beginLogin, refuse, type SamlDependencies } from './saml-login.ts';
import {
  expectation,
  finishLogout,
  handleLogoutRequest,
  type SamlLogoutDependencies,
} from './saml-logout.ts';
import { type ServiceProvider, serviceProvider } from './service-provider.ts';

// Routes of the SAML identity provider: /samlp/<client_id> and below.

// Routes of single logout: /samlp/<client_id>/logout and its steps.

interface SamlLogoutRoutesDependencies extends SamlLogoutDependencies {
  views: Views;
}

type LogoutHandler = (
  deps: SamlLogoutRoutesDependencies,
  ctx: Context,
  sp: ServiceProvider,
) => Promise<LogoutStep>;

const logoutRoute = (handler: LogoutHandler) =>
  ({
    limit: samlLimits.samlp,
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

const logoutRoutes: RouteDeclarations<SamlLogoutRoutesDependencies> = {
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
    uncheckedBody: z.object(message),
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

// Single logout at the other service providers of a session: the request to each, and its answer.

/**
 * A participant that has lost its logout callback in the meantime is skipped.
 * @throws AuthError 400 when no such logout is in progress.
 */
async function nextLogoutRequest(
  deps: SamlLogoutDependencies,
  ctx: Context,
  sp: ServiceProvider,
  ticket: string,
): Promise<LogoutStep> {
  const { propagation, participant, requestId: id } = await nextParticipant(deps, ctx, sp.clientId, ticket);
  const { logoutUrl: destination } = sp;
  if (destination === undefined)
    return { redirect: await continueLogout(deps, propagation, { isSuccess: false }) };
  const issuer = await deps.idp.entityId(sp.clientId);
  const frame = { id, issuer, now: epochSeconds(deps.wallClock), destination };
  const markup = logoutRequest(frame, structuredClone(participant.name_id), participant.session_index);
  return {
    message: {
      kind: 'request',
      markup: await signForPost(deps.idp, sp, markup, id),
      relayState: undefined,
      location: destination,
    },
  };
}

/**
 * An invalid answer counts as a failure and the logout continues, so that the user is not left half-way.
 * @throws AuthError 400 when it answers no request of ours.
 */
async function handleLogoutResponse(
  deps: SamlLogoutDependencies,
  ctx: Context,
  sp: ServiceProvider,
  received: ReceivedMessage,
): Promise<LogoutStep> {
  const inResponseTo = attribute(parseXml(received.text), 'InResponseTo') ?? '';
  const propagation = await propagationOf(deps, ctx, sp.clientId, inResponseTo);
  const isSuccess = isSuccessful(deps, sp, received, {
    inResponseTo,
    issuer: propagation.waiting[0]?.issuer,
  });
  return { redirect: await continueLogout(deps, propagation, { isSuccess }) };
}

function isSuccessful(
  deps: SamlLogoutDependencies,
  sp: ServiceProvider,
  received: ReceivedMessage,
  expected: { inResponseTo: string; issuer: string | undefined },
): boolean {
  try {
    const answer = readLogoutResponse(verifyMessage(received, sp.verifier), expectation(deps, sp));
    return (
      answer.isSuccess &&
      answer.inResponseTo === expected.inResponseTo &&
      (expected.issuer === undefined || answer.issuer === expected.issuer)
    );
  } catch (thrown) {
    if (thrown instanceof AuthError) return false;
    throw thrown;
  }
}

interface SamlRoutesDependencies extends SamlDependencies, SamlLogoutRoutesDependencies {
  baseUrl: string;
  views: Views;
}

const samlp = { limit: samlLimits.samlp, cors: 'none', errors: 'page' } as const;

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

const samlRoutes: RouteDeclarations<SamlRoutesDependencies> = {
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
      uncheckedBody: z.object(requestParameters),
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
  const outcome = await deps.samlLogins.finish(ctx, sp.clientId);
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
  return async (...received: Parameters<typeof handle>): Promise<void> => {
    const [deps, ctx] = received;
    try {
      await handle(...received);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        deps.events.record({
          type: ctx.path.includes('/logout') ? engineEvents.flo : engineEvents.f,
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
  // docs/understand/decisions/saml.md#signed-authnrequests-are-accepted-once
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

// Our metadata for a service provider (SAML Metadata §2.4.3).

/** The offered attributes, by the last part of the claim type. */
const ATTRIBUTES: [string, string][] = [
  ['emailaddress', 'E-Mail Address'],
  ['givenname', 'Given Name'],
  ['name', 'Name'],
  ['surname', 'Surname'],
  ['nameidentifier', 'Name ID'],
];

/** Returns the metadata document, with every certificate that we sign with now or next. */
async function metadata(idp: IdentityProvider, sp: ServiceProvider): Promise<string> {
  const { login, logout } = idp.addresses(sp.clientId);
  const services = (name: string, location: string): Markup[] =>
    [BINDING.redirect, BINDING.post].map((binding) => xml(name, { Binding: binding, Location: location }));
  const { markup } = xml(
    'EntityDescriptor',
    { xmlns: NS.metadata, entityID: await idp.entityId(sp.clientId) },
    xml(
      'IDPSSODescriptor',
      {
        WantAuthnRequestsSigned: String(sp.verifier !== undefined),
        protocolSupportEnumeration: NS.protocol,
      },
      ...idp.certificates().map(keyDescriptor),
      ...services('SingleLogoutService', logout),
      ...NAME_ID_FORMATS.filter(({ isOffered }) => isOffered).map(({ uri }) => xml('NameIDFormat', {}, uri)),
      ...services('SingleSignOnService', login),
      ...ATTRIBUTES.map(attributeElement),
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${markup}\n`;
}

function keyDescriptor(certificate: string): Markup {
  const data = xml('X509Data', {}, xml('X509Certificate', {}, certificate));
  return xml('KeyDescriptor', { use: 'signing' }, xml('KeyInfo', { xmlns: NS.signature }, data));
}

function attributeElement([claim, friendlyName]: [string, string]): Markup {
  return xml('Attribute', {
    xmlns: NS.assertion,
    Name: `${CLAIMS}${claim}`,
    NameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:uri',
    FriendlyName: friendlyName,
  });
}

export const saml = feature<SamlRoutesDependencies, LogoutPropagationDependencies>({
  name: 'saml',
  logoutChannels: (deps) => [samlLogoutChannel(deps)],
  routes: samlRoutes,
  collections: ['samlSessions', 'samlLogouts', 'samlMessages'],
});
