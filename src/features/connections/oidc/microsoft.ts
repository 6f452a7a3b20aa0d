// Microsoft's providers: Entra (`waad`), for one organization or for every organization, and AD FS.
import type { JWTPayload } from 'jose';
import {
  type AdfsOptions,
  adfsOptionsSchema,
  isForAll,
  type OpenIdOptions,
  type WaadOptions,
  waadOptionsSchema,
} from '../../../records/openid.ts';
import { upstreamFault } from '../redirect.ts';
import { graphProfile, graphScopes } from './graph.ts';
import type { Preset } from './preset.ts';

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
