// Microsoft's providers: Entra (`waad`), for one organization or for every organization, and AD FS.
import type { JWTPayload } from 'jose';
import {
  type AdfsOptions,
  adfsOptionsSchema,
  GRAPH_PROPERTIES,
  isForAll,
  type OpenIdOptions,
  type WaadOptions,
  waadOptionsSchema,
} from '../../../records/connections/openid.ts';
import { jsonOf } from '../../../runtime/json.ts';
import { endpointFault, requestEndpoint } from '../oauth2/oauth2-strategy.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import type { Metadata } from './metadata.ts';
import type { Preset } from './preset.ts';

// Reads from Microsoft Graph what the ID token of Entra does not have: the attributes and groups that a connection's options
// ask for (`ext_…`), with the user's own access token.
// docs/understand/decisions/connections.md#further-attributes-of-entras-users-come-from-microsoft-graph

/** The attributes that `ext_profile` asks for. */
const PROFILE = [
  ...['city', 'country', 'department', 'job_title', 'mobile', 'phone', 'physical_delivery_office_name'],
  ...['postal_code', 'preferred_language', 'state', 'street_address', 'usage_location'],
];

/** Groups that are read if the option `max_groups_to_retrieve` is not set. */
const DEFAULT_GROUPS = 250;
/** The largest value of that option that is honoured. */
const MAX_GROUPS = 5_000;
/** Entries of one page of the response. */
const PAGE_SIZE = 500;
const MAX_PAGES = 20;

interface RequestedData {
  attributes: readonly string[];
  /** Direct groups only, or nested ones, too; undefined for none. */
  groups: 'memberOf' | 'transitiveMemberOf' | undefined;
}

function requestedData(options: WaadOptions): RequestedData {
  // Tokens of the older endpoints are for Azure AD Graph, which Microsoft has retired.
  if (options.identity_api !== 'microsoft-identity-platform-v2.0')
    return { attributes: [], groups: undefined };
  const has = (name: string) => options[`ext_${name}`] === true;
  const named = Object.keys(GRAPH_PROPERTIES).filter(has);
  const attributes = [...new Set([...(has('profile') ? PROFILE : []), ...named])];
  if (has('nested_groups')) return { attributes, groups: 'transitiveMemberOf' };
  return { attributes, groups: has('groups') || has('group_ids') ? 'memberOf' : undefined };
}

function graphScopes(options: WaadOptions): string[] {
  const { attributes, groups } = requestedData(options);
  return [
    ...(attributes.length > 0 ? ['User.Read'] : []),
    ...(groups === undefined ? [] : ['GroupMember.Read.All']),
  ];
}

/**
 * Returns the attributes and groups of an access token's user that a connection asks for. Those that the organization has not
 * consented to are left out.
 * @throws AuthError by `upstreamFault` if Graph does not answer. The login then fails, because a profile without the user's
 *   groups would look like one whose groups were taken away.
 */
async function graphProfile(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  { options, metadata }: { options: WaadOptions; metadata: Metadata },
  accessToken: string,
): Promise<Record<string, unknown>> {
  const { attributes, groups } = requestedData(options);
  const base = `${graphOrigin(metadata)}/v1.0/me`;
  const request = (url: string) => requestGraph({ fetch }, url, accessToken);
  const [user, member] = await Promise.all([
    attributes.length === 0 ? undefined : request(`${base}?$select=${selectOf(attributes)}`),
    groups &&
      groupsOf(request, `${base}/${groups}?$select=id,displayName&$top=${PAGE_SIZE}`, mostGroups(options)),
  ]);
  const found = attributes.flatMap((name) => {
    const value = user?.[GRAPH_PROPERTIES[name] ?? ''];
    return value === undefined || value === null ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(found),
    ...(member && options.ext_group_ids === true && { group_ids: member.map(({ id }) => id) }),
    ...(member && { groups: member.map(({ name }) => name) }),
  };
}

/** Each property once: two attributes may be read from the same. */
const selectOf = (attributes: readonly string[]) =>
  [...new Set(attributes.map((name) => GRAPH_PROPERTIES[name]))].join(',');

function mostGroups({ max_groups_to_retrieve: setting }: WaadOptions): number {
  const limit = Number(setting === '' ? undefined : setting);
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, MAX_GROUPS) : DEFAULT_GROUPS;
}

