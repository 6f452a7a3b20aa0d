// The options of connections to OpenID providers: strategy `oidc`, and strategies that extend it.
import { z } from 'zod';
import { pemKey } from '../../runtime/pem-keys.ts';
import { endpoint, upstreamOptions, withoutNull } from './upstream.ts';

/** The signature algorithms of ID tokens that are accepted by default; the provider's published keys verify them. */
export const ASYMMETRIC_ALGS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
/** Accepted only if the connection names them, because anyone who knows the client secret can sign with them. */
const SYMMETRIC_ALGS = ['HS256', 'HS384', 'HS512'] as const;

/** A URL; some tools write an empty text for none. */
const address = z
  .union([z.literal(''), endpoint])
  .transform((text) => (text === '' ? undefined : text))
  .optional();

/** Exports contain connections without a client id. They are stored, but nobody can log in with them. */
const clientId = z
  .string()
  .max(255)
  .transform((text) => (text === '' ? undefined : text));

const SCOPE = z.union([z.string().max(4096), z.array(z.string().max(255)).max(200)]);

const attributeMap = z.looseObject({
  mapping_mode: z.enum(['bind_all', 'use_map', 'basic_profile']).optional(),
  attributes: z.preprocess(parsedJson, z.record(z.string().max(100), z.unknown())).default({}),
  userinfo_scope: z.string().max(1000).default(''),
});

const openIdMembers = {
  ...upstreamOptions,
  client_id: clientId.optional(),
  client_secret: z.string().max(1024).default(''),
  type: z.enum(['back_channel', 'front_channel']).optional(),
  discovery_url: address,
  issuer: address,
  authorization_endpoint: address,
  token_endpoint: address,
  userinfo_endpoint: address,
  jwks_uri: address,
  end_session_endpoint: address,
  /** The provider's discovery document, as exported connections contain it. */
  oidc_metadata: z.record(z.string(), z.unknown()).default({}),
  scope: SCOPE.optional(),
  /** Scopes in addition to those that the options imply. */
  freeform_scopes: SCOPE.optional(),
  connection_settings: z
    .looseObject({ pkce: z.enum(['auto', 'S256', 'plain', 'disabled']).default('auto') })
    .prefault({}),
  attribute_map: z.preprocess(withoutNull, attributeMap).prefault({}),
  token_endpoint_auth_method: z
    .enum(['client_secret_post', 'client_secret_basic', 'private_key_jwt'])
    .default('client_secret_post'),
  token_endpoint_auth_signing_alg: z
    .enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'ES256', 'ES384'])
    .optional(),
  token_endpoint_jwtca_aud_format: z.enum(['issuer', 'token_endpoint']).default('token_endpoint'),
  id_token_signed_response_algs: z
    .array(z.enum([...ASYMMETRIC_ALGS, ...SYMMETRIC_ALGS]))
    .min(1)
    .max(20)
    .optional(),
  send_back_channel_nonce: z.boolean().default(true),
  /** The algorithm of DPoP proofs, if the provider binds tokens to a key (RFC 9449). */
  dpop_signing_alg: z.enum(['ES256', 'ES384', 'ES512', 'Ed25519']).optional(),
  /** Whether `session_expiry` of an ID token ends the session here too (IPSIE session lifecycle profile). */
  id_token_session_expiry_supported: z.boolean().optional(),
  schema_version: z.string().max(100).optional(),
  should_trust_email_verified_connection: z
    .enum(['never_set_emails_as_verified', 'always_set_emails_as_verified'])
    .optional(),
};

const base = z.looseObject(openIdMembers);

export type OpenIdOptions = z.output<typeof base>;

/** Returns the schema of options for OpenID providers with further members. */
function optionsOf<Shape extends z.ZodRawShape>(more: Shape) {
  return z.looseObject({ ...openIdMembers, ...more });
}

type StoredOptions = Readonly<Record<string, unknown>>;

/** The options that identify any provider: its issuer or discovery document, or its endpoints. */
const PROVIDER_NAMES = ['discovery_url', 'issuer', 'authorization_endpoint'];

/**
 * Returns the members that a login needs and the options lack: `client_id`, and one that identifies the provider.
 * @param names strategy-specific members of which any identifies the provider.
 */
export function missingOpenIdOptions(options: StoredOptions, names: readonly string[] = []): string[] {
  const { issuer } = (options.oidc_metadata ?? {}) as { issuer?: unknown };
  const isNamed = Boolean(issuer) || [...PROVIDER_NAMES, ...names].some((name) => isSet(options[name]));
  return [...missingClientOptions(options), ...(isNamed ? [] : [names[0] ?? 'discovery_url'])];
}

/**
 * Whether a `waad` connection serves the users of all organizations; the hosted service has two names for the option.
 */
export function isForAll({ useCommonEndpoint, waad_common_endpoint }: StoredOptions): boolean {
  return useCommonEndpoint === true || waad_common_endpoint === true;
}

/** Whether a `waad` connection for all organizations takes the addresses that they write as verified. */
export function waadTrustsAnybody(options: StoredOptions): boolean {
  const trust = options.should_trust_email_verified_connection;
  return trust === 'always_set_emails_as_verified' && isForAll(options);
}

/** {@link missingOpenIdOptions} for `waad`. A connection for all organizations, or with WS-Federation, needs no domain. */
export function missingWaadOptions(options: StoredOptions): string[] {
  const { use_wsfed, waad_protocol } = options;
  const needsNone = isForAll(options) || use_wsfed === true || waad_protocol === 'ws-federation';
  return needsNone
    ? missingClientOptions(options)
    : missingOpenIdOptions(options, ['tenant_domain', 'domain', 'tenantId']);
}

