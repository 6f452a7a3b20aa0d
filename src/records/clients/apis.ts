// APIs in the tenant file, and what applications may request of them.
import { z } from 'zod';
import { TOKEN_ALGS } from '../base/signing-algs.ts';
import { HS256_SECRET } from './client-authentication.ts';
import { tokenEncryption } from './encryption.ts';

const seconds = z.number().int().positive();

/** One scope (RFC 6749 §3.3); a list of scopes is separated by spaces. */
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
  /** How access tokens are bound to a key: by DPoP (RFC 9449) or by a client certificate (RFC 8705). */
  proof_of_possession: z
    .looseObject({
      mechanism: z.enum(['dpop', 'mtls']),
      required: z.boolean().default(false),
      /** With `required`: the clients whose tokens must be bound, by default all. */
      required_for: z.enum(['all_clients', 'public_clients']).optional(),
    })
    .nullish(),
  token_dialect: z
    .enum(['access_token', 'access_token_authz', 'rfc9068_profile', 'rfc9068_profile_authz'])
    .default('access_token'),
  /**
   * The types of `authorization_details` (RFC 9396 §2) that the API accepts, each with the Liquid template that shows
   * it to the user.
   */
  authorization_details: z
    .array(z.looseObject({ type: z.string().min(1).max(255), template: z.string().max(10_000).optional() }))
    .nullish(),
  /**
   * When users are asked for consent. By default first-party applications do not ask, and others ask once. @see
   * asksEachTime
   */
  consent_policy: z.string().nullish(),
  /**
   * Which applications get tokens for the API, on behalf of users and for themselves: all, none, or those with a client
   * grant.
   */
  subject_type_authorization: z
    .looseObject({
      user: accessPolicy.optional(),
      client: accessPolicy.optional(),
      /** For visitors who have not logged in; by default no application does. */
      anonymous_user: z
        .looseObject({ policy: z.enum(['deny_all', 'require_client_grant']).optional() })
        .optional(),
    })
    .nullish(),
  /**
   * Whether the API accepts tokens of visitors who have not logged in, from applications with a client grant for them.
   */
  allow_anonymous_access: z.boolean().optional(),
  /** If set, access tokens are encrypted for this key. */
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

/** The hosted service's name for the policy that asks for consent at each request. */
export const TRANSACTIONAL = 'transactional-authorization-with-mfa';

// docs/understand/decisions/authorize.md#an-api-with-consent_policy-needs-consent-at-each-request
/**
 * Returns whether users are asked for consent at each request for the API, whatever they allowed before. An unknown
 * policy is treated like this, too, as the strictest one.
 */
export function asksEachTime(api: { consent_policy?: string | null | undefined } | undefined): boolean {
  return (api?.consent_policy ?? undefined) !== undefined;
}

// docs/understand/decisions/authorize.md#first-party-applications-are-asked-for-consent-where-the-api-says-so
/** Returns whether first-party applications get tokens for an API without asking the user. */
export function skipsConsentOf(
  api: { skip_consent_for_verifiable_first_party_clients?: boolean | undefined } | undefined,
): boolean {
  return api?.skip_consent_for_verifiable_first_party_clients !== false;
}

/** Returns why an API cannot accept tokens of anonymous sessions; undefined if it can, or does not. */
function anonymousFault(api: z.output<typeof resourceServerFields>): string | undefined {
  if (api.allow_anonymous_access !== true) return undefined;
  if (isOwnAudience(api.identifier)) return 'is not for APIs of this server, which are for users';
  if (api.signing_alg === 'HS256') return 'is not for APIs with signing_alg HS256';
  if (api.token_encryption) return 'is not for APIs with token_encryption';
  return api.proof_of_possession?.required === true
    ? 'is not for APIs that demand a proof of possession'
    : undefined;
}

/** Returns whether an audience is one of the server's own APIs, of this or of an exporting tenant. */
export const isOwnAudience = (audience: string): boolean =>
  isManagementAudience(audience) || isMyAccountAudience(audience);

