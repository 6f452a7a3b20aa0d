// The common implementation of all OpenID Connect strategies.
import { STRATEGIES } from '../../../records/connections.ts';
import type { OpenIdOptions } from '../../../records/openid.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import {
  type RedirectStrategy,
  refuseProviderError,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamResponse,
  upstreamFault,
  withQuery,
} from '../redirect.ts';
import { authorizationUrl, sendsNonce } from './authorization.ts';
import { claimsOf, endpointOf, endSessionOf, type OpenIdConnection, openConnection } from './connection.ts';
import { exchangeCode, userInfoOf, withProofKey } from './exchange.ts';
import { idTokenFault } from './id-token.ts';
import type { Preset, ProviderResponse } from './preset.ts';
import { profileOf } from './profile.ts';
import { openIdGrant, refreshGrant } from './refresh.ts';

/** Creates the strategy of a preset. */
export function openIdStrategy<Options extends OpenIdOptions>(preset: Preset<Options>): RedirectStrategy {
  const { name, label, isSocial, idsWithin } = preset;
  return {
    name,
    ...(label !== undefined && { label }),
    page: 'redirect',
    amr: [],
    record: STRATEGIES[name],
    isSocial,
    idsWithin,
    redirect: async (deps, request) => ({
      url: authorizationUrl(await openConnection(deps, preset, request.connection), request),
    }),
    identify: async (deps, response) => {
      const connection = await openConnection(deps, preset, response.connection);
      checkIssuer(connection, response.parameters);
      refuseProviderError(response.parameters);
      if (connection.preset.responseMode === 'form_post' && !response.isPosted)
        throw upstreamFault(
          'invalid_request',
          'The identity provider did not post its answer, as it was asked to.',
        );
      return connection.isFrontChannel
        ? fromFrontChannel(deps, connection, response)
        : fromBackChannel(deps, connection, response);
    },
    logout: async (deps, { connection: record, grant, callback, state }) => {
      const endSession = await endSessionOf(deps, preset, record);
      if (endSession === undefined) return undefined;
      return withQuery(endSession.address, {
        ...(endSession.clientId !== undefined && { client_id: endSession.clientId }),
        ...(grant.id_token !== undefined && { id_token_hint: grant.id_token }),
        post_logout_redirect_uri: callback,
        state,
      });
    },
    check: async (deps, connection) => {
      const { metadata, isFrontChannel } = await openConnection(deps, preset, connection);
      endpointOf(metadata, 'authorization_endpoint');
      if (!isFrontChannel) endpointOf(metadata, 'token_endpoint');
    },
    refresh: async (deps, refresh) =>
      refreshGrant(deps, await openConnection(deps, preset, refresh.connection), refresh),
  };
}

/**
 * Rejects a response of another provider (mix-up attack, RFC 9207 §2.4). The parameter `iss` is required if the metadata
 * announces it, except in a response with an ID token: its own `iss` is verified, and providers leave the parameter out (§4).
 * @throws AuthError by `upstreamFault`
 */
function checkIssuer<Options extends OpenIdOptions>(
  { metadata, isFrontChannel }: OpenIdConnection<Options>,
  { iss }: UpstreamResponse['parameters'],
): void {
  const isRequired = !isFrontChannel && metadata.authorization_response_iss_parameter_supported === true;
  const isMissing = iss === undefined && isRequired;
  if (isMissing || (iss !== undefined && iss !== metadata.issuer)) {
    throw upstreamFault('access_denied', 'The answer is of another identity provider.');
  }
}

/** Returns the identity of an ID token that the browser posted (OAuth 2.0 Form Post Response Mode). */
async function fromFrontChannel<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  { nonce, parameters }: UpstreamResponse,
): Promise<UpstreamIdentity> {
  const { id_token = '' } = parameters;
  if (id_token === '') throw upstreamFault('invalid_request', 'The identity provider sent no ID token.');
  const claims = await claimsOf(deps, connection, id_token, { nonce });
  return { ...identityOf(deps, connection, { claims, userInfo: {}, parameters }), grant: { id_token } };
}

async function fromBackChannel<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  configured: OpenIdConnection<Options>,
  response: UpstreamResponse,
): Promise<UpstreamIdentity> {
  const { parameters } = response;
  const { code = '' } = parameters;
  if (code === '')
    throw upstreamFault('invalid_request', 'The identity provider sent no authorization code.');
  const connection = await withProofKey(configured);
  const tokens = await exchangeCode(deps, connection, response, code);
  const nonce = sendsNonce(connection) ? response.nonce : undefined;
  return identityOfTokens(deps, connection, tokens, { nonce, parameters });
}

/**
 * Returns the identity of a token response: the claims of its ID token and of the userinfo endpoint.
 * @param nonce undefined if the request had none.
 * @throws AuthError by `upstreamFault`
 */
async function identityOfTokens<Options extends OpenIdOptions>(
  deps: UpstreamDependencies,
  connection: OpenIdConnection<Options>,
  tokens: Awaited<ReturnType<typeof exchangeCode>>,
  { nonce, parameters }: { nonce: string | undefined } & Pick<ProviderResponse, 'parameters'>,
): Promise<UpstreamIdentity> {
  const { id_token, access_token } = tokens;
  if (id_token === undefined) {
    throw upstreamFault('invalid_request', "The identity provider's token endpoint gave no ID token.");
  }
  const claims = await claimsOf(deps, connection, id_token, { nonce, accessToken: access_token });
  const userInfo = await userInfoOf(deps, connection, access_token, claims.sub);
  const further = await connection.preset.further?.(deps, connection, access_token);
  const identity = identityOf(deps, connection, { claims, userInfo, parameters });
  return {
    ...identity,
    profile: { ...identity.profile, ...further },
    grant: openIdGrant(tokens, connection, deps),
  };
}

/** Returns the identity that a provider's claims describe. @throws AuthError by `upstreamFault` if they name no user. */
export function identityOf<Options extends OpenIdOptions>(
  deps: Pick<UpstreamDependencies, 'wallClock'>,
  { preset, options }: OpenIdConnection<Options>,
  response: ProviderResponse,
): UpstreamIdentity {
  const profile = profileOf(options, response);
  const { auth_time: authenticatedAt } = response.claims;
  const sessionEndsAt = sessionEndOf(deps, options, response.claims);
  return {
    ...(sessionEndsAt !== undefined && { sessionEndsAt }),
    ...(typeof authenticatedAt === 'number' && { authenticatedAt }),
    id: preset.idOf?.(response.claims, options) ?? response.claims.sub,
    ...(preset.stableOf && { stable: preset.stableOf(response.claims, options) }),
    profile: preset.profile?.(profile, response, options) ?? profile,
  };
}

/**
 * Returns when the session at the provider ends, epoch seconds, if the connection uses the claim `session_expiry`. Only a login
 * is checked by it: access tokens are renewed after the session has ended, too.
 * @throws AuthError by `upstreamFault` for a session that has ended, and for a value that is not a time, which would not limit
 *   the session here.
 */
function sessionEndOf(
  { wallClock }: Pick<UpstreamDependencies, 'wallClock'>,
  { id_token_session_expiry_supported: isSupported }: OpenIdOptions,
  { session_expiry: expiry }: ProviderResponse['claims'],
): number | undefined {
  if (isSupported !== true || expiry === undefined) return undefined;
  if (typeof expiry !== 'number' || expiry <= 0 || !Number.isSafeInteger(Math.floor(expiry)))
    throw idTokenFault('has a session_expiry that is no time');
  if (expiry <= epochSeconds(wallClock)) throw idTokenFault('is of a session that is over');
  return Math.floor(expiry);
}
