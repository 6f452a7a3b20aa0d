// Maps application records to the engine's client metadata (RFC 7591 §2).
import {
  type AdapterPayload,
  type Client as EngineClient,
  errors,
  type JWK,
  type KoaContextWithOIDC,
  type ResponseType,
} from 'oidc-provider';
import type { Frozen } from '../../records/base/record.ts';
import { authenticationMethod, credentialMethod } from '../../records/clients/client-authentication.ts';
import type { Rule } from '../../records/clients/client-compliance.ts';
import { type Credential, expiryOf, isNameOnly, publicKeyOf } from '../../records/clients/client-keys.ts';
import { idTokenAlg, responseAlg } from '../../records/clients/clients.ts';
import {
  allowedGrants,
  BACKCHANNEL_RULES,
  brokenRules,
  clientFaults,
  type ProfiledRequest,
  REQUEST_RULES,
  TOKEN_RULES,
} from '../../records/clients/compliance.ts';
import { type Profile, profileOf } from '../../records/clients/compliance-levels.ts';
import { type DistinguishedName, parseName } from '../../records/clients/distinguished-name.ts';
import type { SessionTransfer } from '../../records/clients/session-transfer.ts';
import { isRedirectProtected, isStranger, isStrict } from '../../records/clients/third-parties.ts';
import type { Client, ResourceServer } from '../../records/collections.ts';
import type { ClientRecord } from '../../records/tenant/tenant.ts';
import { clientEncryption } from './client-encryption.ts';
import type { ServerLoginCallbacks } from './server-login-callbacks.ts';

/** The grant type of RFC 8693 §2.1. */
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** The settings of an application that the engine's callbacks need, kept in the client's metadata. */
export interface ApplicationSettings {
  oidcConformant: boolean;
  /** Undefined: the tenant's default. */
  standardClaims: boolean | undefined;
  firstParty: boolean;
  /** Whether it is a third party's, without exceptions for old ones. */
  isStrict: boolean;
  /** Whether users are shown where its requests are answered, because nobody here vouches for it. */
  isStranger: boolean;
  /** Whether errors that nobody has seen stay on a page of this server. */
  isRedirectProtected: boolean;
  appType: ClientRecord['app_type'];
  /** Whether its `auth0-forwarded-for` header is trusted: it authenticates, and the tenant allows it. */
  isForwardedAddressTrusted: boolean;
  /** Whether it is a public application that runs at its user: its requests come from the user's address. */
  runsOnUserDevice: boolean;
  /** Whether it is a public client, which does not authenticate (RFC 6749 §2.1). */
  isPublic: boolean;
  /** The rules of its `compliance_level`; null for a level that this version does not know. */
  profile: Profile | null | undefined;
  /** The members of its own record that these rules forbid. */
  profileFaults: readonly string[];
  /** Whether all its access tokens must be bound to a key (DPoP or mutual TLS). */
  requirePossession: boolean;
  /** Seconds. */
  idTokenLifetime: number;
  refreshToken: Frozen<ClientRecord['refresh_token']>;
  /** Whether users log in as members of an organization. */
  organizationUsage: 'deny' | 'allow' | 'require';
  /** Whether and how it takes and makes session transfers. */
  sessionTransfer: Frozen<Partial<SessionTransfer>>;
  /** When the user is asked for an organization, where one is required. */
  organizationPrompt: 'no_prompt' | 'pre_login_prompt' | 'post_login_prompt';
  /** Whether codes are only issued to our own requests on its behalf. */
  isCodeInternalOnly: boolean;
  /** The rules for its certificate, where it authenticates by mutual TLS. */
  certificates: CertificateRules | undefined;
  /** Whether the audience of its assertions is the issuer alone (FAPI 2.0 Security Profile §5.3.2.1). */
  assertsToIssuer: boolean;
}

/** The metadata property of {@link ApplicationSettings}. */
export const SETTINGS_PROPERTY = 'gatehouse';

/**
 * The metadata member for how an application learns that its user has approved (OpenID Connect CIBA Core 1.0 §4).
 * The engine refuses an application with the CIBA grant that lacks it, though the grant is our own.
 */
export const DELIVERY_MODE_PROPERTY = 'backchannel_token_delivery_mode';

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

/** The response types of `/authorize`, as the engine spells them. */
export const RESPONSE_TYPES: ResponseType[] = ['code', ...IMPLICIT_TYPES, ...HYBRID_TYPES];

/**
 * Returns the engine's metadata of an application.
 * @param knownGrantTypes grant types of the token endpoint; others in the record are dropped.
 * @param serverLoginCallbacks the callbacks of logins that we ask for ourselves.
 * @param now epoch milliseconds: keys that have expired are left out.
 */
