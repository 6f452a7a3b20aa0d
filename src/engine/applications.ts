// Our application record → the engine's client metadata (RFC 7591 §2 names).

import type { AdapterPayload, JWK, ResponseType } from 'oidc-provider';
import { authenticationMethod } from '../records/client-authentication.ts';
import { type Credential, publicKeyOf } from '../records/client-keys.ts';
import type { Client } from '../records/collections.ts';
import type { Frozen } from '../records/record.ts';
import type { ClientRecord } from '../records/tenant.ts';

/** What of the application record the engine's callbacks need; rides in the client's metadata. */
export interface ApplicationSettings {
  oidcConformant: boolean;
  /** Undefined: as the tenant has it. */
  standardClaims: boolean | undefined;
  firstParty: boolean;
  appType: ClientRecord['app_type'];
  /** Its word on its user's address counts: it has a secret or a key, and the tenant says so. */
  namesUserAddress: boolean;
  /** It runs on its user's device, without a secret: its requests come from where the user is. */
  runsAtUser: boolean;
  /** Seconds. */
  idTokenLifetime: number;
  refreshToken: Frozen<ClientRecord['refresh_token']>;
  /** Users log in to it as members of an organization, and in no other way (`organization_usage: require`). */
  membersOnly: boolean;
  /** It may not use codes itself: only our own requests on its behalf do. */
  codeForUsOnly: boolean;
}

/** Where a login that another protocol of ours began ends (internal-requests.ts). */
export function internalCallback(baseUrl: string, clientId: string): string {
  return `${baseUrl}/samlp/${encodeURIComponent(clientId)}/callback`;
}

/** Whether an address is an internal callback of any application, however it is written. */
export function isInternalCallback(baseUrl: string, address: string): boolean {
  const url = URL.parse(address);
  return url?.origin === new URL(baseUrl).origin && url.pathname.startsWith('/samlp/');
}

/** The metadata property that {@link ApplicationSettings} ride in. */
export const SETTINGS_PROPERTY = 'gatehouse';

/**
 * An application's settings, from the engine's client or from any object that carries its metadata.
 * @throws TypeError when the client was not made by {@link clientMetadata}.
 */
export function applicationSettings(client: object): ApplicationSettings {
  const settings = (client as Record<string, unknown>)[SETTINGS_PROPERTY];
  if (typeof settings !== 'object' || settings === null) throw new TypeError('not a client of this tenant');
  return settings as ApplicationSettings;
}

const IMPLICIT_TYPES: ResponseType[] = ['id_token', 'id_token token'];
const HYBRID_TYPES: ResponseType[] = ['code id_token', 'code token', 'code id_token token'];

/** Every response type that `/authorize` takes, the engine's way of writing them. */
export const RESPONSE_TYPES: ResponseType[] = ['code', ...IMPLICIT_TYPES, ...HYBRID_TYPES];

/**
 * The engine's metadata of an application.
 * @param known the grant types the token endpoint knows; others in the record are for endpoints to come.
 * @param baseUrl our public origin.
 */
export function clientMetadata(client: Client, known: ReadonlySet<string>, baseUrl: string): AdapterPayload {
  const internal = client.addons?.samlp === undefined ? [] : [internalCallback(baseUrl, client.client_id)];
  const own = client.grant_types ?? [];
  const codeForUsOnly = internal.length > 0 && !own.includes('authorization_code');
  const grantTypes = codeForUsOnly ? [...own, 'authorization_code'] : own;
  const redirectUris = [...client.callbacks, ...internal];
  const authenticated = authentication(client);
  const settings: ApplicationSettings = {
    oidcConformant: client.oidc_conformant,
    standardClaims: client.standard_claims,
    firstParty: client.is_first_party,
    appType: client.app_type,
    namesUserAddress:
      client.is_token_endpoint_ip_header_trusted === true &&
      authenticated.token_endpoint_auth_method !== 'none',
    runsAtUser:
      (client.app_type === 'spa' || client.app_type === 'native') &&
      authenticated.token_endpoint_auth_method === 'none',
    idTokenLifetime: client.jwt_configuration.lifetime_in_seconds,
    refreshToken: client.refresh_token,
    membersOnly: client.organization_usage === 'require',
    codeForUsOnly,
  };
  return {
    client_id: client.client_id,
    client_name: client.name,
    application_type: 'web',
    redirect_uris: redirectUris,
    response_types: redirectUris.length > 0 ? responseTypes(grantTypes) : [],
    grant_types: impliedGrants(grantTypes, known).filter(
      (type) =>
        (type === 'implicit' || known.has(type)) &&
        // Only for applications that prove who they are (RFC 6749 §4.4): anybody can name a public one.
        (type !== 'client_credentials' || authenticated.token_endpoint_auth_method !== 'none'),
    ),
    id_token_signed_response_alg: client.jwt_configuration.alg,
    ...authenticated,
    [SETTINGS_PROPERTY]: settings,
  } as AdapterPayload;
}

function responseTypes(grantTypes: readonly string[]): ResponseType[] {
  const code = grantTypes.includes('authorization_code');
  const implicit = grantTypes.includes('implicit');
  return [
    ...(code ? ['code' as const] : []),
    ...(implicit ? IMPLICIT_TYPES : []),
    ...(code && implicit ? HYBRID_TYPES : []),
  ];
}

/** `password` allows its realm variant too: the hosted service has one switch for both. */
function impliedGrants(grantTypes: readonly string[], known: ReadonlySet<string>): string[] {
  if (!grantTypes.includes('password')) return [...grantTypes];
  return [...grantTypes, ...[...known].filter((type) => type.endsWith('/oauth/grant-type/password-realm'))];
}

function authentication(client: Client): AdapterPayload {
  const method = authenticationMethod(client);
  const keys = client.client_authentication_methods?.private_key_jwt?.credentials ?? [];
  const hmac = client.jwt_configuration.alg === 'HS256' && client.client_secret !== undefined;
  const secret = hmac ? { client_secret: client.client_secret } : {};
  switch (method) {
    case 'private_key_jwt':
      return { ...secret, token_endpoint_auth_method: method, jwks: { keys: keys.map(publicJwk) } };
    case 'none':
      return { ...secret, token_endpoint_auth_method: method };
    default:
      // Without a secret the engine refuses such a client: it must never become a public one by accident.
      return { token_endpoint_auth_method: method, client_secret: client.client_secret };
  }
}

function publicJwk(credential: Credential): JWK {
  const { kid } = credential.jwk ?? {};
  const key = publicKeyOf(credential).export({ format: 'jwk' });
  return { ...(key as JWK), ...(typeof kid === 'string' && { kid }), alg: credential.alg, use: 'sig' };
}