/**
 * {@link missingOpenIdOptions} for `google-apps`, which needs a domain: the connection serves the accounts of domains only.
 */
export function missingGoogleAppsOptions(options: StoredOptions): string[] {
  const { tenant_domain, domain, domain_aliases } = options;
  const hasDomain = [tenant_domain, domain].some(isSet) || [domain_aliases ?? []].flat().length > 0;
  return [...missingClientOptions(options), ...(hasDomain ? [] : ['tenant_domain'])];
}

function missingClientOptions({ client_id }: StoredOptions): string[] {
  return isSet(client_id) ? [] : ['client_id'];
}

const isSet = (value: unknown) => (value ?? '') !== '';

export const oidcOptionsSchema = z.preprocess(withoutNull, optionsOf({}));

/** A host name, without scheme and path. */
const domain = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/, 'must be a host name');

const noDomain = z.union([z.literal(''), domain]).optional();

export const oktaOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({
    domain: noDomain,
    attribute_map: z
      .preprocess(
        withoutNull,
        attributeMap.extend({ mapping_mode: attributeMap.shape.mapping_mode.default('basic_profile') }),
      )
      .prefault({}),
  }),
);

const flag = z.boolean().optional();

/** For `waad`: attribute (the name of the option without `ext_`) to property of the user resource of Microsoft Graph. */
export const GRAPH_PROPERTIES: Readonly<Record<string, string>> = {
  account_enabled: 'accountEnabled',
  assigned_licenses: 'assignedLicenses',
  assigned_plans: 'assignedPlans',
  azure_id: 'id',
  city: 'city',
  country: 'country',
  department: 'department',
  dir_sync_enabled: 'onPremisesSyncEnabled',
  fax: 'faxNumber',
  job_title: 'jobTitle',
  last_sync: 'onPremisesLastSyncDateTime',
  mobile: 'mobilePhone',
  phone: 'businessPhones',
  physical_delivery_office_name: 'officeLocation',
  postal_code: 'postalCode',
  preferred_language: 'preferredLanguage',
  provisioned_plans: 'provisionedPlans',
  proxy_addresses: 'proxyAddresses',
  state: 'state',
  street: 'streetAddress',
  street_address: 'streetAddress',
  upn: 'userPrincipalName',
  usage_location: 'usageLocation',
};

/** Whether an option of `waad` asks for what Microsoft Graph has. */
export function asksGraph(option: string): boolean {
  const name = option.startsWith('ext_') ? option.slice('ext_'.length) : '';
  return (
    Object.hasOwn(GRAPH_PROPERTIES, name) ||
    ['profile', 'groups', 'nested_groups', 'group_ids'].includes(name)
  );
}

export const waadOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({
    domain: noDomain,
    tenant_domain: noDomain,
    tenantId: noDomain,
    identity_api: z
      .enum(['microsoft-identity-platform-v2.0', 'azure-active-directory-v1.0'])
      .default('microsoft-identity-platform-v2.0'),
    waad_protocol: z.enum(['openid-connect', 'ws-federation']).default('openid-connect'),
    use_wsfed: flag,
    useCommonEndpoint: flag,
    waad_common_endpoint: flag,
    max_groups_to_retrieve: z.union([z.string().regex(/^\d{0,6}$/), z.number()]).optional(),
    userid_attribute: z.enum(['oid', 'sub']).default('sub'),
  }),
);

/** For `adfs`. A connection that uses WS-Federation has no `client_id`, and is only stored. */
export const adfsOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({
    adfs_server: z.string().max(1024).optional(),
    fedMetadataXml: z
      .string()
      .max(1024 * 1024)
      .optional(),
    user_id_attribute: z.string().max(255).optional(),
  }),
);

const audiences = { allowed_audiences: z.array(z.string().min(1).max(255)).max(100).default([]) };

/** For `google-oauth2`. */
export const googleOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({ ...audiences, offline_access: flag }),
);

export const googleAppsOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({
    domain: noDomain,
    tenant_domain: noDomain,
    map_user_id_to_id: z.boolean().default(false),
  }),
);

export const appleOptionsSchema = z.preprocess(
  withoutNull,
  optionsOf({
    ...audiences,
    team_id: z.string().max(255).optional(),
    kid: z.string().max(255).optional(),
    app_secret: z
      .string()
      .max(4096)
      .refine((text) => text === '' || isEcKey(text), 'must be a private key of P-256 in PEM')
      .optional(),
  }),
);

export type WaadOptions = z.output<typeof waadOptionsSchema>;
export type AdfsOptions = z.output<typeof adfsOptionsSchema>;
export type AppleOptions = z.output<typeof appleOptionsSchema>;

function isEcKey(pem: string): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = pemKey(pem);
    return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1';
  } catch {
    return false;
  }
}

/** Tools write the map as a JSON text. */
function parsedJson(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The claims of the scopes `profile`, `email` and `phone` (OpenID Connect Core 1.0 §5.4). */
export const STANDARD_PROFILE: ReadonlySet<string> = new Set([
  ...['name', 'family_name', 'given_name', 'middle_name', 'nickname', 'preferred_username', 'profile'],
  ...['picture', 'website', 'gender', 'birthdate', 'zoneinfo', 'locale', 'updated_at'],
  ...['email', 'email_verified', 'phone_number', 'phone_number_verified'],
]);
