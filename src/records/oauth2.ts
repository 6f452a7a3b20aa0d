// The options of custom social connections, `oauth2` (docs/connections.md).
import { z } from 'zod';
import { isHttpsOrLoopback } from './logout.ts';
import { LONGEST_SCRIPT } from './script-length.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** Headers that the request itself decides. */
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

/** The address of an endpoint. */
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

const script = z.string().max(LONGEST_SCRIPT);

const parameter = z.union([z.string(), z.number(), z.boolean()]).transform(String);

const members = {
  ...upstreamOptions,
  authorizationURL: endpoint,
  tokenURL: endpoint,
  client_id: z.string().min(1).max(128),
  client_secret: z.string().max(1024).default(''),
  scope: z.union([z.string().max(4096), z.array(z.string().max(255)).max(100)]).default([]),
  /** Whether `connection_scope` is separated by spaces, and not by commas. */
  useOauthSpecScope: z.boolean().default(false),
  authParams: z.record(z.string().min(1), parameter).default({}),
  authParamsMap: z.record(z.string().min(1), z.string().min(1)).default({}),
  pkce_enabled: z.boolean().default(false),
  customHeaders: headers.default({}),
  fieldsMap: z.record(z.string(), z.union([z.string(), z.array(z.string())])).default({}),
  /** The provider's issuer identifier (RFC 9207), where it is not of the authorization URL's origin. */
  issuer: z.string().max(2048).optional(),
  logoutUrl: z.union([z.literal(''), endpoint]).optional(),
  scripts: z
    .preprocess(
      withoutNull,
      z.looseObject({ fetchUserProfile: script.optional(), getLogoutUrl: script.optional() }),
    )
    .default({}),
};

/** The options, as they are meant. */
export const oauth2OptionsSchema = z.preprocess(withoutNull, z.looseObject(members));

/** What no login goes without. */
const NEEDED = ['authorizationURL', 'tokenURL', 'client_id'] as const;

/** The options, as they may be kept: exports have connections that nobody has finished. */
export const keptOAuth2OptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...members,
    authorizationURL: z.union([z.literal(''), endpoint]).optional(),
    tokenURL: z.union([z.literal(''), endpoint]).optional(),
    client_id: z.string().max(128).optional(),
  }),
);

/** The members without which nobody can log in, of those that options lack. */
export function lackingOAuth2(options: Readonly<Record<string, unknown>>): string[] {
  return NEEDED.filter((name) => (options[name] ?? '') === '');
}

export type OAuth2Options = z.output<typeof oauth2OptionsSchema>;
