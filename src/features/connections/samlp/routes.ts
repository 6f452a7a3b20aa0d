// The routes of this server as a SAML service provider.
import type { Context } from 'koa';
import { z } from 'zod';
import { receive } from '../../../capabilities/saml-messages/bindings.ts';
import { badMessage } from '../../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional } from '../../../http/parameter-schemas.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import {
  finishLogout,
  handleLogoutRequest,
  handleLogoutResponse,
  type UpstreamLogoutDependencies,
} from './logout-messages.ts';
import { serviceProviderMetadata } from './metadata.ts';
import { isSaml } from './provider.ts';

export interface SamlUpstreamDependencies extends UpstreamLogoutDependencies {}

const samlp = { limit: 'samlp', cors: 'none', errors: 'page' } as const;

const message = {
  SAMLRequest: optional('A LogoutRequest in base64; also deflated with GET.'),
  SAMLResponse: optional('A LogoutResponse to a LogoutRequest of this server, encoded in the same way.'),
  RelayState: optional('Returned unchanged.'),
};
const signature = {
  SigAlg: optional('The algorithm of the signature (SAML Bindings §3.4.4.1).'),
  Signature: optional('The signature of the query, in base64.'),
};

export const samlUpstreamRoutes: RouteDeclarations<SamlUpstreamDependencies> = {
  'GET|HEAD /samlp/metadata': {
    ...samlp,
    summary: 'The metadata of this server as the service provider of a connection',
    query: z.object({ connection: z.string().describe('The name of a SAML connection.') }),
    answers: { 200: 'Metadata in XML (SAML Metadata §2.4.4)' },
    handle: sendMetadata,
  },
  'GET /logout': {
    ...samlp,
    summary: "SAML single logout by a connection's identity provider (HTTP-Redirect binding)",
    query: z.object({ ...message, ...signature }),
    answers: {
      302: 'To the next application of the session, back to the provider, or to the next step of the logout.',
    },
    handle: recordRejection(handleMessage),
  },
  'POST /logout': {
    ...samlp,
    summary: "SAML single logout by a connection's identity provider (HTTP-POST binding)",
    body: z.object(message),
    bodyTypes: ['form'],
    answers: {
      200: 'A page with a LogoutResponse in a form that submits itself.',
      302: 'To the next application of the session, or to the next step of the logout.',
    },
    handle: recordRejection(handleMessage),
  },
  'GET /logout/answer': {
    ...samlp,
    handle: (deps, ctx) =>
      finishLogout(deps, ctx, typeof ctx.query.state === 'string' ? ctx.query.state : ''),
  },
};

async function handleMessage(deps: SamlUpstreamDependencies, ctx: Context): Promise<void> {
  const received = receive(ctx);
  if (received === undefined) throw badMessage('Missing required parameter: SAMLRequest');
  if (received.kind === 'request') return handleLogoutRequest(deps, ctx, received);
  ctx.set('Cache-Control', 'no-store');
  ctx.redirect(await handleLogoutResponse(deps, ctx, received));
}

/** Wraps a handler so that rejected messages are recorded in the tenant's log, where administrators look for the reason. */
function recordRejection(handle: typeof handleMessage): typeof handleMessage {
  return async (deps, ctx) => {
    try {
      await handle(deps, ctx);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        deps.events.record({ type: 'flo', ip: ctx.ip, description: `SAML: ${thrown.error_description}` });
      }
      throw thrown;
    }
  };
}

async function sendMetadata(deps: SamlUpstreamDependencies, ctx: Context): Promise<void> {
  const { connection: name } = ctx.query;
  const connection = typeof name === 'string' ? await deps.config.connection(name) : undefined;
  if (connection === undefined || !isSaml(connection)) {
    throw new AuthError(404, 'not_found', 'There is no SAML connection of this name.');
  }
  const document = await serviceProviderMetadata(deps, connection);
  ctx.set('Content-Type', 'application/xml; charset=utf-8');
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.body = document;
}