export function clientMetadata(
  client: Client,
  knownGrantTypes: ReadonlySet<string>,
  serverLoginCallbacks: ServerLoginCallbacks,
  now: number,
): AdapterPayload {
  const allowed = allowedGrants(client, [...(client.grant_types ?? [])]);
  const internalCallbacks = internalCallbacksOf(client, allowed, serverLoginCallbacks);
  const codeForUsOnly = internalCallbacks.length > 0 && !allowed.includes('authorization_code');
  const grantTypes = codeForUsOnly ? [...allowed, 'authorization_code'] : allowed;
  const redirectUris = [...client.callbacks, ...internalCallbacks];
  const authenticationMetadata = authentication(client, now);
  const encryption = clientEncryption(client);
  const settings: ApplicationSettings = {
    oidcConformant: client.oidc_conformant,
    standardClaims: client.standard_claims,
    firstParty: client.is_first_party,
    isStrict: isStrict(client),
    isStranger: isStranger(client),
    isRedirectProtected: isRedirectProtected(client),
    appType: client.app_type,
    isForwardedAddressTrusted:
      client.is_token_endpoint_ip_header_trusted === true &&
      authenticationMetadata.token_endpoint_auth_method !== 'none',
    runsOnUserDevice:
      (client.app_type === 'spa' || client.app_type === 'native') &&
      authenticationMetadata.token_endpoint_auth_method === 'none',
    isPublic: authenticationMetadata.token_endpoint_auth_method === 'none',
    profile: profileOf(client),
    profileFaults: clientFaults(client),
    requirePossession: client.require_proof_of_possession === true,
    idTokenLifetime: client.jwt_configuration.lifetime_in_seconds,
    refreshToken: client.refresh_token,
    organizationUsage: client.organization_usage ?? 'deny',
    sessionTransfer: client.session_transfer ?? {},
    organizationPrompt: client.organization_require_behavior ?? 'no_prompt',
    isCodeInternalOnly: codeForUsOnly,
    certificates: certificateRules(client, now),
    assertsToIssuer: profileOf(client)?.standards.includes('fapi2') === true,
  };
  return {
    client_id: client.client_id,
    client_name: client.name,
    application_type: 'web',
    redirect_uris: redirectUris,
    response_types: redirectUris.length > 0 ? responseTypes(grantTypes) : [],
    grant_types: allowedGrants(client, impliedGrants(client, grantTypes, knownGrantTypes)).filter(
      (type) =>
        (type === 'implicit' || knownGrantTypes.has(type)) &&
        // client_credentials is only for applications that authenticate (RFC 6749 §4.4).
        (type !== 'client_credentials' || authenticationMetadata.token_endpoint_auth_method !== 'none'),
    ),
    id_token_signed_response_alg: idTokenAlg(client),
    authorization_signed_response_alg: responseAlg(client),
    ...authenticationMetadata,
    ...encryption.metadata,
    ...(encryption.keys.length > 0 && {
      jwks: { keys: [...(authenticationMetadata.jwks?.keys ?? []), ...encryption.keys] },
    }),
    [DELIVERY_MODE_PROPERTY]: 'poll',
    [SETTINGS_PROPERTY]: settings,
  } as AdapterPayload;
}

/**
 * Returns the callbacks of our own requests on the application's behalf. With a compliance level only those for
 * grants that the level allows. The codes of these requests yield no tokens.
 */
