// The strategies `samlp` and `pingfederate`: logins at a SAML 2.0 identity provider, with this server as the service provider
// (SAML Profiles §4.1).

import { refuseReplay } from '../../../capabilities/saml-messages/message.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { STRATEGIES } from '../../../records/connections.ts';
import {
  type RedirectStrategy,
  type UnsolicitedLogin,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamResponse,
  upstreamFault,
} from '../redirect.ts';
import { readAssertion } from './assertion.ts';
import { authnRedirect, requestId } from './authn-request.ts';
import { logoutRedirect } from './logout.ts';
import { identityOf } from './profile.ts';
import { acceptsEncryption, providerOf, samlpOptions } from './provider.ts';
import { checkIssuer, verifyResponse } from './response.ts';
import { decryptionKeys, entityId } from './service-provider.ts';

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
