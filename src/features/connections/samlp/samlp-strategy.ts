// The strategies `samlp` and `pingfederate`: logins at a SAML 2.0 identity provider, with this server as the service provider
// (SAML Profiles §4.1).

import { redirectAddress } from '../../../capabilities/saml-messages/bindings.ts';
import { nameIdFormatOf, unspecified } from '../../../capabilities/saml-messages/name-id.ts';
import { BINDING, CLAIMS, NS } from '../../../capabilities/saml-messages/names.ts';
import { parseXml } from '../../../capabilities/saml-messages/reader.ts';
import { instantOf, refuseReplay } from '../../../capabilities/saml-messages/saml-message.ts';
import { signRoot } from '../../../capabilities/saml-messages/signature.ts';
import { escapeXml, xml } from '../../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { STRATEGIES } from '../../../records/connections/connections.ts';
import type { SamlpOptions } from '../../../records/connections/samlp-connection.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import {
  asksForLogin,
  mayForward,
  type RedirectStrategy,
  type UnsolicitedLogin,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamRedirect,
  type UpstreamRequest,
  type UpstreamResponse,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import { type AssertionContents, readAssertion } from './assertion.ts';
import { acceptsEncryption, providerOf, type SamlProvider, samlpOptions } from './provider.ts';
import { checkIssuer, verifyResponse } from './response.ts';
import { logoutRedirect } from './samlp-logout.ts';
import { consumerUrl, decryptionKeys, entityId, signerOf } from './service-provider.ts';

const saml = {
  page: 'redirect',
  // The provider's AuthnContext is not used.
  amr: [],
  isSocial: false,
  idsWithin: 'connection',
  redirect: async (deps, request) => authnRedirect(deps, await providerOf(deps, request.connection), request),
  identify: (deps, { connection, nonce, parameters, redirectUri }) =>
    identify(deps, { connection, parameters, redirectUri }, requestId(nonce)),
  unsolicited: {
    loginOf: idpInitiated,
    identify: (deps, response) => identify(deps, response, undefined),
  },
  logout: logoutRedirect,
  check: async (deps, connection) => {
    await providerOf(deps, connection);
  },
} as const satisfies Omit<RedirectStrategy, 'name' | 'record'>;

export const samlStrategies: readonly RedirectStrategy[] = [
  { ...saml, name: 'samlp', record: STRATEGIES.samlp },
  { ...saml, name: 'pingfederate', record: STRATEGIES.pingfederate },
];

/** Returns the login that a connection's provider may begin (option `idpinitiated`); undefined if it may not. */
function idpInitiated(connection: Connection): UnsolicitedLogin | undefined {
  const {
    enabled,
    client_id: clientId,
    client_protocol,
    client_authorizequery,
  } = samlpOptions(connection).idpinitiated;
  if (!enabled || clientId === undefined) return undefined;
  if (client_protocol === 'samlp') {
    return { clientId, path: `/samlp/${encodeURIComponent(clientId)}`, query: new URLSearchParams() };
  }
  const query = new URLSearchParams(client_authorizequery);
  query.set('client_id', clientId);
  if (!query.has('response_type')) query.set('response_type', 'code');
  return { clientId, path: '/authorize', query };
}

/**
 * Verifies a Response, and marks its assertion as used.
 * @param inResponseTo the ID of the request that it must answer; undefined for an unsolicited one.
 * @throws AuthError by {@link upstreamFault}, or 400.
 */
async function identify(
  deps: UpstreamDependencies,
  {
    connection,
    parameters,
    redirectUri,
  }: Pick<UpstreamResponse, 'connection' | 'parameters' | 'redirectUri'>,
  inResponseTo: string | undefined,
): Promise<UpstreamIdentity> {
  const { SAMLResponse: encoded = '' } = parameters;
  if (encoded === '') throw upstreamFault('invalid_request', 'The identity provider sent no SAMLResponse.');
  const { options, verifier, issuer: knownIssuer } = await providerOf(deps, connection);
  const address = options.recipientUrl || redirectUri;
  const { wallClock: clock, xml } = deps;
  const keys = async () =>
    (await decryptionKeys(deps, connection, options)).flatMap(({ privateKey }) => privateKey ?? []);
  const accepts = (algorithm: string) => acceptsEncryption(options, algorithm);
  const expected = { xml, destination: address, inResponseTo, verifier, keys, accepts, clock };
  const { assertion, issuer } = await verifyResponse(encoded, expected);
  checkIssuer(assertion, issuer, knownIssuer);
  const audience = entityId(deps, connection, options);
  const expectedAssertion = {
    audience,
    recipient: address,
    connection: connection.name,
    inResponseTo,
    clock,
  };
  const contents = readAssertion(assertion, expectedAssertion);
  await refuseReplayedAssertion(deps, connection, contents.id);
  return identityOf(options, contents);
}

