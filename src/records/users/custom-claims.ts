// Claims that a tenant defines in addition to those of the protocol and the profile: a name and where the value comes
// from.
import { z } from 'zod';
import { PROFILE_CLAIMS } from './users.ts';

const CLAIM_TARGETS = ['id_token', 'access_token', 'userinfo', 'saml'] as const;

export type ClaimTarget = (typeof CLAIM_TARGETS)[number];

/** Claims that the protocol defines: setting them could break it, or make statements in the server's name. */
const PROTOCOL_CLAIMS = new Set(
  `iss sub aud exp nbf iat iat_ms jti nonce azp auth_time acr amr act may_act active at_hash c_hash s_hash sid scope scp
  client_id cnf cty typ kid alg htm htu ath events toe txn gty permissions org_id org_name authorization_details grant_id
  sub_id sub_jwk token_type updated_at jku jwk jwe x5c x5t x5t#s256 vot vtm attest dest _claim_names _claim_sources
  __proto__ constructor prototype`
    .split(/\s+/)
    .filter(Boolean),
);

/** Claims of the profile (OpenID Connect Core §5.1); in ID tokens and userinfo they come from the user only. */
const PROFILE = new Set<string>([
  ...PROFILE_CLAIMS,
  ...['address', 'email', 'email_verified', 'phone_number', 'phone_number_verified'],
]);

/** The members that a value may be taken from; secrets and members for internal use are left out. */
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

/** `.member`, or `['member']` for a name with other characters, such as a URL. */
const SEGMENT = /\.([A-Za-z_$][\w$-]*)|\['([^'\\]{1,255})'\]/y;

/** Parses a path such as `user.app_metadata.roles` into its names. @returns undefined for text that is not a path. */
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

// docs/understand/decisions/tokens.md#a-claim-name-is-refused-if-a-client-could-read-it-as-a-reserved-name
/**
 * Returns a claim's name as clients may read it: Go's `encoding/json` and .NET's claims ignore case, Java's
 * `equalsIgnoreCase` also ignores the dot of an `i`, and people cannot see spaces, widths or invisible characters
 * (U+2800 is a Braille pattern without dots).
 */
const asRead = (claim: string): string =>
  claim
    .normalize('NFKC')
    .replace(/[\p{C}\p{DI}\p{Z}\s\u2800]/gu, '')
    // Upper case first: some lower-case letters have the upper case of another letter.
    .toUpperCase()
    .toLowerCase()
    .replaceAll('i\u0307', 'i');

/** Returns why a claim cannot be defined; undefined if it can. */
export function claimFault(claim: string, to: readonly ClaimTarget[]): string | undefined {
  const readClaim = asRead(claim);
  if (readClaim === '') return 'a claim has a name that can be seen';
  const subject = readClaim === claim ? `${claim} is` : `${claim} reads as ${readClaim},`;
  if (PROTOCOL_CLAIMS.has(readClaim)) return `${subject} a claim of the protocol's own`;
  if (PROFILE.has(readClaim) && to.some((target) => target === 'id_token' || target === 'userinfo'))
    return `${subject} a claim of the profile, which ID tokens and userinfo have already`;
  return undefined;
}

const customClaimSchema = z
  .strictObject({
    claim: z.string().min(1).max(255),
    /** A path to the value; nothing in it is executed. */
    value: z.string().max(1024),
    to: z.array(z.enum(CLAIM_TARGETS)).min(1),
    /** The applications that get the claim; all if omitted. */
    clients: z.array(z.string()).optional(),
    /** The APIs whose access tokens contain the claim; all if omitted. */
    audiences: z.array(z.string()).optional(),
  })
  .superRefine(({ claim, value, to }, context) => {
    const faults = { claim: claimFault(claim, to), value: pathFault(value) };
    for (const [member, message] of Object.entries(faults))
      if (message !== undefined) context.addIssue({ code: 'custom', path: [member], message });
  });

export type CustomClaim = z.output<typeof customClaimSchema>;

export const customClaimsSchema = z.array(customClaimSchema).max(100);
