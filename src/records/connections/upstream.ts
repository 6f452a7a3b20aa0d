// What connections to upstream identity providers have in common, whatever their protocol.
import { z } from 'zod';
import { hasUserInfo } from '../../http/outbound/outbound.ts';
import { MAX_SCRIPT_LENGTH } from '../base/script-length.ts';

/** Returns options without members that are null, which tools send for unset members. */
export function withoutNull(options: unknown): unknown {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options;
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}

/** When attributes from a provider overwrite the user's profile. */
export const rootAttributes = z.enum(['on_each_login', 'on_first_login', 'never_on_login']);

export type RootAttributes = z.infer<typeof rootAttributes>;

/** A parameter for the provider: a fixed value, or that of the authorization request's parameter `alias`. */
const upstreamParameter = z.union([
  z.strictObject({ value: z.string().max(1024) }),
  z.strictObject({ alias: z.string().min(1).max(100) }),
]);

/** The options that all redirecting strategies have. */
export const upstreamOptions = {
  set_user_root_attributes: rootAttributes.default('on_each_login'),
  /** Attributes of the profile that are not stored. */
  non_persistent_attrs: z.array(z.string()).max(1000).default([]),
  upstream_params: z.record(z.string().min(1).max(100), upstreamParameter).default({}),
  icon_url: z
    .string()
    .max(255)
    .refine((url) => url === '' || (URL.canParse(url) && new URL(url).protocol === 'https:'), {
      message: 'must be an https address',
    })
    .optional(),
  domain_aliases: z.array(z.string().toLowerCase()).max(1000).optional(),
};

const upstreamOptionsSchema = z.looseObject(upstreamOptions);

/** Returns the options that all redirecting strategies have, with defaults. */
export function commonOptions(options: unknown): z.infer<typeof upstreamOptionsSchema> {
  return upstreamOptionsSchema.parse(withoutNull(options));
}

const knownRootAttributes = rootAttributes.catch('on_each_login');

/** Returns when attributes from elsewhere overwrite the profile of a connection's users. */
export function rootAttributesOf({
  options,
}: {
  options: Readonly<Record<string, unknown>>;
}): RootAttributes {
  return knownRootAttributes.parse(options.set_user_root_attributes);
}

// The options of custom social connections, strategy `oauth2` (docs/do/connections/oauth2.md).

const OWN_HEADERS = new Set([
  'host',
  'content-length',
  'content-type',
  'transfer-encoding',
  'connection',
  'upgrade',
  'te',
  'trailer',
  'expect',
]);

export const endpoint = z
  .string()
  .max(2048)
  .refine((text) => isHttpsOrLoopback(text) && !text.includes('#'), {
    message: 'must be an https address without user name or fragment (http on localhost alone)',
  });

const headers = z.record(
  z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is no name of a header')
    .refine((name) => !OWN_HEADERS.has(name.toLowerCase()), 'is a header that the request itself has'),
  z.string().regex(/^[\t\x20-\x7e]*$/, 'is no value of a header'),
);

const script = z.string().max(MAX_SCRIPT_LENGTH);

const parameter = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const members = {
  ...upstreamOptions,
  authorizationURL: endpoint,
  tokenURL: endpoint,
  client_id: z.string().min(1).max(128),
  client_secret: z.string().max(1024).default(''),
  scope: z.union([z.string().max(4096), z.array(z.string().max(255)).max(100)]).default([]),
  /** Whether the provider gets the scopes of a request with `connection_scope` separated by spaces. Default: by commas. */
  useOauthSpecScope: z.boolean().default(false),
  authParams: z.record(z.string().min(1), parameter).default({}),
  authParamsMap: z.record(z.string().min(1), z.string().min(1)).default({}),
  pkce_enabled: z.boolean().default(false),
  customHeaders: headers.default({}),
  fieldsMap: z.record(z.string(), z.union([z.string(), z.array(z.string())])).default({}),
  /** The provider's issuer identifier (RFC 9207), if its origin is not that of the authorization URL. */
  issuer: z.string().max(2048).optional(),
  logoutUrl: z.union([z.literal(''), endpoint]).optional(),
  scripts: z
    .preprocess(
      withoutNull,
      z.looseObject({ fetchUserProfile: script.optional(), getLogoutUrl: script.optional() }),
    )
    .default({}),
};

export const oauth2OptionsSchema = z.preprocess(withoutNull, z.looseObject(members));

/** The members that a login needs. */
const NEEDED = ['authorizationURL', 'tokenURL', 'client_id'] as const;

/** The schema of stored options, which may be incomplete: exports contain connections that were never finished. */
export const storedOAuth2OptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...members,
    authorizationURL: z.union([z.literal(''), endpoint]).optional(),
    tokenURL: z.union([z.literal(''), endpoint]).optional(),
    client_id: z.string().max(128).optional(),
  }),
);

/** Returns the members that a login needs and the options lack. */
export function missingOAuth2Options(options: Readonly<Record<string, unknown>>): string[] {
  return NEEDED.filter((name) => (options[name] ?? '') === '');
}

export type OAuth2Options = z.output<typeof oauth2OptionsSchema>;

// The logout settings of the tenant file.

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** Whether the server may call a URL, or a page may load it in a frame: https, or http on this machine. */
export function isHttpsOrLoopback(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || hasUserInfo(address)) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname));
}

export const calledAddress = z.string().refine(isHttpsOrLoopback, {
  message: 'must be an https address (http on localhost alone)',
});

const backChannel = {
  /** The URLs that receive logout tokens (OpenID Connect Back-Channel Logout 1.0 §2.2). */
  backchannel_logout_urls: z.array(calledAddress).default([]),
};

const initiators = z.looseObject({
  /** `custom`: the selected initiators; `all`: everything that ends a session. */
  mode: z.enum(['custom', 'all']).default('custom'),
  selected_initiators: z.array(z.string()).default(['rp-logout', 'idp-logout']),
});

/** `oidc_logout` of a client. `oidc_backchannel_logout` is its older name. */
export const clientLogoutSchema = z.looseObject({
  ...backChannel,
  backchannel_logout_initiators: initiators.prefault({}),
  backchannel_logout_session_metadata: z.looseObject({ include: z.boolean().optional() }).nullish(),
});

export const clientBackChannelSchema = z.looseObject({
  ...backChannel,
  backchannel_logout_initiators: initiators.nullish(),
});

export const tenantLogoutSchema = z.looseObject({
  /** Whether the discovery document has `end_session_endpoint`. Default: true. */
  rp_logout_end_session_endpoint_discovery: z.boolean().optional(),
});
