// This server as the service provider of SAML identity providers: its metadata, and single logout.

import type { Context } from 'koa';
import { z } from 'zod';
import { receive } from '../../../capabilities/saml-messages/bindings.ts';
import { CONTENT_ALGORITHMS, KEY_ALGORITHMS } from '../../../capabilities/saml-messages/decryption.ts';
import { NAME_ID_FORMATS } from '../../../capabilities/saml-messages/name-id.ts';
import { BINDING, NS } from '../../../capabilities/saml-messages/names.ts';
import { samlLimits } from '../../../capabilities/saml-messages/saml-messages-declaration.ts';
import { badMessage, type Markup, xml } from '../../../capabilities/saml-messages/xml.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional } from '../../../http/parameter-schemas.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Connection } from '../../../records/collections.ts';
import {
  finishLogout,
  handleLogoutRequest,
  handleLogoutResponse,
  type UpstreamLogoutDependencies,
} from './logout-messages.ts';
import { acceptsEncryption, isSaml, samlpOptions } from './provider.ts';
import {
  consumerUrl,
  decryptionKeys,
  entityId,
  logoutUrl,
  type ServiceProviderDependencies,
  signingKeys,
} from './service-provider.ts';

// The routes of this server as a SAML service provider.

interface SamlUpstreamDependencies extends UpstreamLogoutDependencies {}

const samlp = { limit: samlLimits.samlp, cors: 'none', errors: 'page' } as const;

const message = {
  SAMLRequest: optional('A LogoutRequest in base64; also deflated with GET.'),
  SAMLResponse: optional('A LogoutResponse to a LogoutRequest of this server, encoded in the same way.'),
  RelayState: optional('Returned unchanged.'),
};
const signature = {
  SigAlg: optional('The algorithm of the signature (SAML Bindings §3.4.4.1).'),
  Signature: optional('The signature of the query, in base64.'),
};

const samlUpstreamRoutes: RouteDeclarations<SamlUpstreamDependencies> = {
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
    uncheckedBody: z.object(message),
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
        deps.events.record({
          type: engineEvents.flo,
          ip: ctx.ip,
          description: `SAML: ${thrown.error_description}`,
        });
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

// The metadata of this server for the identity provider of a connection (SAML Metadata §2.4.4).

/** Returns the metadata document, with the current and next signing certificates and the encryption certificate. */
async function serviceProviderMetadata(
  deps: ServiceProviderDependencies,
  connection: Connection,
): Promise<string> {
  const options = samlpOptions(connection);
  const signing = (await signingKeys(deps, connection, options)).filter((one) => one.isPublished);
  const [encryption] = await decryptionKeys(deps, connection, options);
  const logout = logoutUrl(deps.baseUrl);
  const { markup } = xml(
    'EntityDescriptor',
    { xmlns: NS.metadata, entityID: entityId(deps, connection, options) },
    xml(
      'SPSSODescriptor',
      {
        AuthnRequestsSigned: String(options.signSAMLRequest),
        WantAssertionsSigned: 'true',
        protocolSupportEnumeration: NS.protocol,
      },
      ...signing.map(({ certificate }) => keyDescriptor('signing', certificate)),
      keyDescriptor('encryption', encryption?.certificate, [
        ...CONTENT_ALGORITHMS.filter((one) => acceptsEncryption(options, one)),
        ...KEY_ALGORITHMS,
      ]),
      ...(options.disableSignout
        ? []
        : [BINDING.redirect, BINDING.post].map((binding) =>
            xml('SingleLogoutService', { Binding: binding, Location: logout }),
          )),
      ...NAME_ID_FORMATS.filter(({ lasts }) => lasts !== 'transient').map(({ uri }) =>
        xml('NameIDFormat', {}, uri),
      ),
      xml('AssertionConsumerService', {
        Binding: BINDING.post,
        Location: options.recipientUrl || consumerUrl(deps.baseUrl, connection),
        index: '0',
        isDefault: 'true',
      }),
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${markup}\n`;
}

/** @param methods the algorithms that the key may be used with (SAML Metadata §2.4.1.1). */
function keyDescriptor(
  use: 'signing' | 'encryption',
  certificate: string | undefined,
  methods: readonly string[] = [],
): Markup | undefined {
  if (certificate === undefined) return undefined;
  const data = xml('X509Data', {}, xml('X509Certificate', {}, certificate));
  return xml(
    'KeyDescriptor',
    { use },
    xml('KeyInfo', { xmlns: NS.signature }, data),
    ...methods.map((Algorithm) => xml('EncryptionMethod', { Algorithm })),
  );
}

export const samlUpstream = feature<SamlUpstreamDependencies>({
  name: 'samlp',
  routes: samlUpstreamRoutes,
});