/** Marks an assertion as used. @throws AuthError by {@link upstreamFault} if it was used before. */
async function refuseReplayedAssertion(
  { store, clock }: UpstreamDependencies,
  { id }: Connection,
  assertionId: string,
): Promise<void> {
  try {
    await refuseReplay(store, clock, id, `assertion ${assertionId}`);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    throw upstreamFault('access_denied', 'The assertion of the identity provider was already used.', thrown);
  }
}

// The user that an assertion names: the id, and a profile with our claim names.

const NAME_IDENTIFIER = `${CLAIMS}nameidentifier`;

/** The attributes that may have the user's id, in order of preference. */
const ID_ATTRIBUTES = [NAME_IDENTIFIER, `${CLAIMS}upn`, `${CLAIMS}name`];

/** The attributes that claims of the profile are read from: the names that most providers use. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  email: [`${CLAIMS}emailaddress`, 'email', 'mail', 'urn:oid:0.9.2342.19200300.100.1.3'],
  name: [`${CLAIMS}name`, 'name', 'displayName', 'urn:oid:2.16.840.1.113730.3.1.241'],
  given_name: [`${CLAIMS}givenname`, 'given_name', 'givenName', 'firstName', 'urn:oid:2.5.4.42'],
  family_name: [`${CLAIMS}surname`, 'family_name', 'surname', 'sn', 'lastName', 'urn:oid:2.5.4.4'],
};

/**
 * Returns the user that an assertion names. The id is that of the option `user_id_attribute`, of the mapping of `user_id`, or of
 * the NameID or an attribute that takes its place.
 * @throws AuthError by {@link upstreamFault} if the assertion has no such id.
 */
function identityOf(
  { user_id_attribute, fieldsMap }: SamlpOptions,
  { attributes, nameId, sessionIndex, authenticatedAt }: AssertionContents,
): UpstreamIdentity {
  const available = new Map(attributes);
  const lasts = nameIdFormatOf(nameId?.format)?.lasts;
  const isLasting = nameId !== undefined && lasts !== 'transient';
  if (isLasting) available.set(NAME_IDENTIFIER, [nameId.value]);
  const first = (names: readonly string[]) =>
    names.map((name) => available.get(name)).find((one) => one !== undefined);
  const { user_id: mappedId, ...mappings } = fieldsMap;
  const hasIdAttribute = user_id_attribute !== undefined && user_id_attribute !== '';
  const ids = hasIdAttribute
    ? [user_id_attribute]
    : mappedId === undefined
      ? ID_ATTRIBUTES
      : [mappedId].flat();
  const id = first(ids)?.[0];
  if (id === undefined) {
    throw upstreamFault(
      'access_denied',
      'The assertion of the identity provider names no user by a lasting id.',
    );
  }
  const fields = Object.entries({ ...FIELDS, ...mappings }).flatMap(([field, names]) => {
    const values = first([names].flat());
    return values === undefined ? [] : [[field, single(values)] as const];
  });
  const unmapped = [...available].map(([name, values]) => [name, single(values)] as const);
  const isNameId = isLasting && ids.find((name) => available.has(name)) === NAME_IDENTIFIER;
  const isReassignable = isNameId && lasts === 'reassignable';
  return {
    id,
    ...(isReassignable && { idIs: `a NameID of the format ${nameId.format.split(':').at(-1)}` }),
    profile: Object.fromEntries([...unmapped, ...fields]),
    ...(authenticatedAt !== undefined && { authenticatedAt }),
    ...(nameId && { grant: { logout: logoutOf(nameId, sessionIndex) } }),
  };
}

function single(values: readonly string[]): string | string[] {
  const [value = ''] = values;
  return values.length === 1 ? value : [...values];
}

/** Returns what a LogoutRequest identifies the session by (Core §3.7.1). */
function logoutOf(
  { value, format, qualifiers }: NonNullable<AssertionContents['nameId']>,
  sessionIndex: string | undefined,
): Record<string, string> {
  return {
    name_id: value,
    format,
    ...qualifiers,
    ...(sessionIndex !== undefined && { session_index: sessionIndex }),
  };
}

// The AuthnRequest to a provider (SAML Core §3.4.1), by the HTTP-Redirect or HTTP-POST binding.

// docs/understand/decisions/saml.md#the-id-of-an-authnrequest-is-the-nonce-of-the-waiting-login
/** Returns the ID of the request of a login, which the Response must name. It is unguessable. @param nonce that of the login. */
function requestId(nonce: string): string {
  return `_${nonce}`;
}

/** Builds the request to a provider. @throws AuthError by {@link upstreamFault} if the connection's template is not usable. */
async function authnRedirect(
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
    xml('samlp:NameIDPolicy', { Format: unspecified.uri, AllowCreate: 'true' }),
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