/**
 * Returns the origin of Graph. National clouds have a host of their own, which the discovery document names (`msgraph_host`);
 * the scheme is that of the token endpoint.
 */
function graphOrigin({ msgraph_host: host, token_endpoint: endpoint }: Metadata): string {
  const isHost = typeof host === 'string' && /^[A-Za-z0-9.-]+(:\d+)?$/.test(host);
  if (!isHost) return 'https://graph.microsoft.com';
  return `${URL.parse(String(endpoint))?.protocol ?? 'https:'}//${host}`;
}

type GraphRequest = (url: string) => Promise<Record<string, unknown> | undefined>;

/** @returns the response body; undefined if the organization has not consented to the request. */
async function requestGraph(
  deps: Pick<UpstreamDependencies, 'fetch'>,
  url: string,
  accessToken: string,
): ReturnType<GraphRequest> {
  const headers = { accept: 'application/json', authorization: `Bearer ${accessToken}` };
  const { response, text } = await requestEndpoint(deps, 'profile endpoint', url, { headers });
  if (response.status === 401 || response.status === 403) return undefined;
  if (response.status !== 200)
    throw endpointFault('profile endpoint', `answered with status ${response.status}`);
  const answer = jsonOf(text);
  if (typeof answer === 'object' && answer !== null) return answer as Record<string, unknown>;
  throw endpointFault('profile endpoint', 'sent an answer that is no JSON');
}

interface Group {
  id: string;
  name: string;
}

/** Returns the groups of a user from all pages of the response; undefined as {@link requestGraph}. */
async function groupsOf(request: GraphRequest, first: string, limit: number): Promise<Group[] | undefined> {
  const found: Group[] = [];
  const { origin } = new URL(first);
  let next: string | undefined = first;
  for (let page = 0; next !== undefined && page < MAX_PAGES && found.length < limit; page++) {
    const answer: Record<string, unknown> | undefined = await request(next);
    if (answer === undefined) return undefined;
    found.push(...groupsIn(answer.value));
    const { '@odata.nextLink': link } = answer;
    // A link to another origin is not followed: it would receive the access token.
    next = typeof link === 'string' && URL.parse(link)?.origin === origin ? link : undefined;
  }
  return found.slice(0, limit);
}

/** Returns the groups of a list that also has directory roles and administrative units. */
function groupsIn(value: unknown): Group[] {
  return (Array.isArray(value) ? value : []).flatMap((one: Record<string, unknown> | null) => {
    const { '@odata.type': type, id, displayName: name } = one ?? {};
    const isGroup = type === '#microsoft.graph.group' && typeof id === 'string' && typeof name === 'string';
    return isGroup ? [{ id, name }] : [];
  });
}

const LOGIN = 'https://login.microsoftonline.com';
/** The placeholder for the organization's id in the issuer of the document for every organization. */
const TENANT_PLACEHOLDER = '{tenantid}';
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Issuers of Entra: of the v2.0 endpoints, and of the older ones. */
const ISSUER = /^https:\/\/(login\.microsoftonline\.com|sts\.windows\.net)\/[^/]+(\/v2\.0)?\/?$/;

