// The AuthnRequest to a provider (SAML Core §3.4.1), by HTTP-Redirect or HTTP-POST.
import { AuthError } from '../../http/errors.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { redirectAddress } from '../../saml-messages/bindings.ts';
import { instantOf } from '../../saml-messages/message.ts';
import { BINDING, NAME_ID, NS } from '../../saml-messages/names.ts';
import { signElement } from '../../saml-messages/signature.ts';
import { escapeXml, parseXml, xml } from '../../saml-messages/xml.ts';
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

/** The ID of the request of a login: the answer names it, and nobody else knows it before. @param nonce of the login. */
export function requestId(nonce: string): string {
  return `_${nonce}`;
}

/** Builds the way to a provider. @throws AuthError by {@link upstreamFault} for a template that makes no request. */
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
  // Without compression the query would be as long as the message, and its signature is inside.
  const isInside = isPost || !options.deflate;
  const sent =
    signer !== undefined && isInside ? await signElement(markup, id, signer).catch(unsignable) : markup;
  if (isPost) {
    const message = Buffer.from(sent).toString('base64');
    return { action: location, fields: { SAMLRequest: message, RelayState: request.state } };
  }
  const message = { kind: 'request', markup: sent, relayState: request.state, location } as const;
  return { url: await redirectAddress(message, isInside ? undefined : signer, options.deflate) };
}

/** A template may make anything; a key that does not sign is another fault. */
function unsignable(thrown: unknown): never {
  if (thrown instanceof AuthError) throw thrown;
  throw upstreamFault('invalid_request', 'The requestTemplate makes no request that can be signed.', thrown);
}

/** Parameters that are the binding's own. */
const RESERVED = new Set([
  'SAMLRequest',
  'SAMLResponse',
  'RelayState',
  'SAMLEncoding',
  'SigAlg',
  'Signature',
]);

/** `upstream_params`: fixed values, and those of the application's request. */
function parametersOf(
  { options }: SamlProvider,
  { params, additional }: UpstreamRequest,
): Record<string, string> {
  const given: Readonly<Record<string, string | undefined>> = { ...additional, ...params };
  return Object.fromEntries(
    Object.entries(options.upstream_params).flatMap(([name, to]) => {
      const isOurs = RESERVED.has(name) || ('alias' in to && to.alias.startsWith('gatehouse_'));
      const value = 'alias' in to ? given[to.alias] : to.value;
      return isOurs || value === undefined ? [] : [[name, value] as const];
    }),
  );
}

function authnRequest(
  deps: UpstreamDependencies,
  { options, signIn }: SamlProvider,
  { connection, nonce, params }: UpstreamRequest,
  parameters: Readonly<Record<string, string>>,
): string {
  const known = {
    ID: requestId(nonce),
    IssueInstant: instantOf(epochSeconds(deps.wallClock)),
    Issuer: entityId(deps, connection, options),
    ProtocolBinding: BINDING.post,
    Destination: options.destinationUrl || signIn,
    AssertionConsumerServiceURL: options.recipientUrl || consumerUrl(deps.baseUrl, connection),
    // It has no word for an age: who wants a recent login wants a new one.
    ForceAuthn: String(asksForLogin(params.prompt) || params.max_age !== undefined),
  };
  if (options.requestTemplate !== undefined) {
    return fromTemplate(options.requestTemplate, { ...parameters, Connection: connection.name, ...known });
  }
  const { Issuer, ForceAuthn, ...attributes } = known;
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
 * Fills a template in; what is not known is empty. Every value is escaped, so that no parameter of an application's
 * request becomes an element.
 */
function fromTemplate(template: string, known: Readonly<Record<string, string>>): string {
  const both = (['AssertionConsumerServiceURL', 'Destination'] as const)
    .map((name) => `${name}="${escapeXml(known[name] ?? '')}"`)
    .join(' ');
  const filled = template.trim().replaceAll(/@@([\w.]{1,100})@@/g, (_all, name: string) => {
    if (name === 'AssertServiceURLAndDestination') return both;
    return Object.hasOwn(known, name) ? escapeXml(known[name] ?? '') : '';
  });
  try {
    parseXml(filled);
  } catch (thrown) {
    throw upstreamFault('invalid_request', 'The requestTemplate of the connection makes no XML.', thrown);
  }
  return filled;
}
