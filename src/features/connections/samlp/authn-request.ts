// The AuthnRequest to a provider (SAML Core §3.4.1), by the HTTP-Redirect or HTTP-POST binding.

import { redirectAddress } from '../../../capabilities/saml-messages/bindings.ts';
import { instantOf } from '../../../capabilities/saml-messages/message.ts';
import { BINDING, NAME_ID, NS } from '../../../capabilities/saml-messages/names.ts';
import { parseXml } from '../../../capabilities/saml-messages/reader.ts';
import { signRoot } from '../../../capabilities/saml-messages/signature.ts';
import { escapeXml, xml } from '../../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../../http/errors.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { mayForward } from '../further-parameters.ts';
import {
  asksForLogin,
  type UpstreamDependencies,
  type UpstreamRedirect,
  type UpstreamRequest,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import type { SamlProvider } from './provider.ts';
import { consumerUrl, entityId, signerOf } from './service-provider.ts';

/** Returns the ID of the request of a login, which the Response must name. It is unguessable. @param nonce that of the login. */
export function requestId(nonce: string): string {
  return `_${nonce}`;
}

/** Builds the request to a provider. @throws AuthError by {@link upstreamFault} if the connection's template is not usable. */
export async function authnRedirect(
  deps: UpstreamDependencies,
  provider: SamlProvider,
  request: UpstreamRequest,
): Promise<UpstreamRedirect> {
  const { options, signIn } = provider;
  const parameters = parametersOf(provider, request);
  const location = withQuery(signIn, parameters);
  const id = requestId(request.nonce);
  const markup = authnRequest(deps, provider, request, parameters);
  const signer = options.signSAMLRequest ? await signerOf(deps, request.connection, options) : undefined;
  const isPost = options.protocolBinding === BINDING.post;
  // In a form, and in a query that is not compressed, the signature is inside the message; else it is a query parameter.
  const isEnveloped = isPost || !options.deflate;
  const signedMarkup =
    signer !== undefined && isEnveloped ? await signRoot(markup, id, signer).catch(throwUnsignable) : markup;
  if (isPost) {
    const message = Buffer.from(signedMarkup).toString('base64');
    return { action: location, fields: { SAMLRequest: message, RelayState: request.state } };
  }
  const message = { kind: 'request', markup: signedMarkup, relayState: request.state, location } as const;
  return { url: await redirectAddress(message, isEnveloped ? undefined : signer, options.deflate) };
}

/** Turns an exception of signing into an error of the template, unless it is an error of the key. */
function throwUnsignable(thrown: unknown): never {
  if (thrown instanceof AuthError) throw thrown;
  throw upstreamFault('invalid_request', 'The requestTemplate makes no request that can be signed.', thrown);
}

/** Parameters of the bindings, which no option sets. */
const RESERVED = new Set([
  'SAMLRequest',
  'SAMLResponse',
  'RelayState',
  'SAMLEncoding',
  'SigAlg',
  'Signature',
]);

/** Returns the parameters of `upstream_params`: fixed values, and values of the application's request. */
function parametersOf(
  { options }: SamlProvider,
  { params, additional }: UpstreamRequest,
): Record<string, string> {
  const requestParameters: Readonly<Record<string, string | undefined>> = { ...additional, ...params };
  return Object.fromEntries(
    Object.entries(options.upstream_params).flatMap(([name, setting]) => {
      const isAllowed = !RESERVED.has(name) && (!('alias' in setting) || mayForward(setting.alias));
      const value = 'alias' in setting ? requestParameters[setting.alias] : setting.value;
      return isAllowed && value !== undefined ? [[name, value] as const] : [];
    }),
  );
}

function authnRequest(
  deps: UpstreamDependencies,
  { options, signIn }: SamlProvider,
  { connection, nonce, params }: UpstreamRequest,
  parameters: Readonly<Record<string, string>>,
): string {
  const values = {
    ID: requestId(nonce),
    IssueInstant: instantOf(epochSeconds(deps.wallClock)),
    Issuer: entityId(deps, connection, options),
    ProtocolBinding: BINDING.post,
    Destination: options.destinationUrl || signIn,
    AssertionConsumerServiceURL: options.recipientUrl || consumerUrl(deps.baseUrl, connection),
    // SAML has no max_age, so a request with one asks for a new authentication.
    ForceAuthn: String(asksForLogin(params.prompt) || params.max_age !== undefined),
  };
  if (options.requestTemplate !== undefined) {
    return fromTemplate(options.requestTemplate, { ...parameters, Connection: connection.name, ...values });
  }
  const { Issuer, ForceAuthn, ...attributes } = values;
  return xml(
    'samlp:AuthnRequest',
    {
      'xmlns:samlp': NS.protocol,
      'xmlns:saml': NS.assertion,
      Version: '2.0',
      ...attributes,
      ForceAuthn: ForceAuthn === 'true' ? 'true' : undefined,
    },
    xml('saml:Issuer', {}, Issuer),
    xml('samlp:NameIDPolicy', { Format: NAME_ID.unspecified, AllowCreate: 'true' }),
  ).markup;
}

/**
 * Replaces the placeholders of a `requestTemplate`; unknown ones become empty. Every value is escaped, so that a parameter of
 * an application's request cannot add elements.
 * @throws AuthError by {@link upstreamFault} if the result is not XML.
 */
function fromTemplate(template: string, values: Readonly<Record<string, string>>): string {
  const addressAttributes = (['AssertionConsumerServiceURL', 'Destination'] as const)
    .map((name) => `${name}="${escapeXml(values[name] ?? '')}"`)
    .join(' ');
  const request = template.trim().replaceAll(/@@([\w.]{1,100})@@/g, (_all, name: string) => {
    if (name === 'AssertServiceURLAndDestination') return addressAttributes;
    return Object.hasOwn(values, name) ? escapeXml(values[name] ?? '') : '';
  });
  try {
    parseXml(request);
  } catch (thrown) {
    throw upstreamFault('invalid_request', 'The requestTemplate of the connection makes no XML.', thrown);
  }
  return request;
}