/**
 * Returns whether an audience is the Management API: that of this server, or that of the tenant that a file was
 * exported from, which stands for this server's when the file is applied.
 */
export function isManagementAudience(audience: string): boolean {
  return /^https?:\/\/[^/?#]+\/api\/v2\/$/.test(audience);
}

/** As {@link isManagementAudience}, for the API with which users manage their own accounts. */
export function isMyAccountAudience(audience: string): boolean {
  return /^https?:\/\/[^/?#]+\/me\/$/.test(audience);
}

/**
 * What a tenant may set of the Management API, which is no record of its store. Applications get its tokens for
 * themselves only with a client grant.
 */
export const managementApiSchema = z.looseObject({
  skip_consent_for_verifiable_first_party_clients: z.boolean().optional(),
  token_lifetime: seconds.optional(),
  token_lifetime_for_web: seconds.optional(),
  subject_type_authorization: z.strictObject({ user: accessPolicy.optional() }).optional(),
});

export type ManagementApiSettings = z.output<typeof managementApiSchema>;

/** For whom a client grant lets an application get tokens: itself, its users, or visitors who have not logged in. */
export const SUBJECT_TYPES = ['client', 'user', 'anonymous_user'] as const;

/** All third-party applications, in `default_for` of a client grant. */
export const THIRD_PARTIES = 'third_party_clients';

const clientGrantFields = z.looseObject({
  id: z.string().optional(),
  /** Missing where `default_for` says for whom the grant is. */
  client_id: z.string().min(1).optional(),
  audience: z.string().min(1),
  scope: z.array(scopeToken).default([]),
  /** Whether all scopes of the API are allowed, regardless of `scope`. */
  allow_all_scopes: z.boolean().optional(),
  subject_type: z.enum(SUBJECT_TYPES).optional(),
  organization_usage: z.enum(['deny', 'allow', 'require']).optional(),
  allow_any_organization: z.boolean().optional(),
  /** The applications that have the grant unless they have one of their own for the API. */
  default_for: z.literal(THIRD_PARTIES).optional(),
  /** The types of `authorization_details` that the client may request for itself. */
  authorization_details_types: z.array(z.string()).nullish(),
});

/** A client grant: what an application may request of an API. */
export const clientGrantSchema = clientGrantFields.superRefine((grant, context) => {
  const fault = defaultFault(grant);
  if (fault !== undefined) context.addIssue({ code: 'custom', path: [fault.member], message: fault.message });
  if (grant.subject_type !== 'anonymous_user' || !isOwnAudience(grant.audience)) return;
  const message = 'anonymous_user is not for APIs of this server, which are for users';
  context.addIssue({ code: 'custom', path: ['subject_type'], message });
});

// docs/understand/decisions/clients-keys.md#a-client-grant-for-all-third-party-applications-counts-where-there-is-none-of-its-own
/**
 * Returns why the applications of a grant are refused. A grant for all third-party applications, which strangers operate,
 * cannot open the APIs of this server, or let visitors in.
 */
function defaultFault({
  client_id,
  default_for,
  audience,
  subject_type,
}: z.output<typeof clientGrantFields>) {
  if (default_for === undefined)
    return client_id === undefined ? { member: 'client_id', message: MISSING_CLIENT } : undefined;
  if (client_id !== undefined)
    return { member: 'default_for', message: 'is for no application alone, such as that of client_id' };
  if (isOwnAudience(audience)) return { member: 'default_for', message: 'is not for APIs of this server' };
  if (subject_type !== 'anonymous_user') return undefined;
  return { member: 'subject_type', message: 'anonymous_user is not for all third-party applications' };
}

const MISSING_CLIENT = 'Missing required property: client_id';

// The parameter `scope` of requests and tokens.

/**
 * Returns the values of a scope. They are separated by single spaces (RFC 6749 §3.3); several spaces are accepted.
 */
export function scopeValues(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((value) => value !== '');
}
