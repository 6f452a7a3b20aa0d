// The options of custom social connections, strategy `oauth2` (docs/connections.md).
import { z } from 'zod';
import { isHttpsOrLoopback } from './logout.ts';
import { MAX_SCRIPT_LENGTH } from './script-length.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** Headers that the request sets itself. */
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

/** The URL of an endpoint. */
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

/** The schema of the options, with defaults. */
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
