// Claims that a tenant declares beside those of the protocol and the profile: a name, and where its value is found.
import { z } from 'zod';
import { PROFILE_CLAIMS } from './users.ts';

/** Where a declared claim goes. */
const CLAIM_TARGETS = ['id_token', 'access_token', 'userinfo', 'saml'] as const;

export type ClaimTarget = (typeof CLAIM_TARGETS)[number];

/** Claims whose meaning is the protocol's: a tenant that could set them could break it, or speak for the server. */
const PROTOCOL_CLAIMS = new Set(
  `iss sub aud exp nbf iat jti nonce azp auth_time acr amr act may_act active at_hash c_hash s_hash sid scope scp
  client_id cnf cty typ kid alg htm htu ath events toe txn gty permissions org_id org_name authorization_details
  sub_id sub_jwk token_type updated_at jku jwk jwe x5c x5t x5t#s256 vot vtm attest dest _claim_names _claim_sources
  __proto__ constructor prototype`
    .split(/\s+/)
    .filter(Boolean),
);

/** Claims of the profile (OpenID Connect Core §5.1), which ID tokens and userinfo have of the user alone. */
const PROFILE = new Set<string>([
  ...PROFILE_CLAIMS,
  ...['address', 'email', 'email_verified', 'phone_number', 'phone_number_verified'],
]);

/** What a value may be taken from; secrets, and what only the server is concerned with, are not among them. */
const SOURCES: Record<string, ReadonlySet<string>> = {
  user: new Set([
    ...PROFILE_CLAIMS,
    ...`user_id email email_verified username phone_number phone_verified address user_metadata app_metadata created_at
    updated_at last_login logins_count`.split(/\s+/),
  ]),
  client: new Set(['client_id', 'name', 'client_metadata']),
  organization: new Set(['id', 'name', 'display_name', 'metadata']),
  connection: new Set(['id', 'name', 'strategy', 'metadata']),
};

/** `.member`, or `['member']` for a name with other characters, such as an address. */
const SEGMENT = /\.([A-Za-z_$][\w$-]*)|\['([^'\\]{1,255})'\]/y;

/**
 * The members that a path names, such as `user.app_metadata.roles`.
 * @returns undefined for text that is no path.
 */
export function claimPath(text: string): string[] | undefined {
  const source = /^[a-z]+/.exec(text)?.[0];
  if (source === undefined) return undefined;
  const path = [source];
  SEGMENT.lastIndex = source.length;
  while (SEGMENT.lastIndex < text.length) {
    const found = SEGMENT.exec(text);
    if (found === null) return undefined;
    path.push(found[1] ?? found[2] ?? '');
  }
  return path;
}

function pathFault(text: string): string | undefined {
  const [source = '', member] = claimPath(text) ?? [];
  const members = Object.hasOwn(SOURCES, source) ? SOURCES[source] : undefined;
  if (members === undefined) return 'must be a path from user, client, organization or connection';
  if (member === undefined || !members.has(member))
    return `must name one of the members of ${source}: ${[...members].join(', ')}`;
  return undefined;
}

/**
 * A name as it may be read: Go's `encoding/json` and the claims of .NET know no capitals, Java's `equalsIgnoreCase` no dots of an
 * `i`, and people see no spaces, widths or characters that show nothing (U+2800 is a pattern without dots).
 */
const asRead = (claim: string): string =>
  claim
    .normalize('NFKC')
    .replace(/[\p{C}\p{DI}\p{Z}\s\u2800]/gu, '')
    // Some small letters have a capital that is another one's, too.
    .toUpperCase()
    .toLowerCase()
    .replaceAll('i\u0307', 'i');

/** Why a claim cannot be set; undefined when it can. */
export function claimFault(claim: string, to: readonly ClaimTarget[]): string | undefined {
  const read = asRead(claim);
  if (read === '') return 'a claim has a name that can be seen';
  const named = read === claim ? `${claim} is` : `${claim} reads as ${read},`;
  if (PROTOCOL_CLAIMS.has(read)) return `${named} a claim of the protocol's own`;
  if (PROFILE.has(read) && to.some((target) => target === 'id_token' || target === 'userinfo'))
    return `${named} a claim of the profile, which ID tokens and userinfo have already`;
  return undefined;
}

const customClaimSchema = z
  .strictObject({
    claim: z.string().min(1).max(255),
    /** A path to what the claim says; nothing in it is executed. */
    value: z.string().max(1024),
    to: z.array(z.enum(CLAIM_TARGETS)).min(1),
    /** Applications that get it; all, where there is no list. */
    clients: z.array(z.string()).optional(),
    /** APIs whose access tokens have it; all, where there is no list. */
    audiences: z.array(z.string()).optional(),
  })
  .superRefine(({ claim, value, to }, context) => {
    const faults = { claim: claimFault(claim, to), value: pathFault(value) };
    for (const [member, message] of Object.entries(faults))
      if (message !== undefined) context.addIssue({ code: 'custom', path: [member], message });
  });

export type CustomClaim = z.output<typeof customClaimSchema>;

/** Claims of a tenant, each declared once for a place and an application. */
export const customClaimsSchema = z.array(customClaimSchema).max(100);
