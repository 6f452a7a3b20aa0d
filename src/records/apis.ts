// APIs in the tenant file, and what applications may ask of them for themselves.
import { z } from 'zod';
import { HS256_SECRET } from './client-authentication.ts';
import { tokenEncryption } from './encryption.ts';
import { TOKEN_ALGS } from './signing-algs.ts';

const seconds = z.number().int().positive();

/** One scope (RFC 6749 §3.3): a list of them is written with spaces between. */
const scopeToken = z
  .string()
  .regex(
    /^[\x21\x23-\x5B\x5D-\x7E]+$/,
    'must be a scope: ASCII without spaces, quotation marks and backslashes',
  );

const accessPolicy = z.looseObject({
  policy: z.enum(['allow_all', 'deny_all', 'require_client_grant']).optional(),
});

const resourceServerFields = z.looseObject({
  id: z.string().optional(),
  name: z.string().min(1),
  identifier: z
    .string()
    .min(1)
    .refine((text) => text.isWellFormed(), 'must be well-formed Unicode'),
  scopes: z.array(z.looseObject({ value: scopeToken, description: z.string().optional() })).default([]),
  signing_alg: z.enum(TOKEN_ALGS).default('RS256'),
  signing_secret: z.string().min(1).optional(),
  token_lifetime: seconds.default(86400),
  token_lifetime_for_web: seconds.default(7200),
  allow_offline_access: z.boolean().default(false),
  skip_consent_for_verifiable_first_party_clients: z.boolean().default(true),
  enforce_policies: z.boolean().default(false),
  /** The key that access tokens are bound to: of DPoP (RFC 9449), or of a client certificate (RFC 8705). */
  proof_of_possession: z
    .looseObject({
      mechanism: z.enum(['dpop', 'mtls']),
      required: z.boolean().default(false),
      /** Whose tokens must be bound, where they must; all where nothing is said. */
      required_for: z.enum(['all_clients', 'public_clients']).optional(),
    })
    .nullish(),
  token_dialect: z
    .enum(['access_token', 'access_token_authz', 'rfc9068_profile', 'rfc9068_profile_authz'])
    .default('access_token'),
  /** What it takes of `authorization_details` (RFC 9396 §2), and how the user is shown it: by a Liquid template. */
  authorization_details: z
    .array(z.looseObject({ type: z.string().min(1).max(255), template: z.string().max(10_000).optional() }))
    .nullish(),
  /** How its users are asked; where nothing is said, a first party's are not, and others' once. @see asksEachTime */
  consent_policy: z.string().nullish(),
  /** Which applications get tokens for it, for users and for themselves: all, none, or those with a client grant. */
  subject_type_authorization: z
    .looseObject({
      user: accessPolicy.optional(),
      client: accessPolicy.optional(),
      /** Of visitors who have not logged in: none, where nothing is said. */
      anonymous_user: z
        .looseObject({ policy: z.enum(['deny_all', 'require_client_grant']).optional() })
        .optional(),
    })
    .nullish(),
  /** Whether it takes tokens of visitors who have not logged in, from applications with a client grant for those. */
  allow_anonymous_access: z.boolean().optional(),
  /** Its access tokens are encrypted, for a key of its own. */
  token_encryption: tokenEncryption.nullish(),
});

/** An API. */
export const resourceServerSchema = resourceServerFields.superRefine((api, context) => {
  const anonymous = anonymousFault(api);
  if (anonymous !== undefined)
    context.addIssue({ code: 'custom', path: ['allow_anonymous_access'], message: anonymous });
  if (api.signing_alg !== 'HS256') return;
  const fault = (message: string) => context.addIssue({ code: 'custom', path: ['signing_secret'], message });
  if (api.signing_secret === undefined) fault('required with signing_alg HS256');
  else if (Buffer.byteLength(api.signing_secret) < HS256_SECRET) {
    fault(`must have at least ${HS256_SECRET} bytes with HS256 (RFC 7518 §3.2)`);
  }
});

/** That consent is asked for at each request, as the hosted service names it. */
export const TRANSACTIONAL = 'transactional-authorization-with-mfa';

/**
 * Whether the users of an API are asked for consent at each request for it, whatever they allowed before. So they are with a
 * policy that nobody knows: the strictest there is.
 */
export function asksEachTime(api: { consent_policy?: string | null | undefined } | undefined): boolean {
  return (api?.consent_policy ?? undefined) !== undefined;
}

/** Why an API cannot take tokens of anonymous sessions. @returns undefined where it can, or takes none. */
function anonymousFault(api: z.output<typeof resourceServerFields>): string | undefined {
  if (api.allow_anonymous_access !== true) return undefined;
  if (isOwnAudience(api.identifier)) return 'is not for APIs of this server, which are for users';
  if (api.signing_alg === 'HS256') return 'is not for APIs with signing_alg HS256';
  if (api.token_encryption) return 'is not for APIs with token_encryption';
  return api.proof_of_possession?.required === true
    ? 'is not for APIs that demand a proof of possession'
    : undefined;
}

const isOwnAudience = (audience: string) => isManagementAudience(audience) || isMyAccountAudience(audience);

/**
 * Whether an audience is that of a Management API: ours, or that of the tenant that a file was exported from, which
 * means ours when it is applied here.
 */
export function isManagementAudience(audience: string): boolean {
  return /^https?:\/\/[^/?#]+\/api\/v2\/$/.test(audience);
}

/** As {@link isManagementAudience}, of the API by which users manage their own accounts. */
export function isMyAccountAudience(audience: string): boolean {
  return /^https?:\/\/[^/?#]+\/me\/$/.test(audience);
}

/** Whom a grant lets in: the application itself, its users, or visitors who have not logged in. */
export const SUBJECT_TYPES = ['client', 'user', 'anonymous_user'] as const;

const clientGrantFields = z.looseObject({
  id: z.string().optional(),
  client_id: z.string().min(1),
  audience: z.string().min(1),
  scope: z.array(scopeToken).default([]),
  /** Whether every scope that the API has is allowed, whatever `scope` says. */
  allow_all_scopes: z.boolean().optional(),
  subject_type: z.enum(SUBJECT_TYPES).optional(),
  organization_usage: z.enum(['deny', 'allow', 'require']).optional(),
  allow_any_organization: z.boolean().optional(),
  default_for: z.string().optional(),
  /** Types of `authorization_details` that the client may ask for itself. */
  authorization_details_types: z.array(z.string()).nullish(),
});

/** What an application may ask of an API. */
export const clientGrantSchema = clientGrantFields.superRefine((grant, context) => {
  if (grant.subject_type !== 'anonymous_user' || !isOwnAudience(grant.audience)) return;
  const message = 'anonymous_user is not for APIs of this server, which are for users';
  context.addIssue({ code: 'custom', path: ['subject_type'], message });
});