/** Entra. */
export const waad: Preset<WaadOptions> = {
  name: 'waad',
  isSocial: false,
  idsWithin: 'strategy',
  parse: (options) => waadOptionsSchema.parse(options),
  type: 'back_channel',
  scope: 'openid profile email',
  discovery: (options) => {
    if (options.use_wsfed === true || options.waad_protocol !== 'openid-connect') throw noFederation();
    const tenant = tenantOf(options);
    const version = options.identity_api === 'microsoft-identity-platform-v2.0' ? '/v2.0' : '';
    return tenant && `${LOGIN}/${tenant}${version}/.well-known/openid-configuration`;
  },
  isDocumentOf: (issuer, address) => {
    const { origin } = new URL(address);
    return origin === LOGIN ? ISSUER.test(issuer) : URL.parse(issuer)?.origin === origin;
  },
  isIssuer: (issuer, claims, options, metadata) =>
    issuer === metadata.issuer.replace(TENANT_PLACEHOLDER, tenantIn(claims)) &&
    isOfTenant(claims, options, metadata),
  idOf: ({ sub, oid }, { userid_attribute }) => {
    if (userid_attribute === 'sub') return sub;
    if (typeof oid === 'string' && GUID.test(oid)) return oid.toLowerCase();
    throw upstreamFault('access_denied', 'The account has no oid.');
  },
  profile: (profile, _response, options) => withEmail(profile, options, ['preferred_username', 'upn']),
  furtherScopes: graphScopes,
  further: graphProfile,
};

function tenantOf(options: WaadOptions): string | undefined {
  if (isForAll(options)) return 'common';
  return [options.tenantId, options.tenant_domain, options.domain].find((one) => one);
}

/** Returns the organization's id in a token; for anything else, a text that no issuer has. */
function tenantIn({ tid }: JWTPayload): string {
  return typeof tid === 'string' && GUID.test(tid) ? tid : 'none';
}

/**
 * Whether a token's organization is the connection's. The keys of the common document sign for every organization, so the
 * signature alone does not prove it.
 */
function isOfTenant({ tid }: JWTPayload, options: WaadOptions, { issuer }: { issuer: string }): boolean {
  const { tenantId = '' } = options;
  if (isForAll(options)) return true;
  if (GUID.test(tenantId)) return typeof tid === 'string' && tid.toLowerCase() === tenantId.toLowerCase();
  return !issuer.includes(TENANT_PLACEHOLDER);
}

/** AD FS of Windows Server 2016 and later, which supports OpenID Connect. */
export const adfs: Preset<AdfsOptions> = {
  name: 'adfs',
  isSocial: false,
  idsWithin: 'connection',
  parse: (options) => adfsOptionsSchema.parse(options),
  type: 'back_channel',
  scope: 'openid profile email',
  discovery: async ({ adfs_server: server = '', fedMetadataXml: metadata = '' }, samlMetadata) => {
    // The federation metadata describes SAML and WS-Federation; only the host is read from it.
    const address =
      server === '' && metadata !== '' ? (await samlMetadata.in(metadata)).signInEndpoint : server;
    const url = URL.parse(address.includes('://') ? address : `https://${address}`);
    if (!url?.host) return undefined;
    return `${address === server ? 'https:' : url.protocol}//${url.host}/adfs`;
  },
  idOf: (claims, { user_id_attribute: name }) => {
    if (!name) return claims.sub;
    const id = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (typeof id === 'string') return id;
    throw upstreamFault('access_denied', 'The account has not the claim that its users are known by.');
  },
  profile: (profile, _response, options) => withEmail(profile, options, ['upn']),
};

/**
 * Returns a profile with the e-mail address, which is verified only if the connection says so: an administrator of the
 * directory can set any address. For accounts without one, a sign-in name in the form of an address is used.
 */
function withEmail(
  profile: Record<string, unknown>,
  { should_trust_email_verified_connection: trust }: OpenIdOptions,
  names: readonly string[],
): Record<string, unknown> {
  const all = ['email', ...names].map((name) => profile[name]);
  const email = all.find((value) => typeof value === 'string' && value.includes('@'));
  const email_verified = trust === 'always_set_emails_as_verified';
  return { ...profile, ...(email !== undefined && { email, email_verified }) };
}

const noFederation = () => upstreamFault('invalid_request', 'WS-Federation is not available here.');