function internalCallbacksOf(
  client: Client,
  allowed: string[],
  serverLoginCallbacks: ServerLoginCallbacks,
): string[] {
  return serverLoginCallbacks.of(
    profileOf(client) === undefined ? client : { ...client, addons: {}, grant_types: allowed },
  );
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

// docs/understand/decisions/tokens.md#password-in-an-applications-grant_types-also-allows-the-password-realm-grant
/**
 * Adds the grants that other settings imply. `password` allows the password-realm grant too, because the hosted
 * service has one switch for both. `native_social_login` and `token_exchange` are switches beside `grant_types`
 * that allow token exchange.
 */
function impliedGrants(
  { native_social_login: native, token_exchange: exchange }: Client,
  grantTypes: readonly string[],
  known: ReadonlySet<string>,
): string[] {
  const isNative = Object.values(native ?? {}).some((one) => isEnabled(one));
  const byPassword = grantTypes.includes('password')
    ? [...known].filter((type) => type.endsWith('/oauth/grant-type/password-realm'))
    : [];
  const isExchanging = isNative || (exchange?.allow_any_profile_of_type ?? []).length > 0;
  return [...new Set([...grantTypes, ...byPassword, ...(isExchanging ? [TOKEN_EXCHANGE] : [])])];
}

function isEnabled(setting: unknown): boolean {
  return typeof setting === 'object' && setting !== null && 'enabled' in setting && setting.enabled === true;
}

/**
 * Returns when the next key of the application expires, which changes its metadata; epoch milliseconds, infinite
 * when no key expires.
 */
export function metadataExpiry(client: Client, now: number): number {
  return Math.min(
    ...credentialsOf(client)
      .map(expiryOf)
      .filter((at) => at > now),
  );
}

function authentication(client: Client, now: number): AdapterPayload {
  const method = authenticationMethod(client);
  const hmac = idTokenAlg(client) === 'HS256' && client.client_secret !== undefined;
  const secret = hmac ? { client_secret: client.client_secret } : {};
  switch (method) {
    case 'private_key_jwt': {
      const all = client.client_authentication_methods?.private_key_jwt?.credentials ?? [];
      const keys = all.filter((key) => expiryOf(key) > now && !isNameOnly(key));
      return { ...secret, token_endpoint_auth_method: method, jwks: { keys: keys.map(publicJwk) } };
    }
    case 'tls_client_auth':
    case 'self_signed_tls_client_auth':
      return { ...secret, ...certificateAuthentication };
    case 'none':
      return { ...secret, token_endpoint_auth_method: method };
    default:
      // Without a secret the engine refuses the client, so that it cannot become public by accident.
      return { token_endpoint_auth_method: method, client_secret: client.client_secret };
  }
}

function credentialsOf(client: Client): readonly { readonly expires_at?: string | undefined }[] {
  const method = credentialMethod(client);
  return (method && client.client_authentication_methods?.[method]?.credentials) ?? [];
}

function publicJwk(credential: Credential): JWK {
  const kid = credential.kid ?? credential.jwk?.kid;
  const key = publicKeyOf(credential).export({ format: 'jwk' });
  return { ...(key as JWK), ...(typeof kid === 'string' && { kid }), alg: credential.alg, use: 'sig' };
}

// Rules for the certificate of an application, from its registered credentials (RFC 8705 §2).

// docs/understand/decisions/clients-keys.md#self-signed-certificates-are-compared-by-thumbprint-and-subjects-by-name
/**
 * `signed`: the certificate is signed by a trusted authority for one of these subjects. `registered`: it is one of
 * these certificates.
 */
export type CertificateRules =
  | { is: 'signed'; subjects: readonly DistinguishedName[] }
  | { is: 'registered'; thumbprints: readonly string[] };

/**
 * Returns the rules of an application, from its credentials that have not expired.
 * @param now epoch milliseconds.
 * @returns undefined when it does not authenticate by a certificate.
 */
function certificateRules(
  { client_authentication_methods: methods = {} }: Pick<Client, 'client_authentication_methods'>,
  now: number,
): CertificateRules | undefined {
  const { tls_client_auth: signed, self_signed_tls_client_auth: selfSigned } = methods;
  const isLive = (one: { readonly expires_at?: string | undefined }) => expiryOf(one) > now;
  if (signed !== undefined) {
    const subjects = signed.credentials.filter(isLive).flatMap(({ subject_dn: text }) => {
      const name = parseName(text);
      return name === undefined ? [] : [name];
    });
    return { is: 'signed', subjects };
  }
  if (selfSigned === undefined) return undefined;
  return {
    is: 'registered',
    thumbprints: selfSigned.credentials.filter(isLive).map((one) => one.thumbprint_sha256),
  };
}

/**
 * The engine's metadata of a client with {@link CertificateRules}. The engine knows registered certificates only as
 * key sets, and a single subject. Both kinds of clients are therefore declared as `tls_client_auth`, for which it
 * calls our check in certificate-binding.ts.
 */
const certificateAuthentication = {
  token_endpoint_auth_method: 'tls_client_auth',
  tls_client_auth_subject_dn: 'as registered',
} as const satisfies Partial<AdapterPayload>;

// Enforces an application's `compliance_level` on its authorization requests and on its access tokens. The rules
// are in src/records/clients/compliance.ts; a request or token that breaks them is refused on every path.

/**
 * Returns why an authorization request is refused to a strict application: it uses a code with PKCE (RFC 9700 §2.1.1), and
 * its users log in on our pages alone.
 */
export function strictRequestFault(
  client: Client,
  parameters: Readonly<Record<string, unknown>>,
): { error: string; description: string } | undefined {
  if (!isStrict(client)) return undefined;
  if (parameters.response_type !== 'code' && parameters.response_type !== undefined)
    return {
      error: 'unsupported_response_type',
      description: 'Third-party applications use response_type code',
    };
  if (!parameters.code_challenge || parameters.code_challenge_method !== 'S256')
    return {
      error: 'invalid_request',
      description: 'Third-party applications must use PKCE: a code_challenge of the method S256 is required',
    };
  const [other] = OWN_PAGES.filter((name) => parameters[name] !== undefined);
  if (other === undefined) return undefined;
  return { error: 'invalid_request', description: `${other} is not for third-party applications` };
}

/** Parameters of logins that began on pages of the application itself, or as members of it. */
const OWN_PAGES = ['login_ticket', 'session_transfer_token', 'invitation'];

const NOT_COMPLIANT = 'The application is not as its compliance_level demands';

/**
 * Returns why an authorization request breaks its application's level.
 * @returns the description of `invalid_request`; undefined when it breaks no rule.
 */
export function requestFault(client: Client, request: ProfiledRequest): string | undefined {
  return faultOf(client, REQUEST_RULES, request);
}

/** Returns why a CIBA request breaks its application's level; undefined when it breaks no rule. */
export function backchannelFault(
  client: Client,
  request: Omit<ProfiledRequest, 'isPushed'>,
): string | undefined {
  return faultOf(client, BACKCHANNEL_RULES, request);
}

function faultOf<S>(client: Client, rules: readonly Rule<S>[], request: S): string | undefined {
  const profile = profileOf(client);
  if (profile === undefined) return undefined;
  const [clientFault] = clientFaults(client);
  if (clientFault !== undefined) return `${NOT_COMPLIANT}: ${clientFault}`;
  const [fault] = profile === null ? [NOT_COMPLIANT] : brokenRules(rules, profile, request);
  return fault && `The compliance_level of the application demands: ${fault}`;
}

/**
 * Refuses an access token that is weaker than its application's level allows, from whichever grant or endpoint.
 * @param api the API of the token; undefined for an opaque one.
 * @throws errors.UnauthorizedClient when the application itself breaks its level; errors.InvalidDpopProof or
 *   errors.InvalidRequest when the token does.
 */
export function refuseNoncompliant(
  client: EngineClient,
  api: ResourceServer | undefined,
  boundTo: { dpop: boolean; mtls: boolean },
): void {
  const { profile, profileFaults } = applicationSettings(client);
  if (profile === undefined) return;
  const [clientFault] = profileFaults;
  if (profile === null || clientFault !== undefined)
    throw new errors.UnauthorizedClient(`${NOT_COMPLIANT}: ${clientFault ?? ''}`);
  const [fault] = brokenRules(TOKEN_RULES, profile, {
    boundTo,
    alg: api && tokenAlgorithm(api, client),
  });
  if (fault === undefined) return;
  const description = `The compliance_level of the application demands: ${fault}`;
  if (profile.possession === 'dpop' && !boundTo.dpop) throw new errors.InvalidDpopProof(description);
  throw new errors.InvalidRequest(description);
}

/**
 * Returns the signing algorithm of an API's tokens for an application. Our own APIs have no setting for it: with a
 * compliance level, which forbids RS256, their tokens are signed like the application's ID tokens.
 */
export function tokenAlgorithm(
  { is_system, signing_alg }: ResourceServer,
  client: EngineClient,
): ResourceServer['signing_alg'] {
  const isSystemApi = is_system === true && applicationSettings(client).profile !== undefined;
  return isSystemApi ? (client.idTokenSignedResponseAlg as ResourceServer['signing_alg']) : signing_alg;
}

/**
 * Returns the FAPI profile of a client for the engine, which alone can do some of what FAPI 1.0 requires, such as
 * `s_hash` in the ID token beside a code (Part 2 §5.1.1). Our own requests on the client's behalf, for an approval
 * by CIBA, are exempt: their codes yield no tokens.
 */
export function engineProfile(
  { oidc }: KoaContextWithOIDC,
  client: EngineClient | undefined,
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>,
): '1.0 Final' | '2.0' | undefined {
  const isAuthorization = oidc.route === 'authorization' || oidc.route === 'resume';
  if (isAuthorization && serverLoginCallbacks.has(String(oidc.params?.redirect_uri))) return undefined;
  const standards = client && applicationSettings(client).profile?.standards;
  if (standards === undefined) return undefined;
  return standards.includes('fapi1') ? '1.0 Final' : '2.0';
}
