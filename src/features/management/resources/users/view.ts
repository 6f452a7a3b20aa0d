// A user as the Management API shows it.
import { createHash } from 'node:crypto';
import type { Frozen } from '../../../../records/record.ts';
import type { UserRecord } from '../../../../records/users.ts';
import { type Identity, primaryIdentity } from '../../../../users/identities.ts';

/** Members of the record that no response contains. */
const OWN = new Set(['id', 'email_history', 'access_ended_at', 'permissions', 'roles', 'expiresAt']);

/**
 * Returns identities as the API shows them, the primary one first.
 * @param shows whether the caller may read the tokens of upstream providers.
 */
export function identityViews(
  identities: readonly Identity[],
  shows: { providerTokens?: boolean } = {},
): object[] {
  const primary = primaryIdentity(identities);
  return [...(primary === undefined ? [] : [primary]), ...identities.filter((one) => one !== primary)].map(
    (one) => ({
      connection: one.connection,
      user_id: one.upstream_id,
      provider: one.provider,
      isSocial: one.isSocial,
      ...(shows.providerTokens === true && tokensOf(one)),
      ...(one === primary || one.profile === undefined
        ? {}
        : { profileData: { ...one.attributes, ...one.profile } }),
    }),
  );
}

/**
 * Returns the tokens from an identity's last login. They have `expires_at`; `expires_in` would be relative to that
 * login.
 */
function tokensOf({ upstream }: Identity): object {
  const { access_token, refresh_token, expires_at } = upstream ?? {};
  return {
    ...(access_token !== undefined && { access_token }),
    ...(refresh_token !== undefined && { refresh_token }),
    ...(expires_at !== undefined && { expires_at: new Date(expires_at * 1000).toISOString() }),
  };
}

/**
 * Returns a user with their identities. Attributes from the provider that the profile does not have are top-level
 * members too.
 * @param shows as for {@link identityViews}.
 */
export function userView(
  user: Frozen<UserRecord>,
  identities: readonly Identity[],
  shows: { providerTokens?: boolean } = {},
): Record<string, unknown> {
  const shown = Object.fromEntries(Object.entries(user).filter(([name]) => !OWN.has(name)));
  const name = user.name ?? user.email ?? user.username ?? user.phone_number;
  return {
    ...primaryIdentity(identities)?.attributes,
    user_id: user.id,
    ...shown,
    name,
    nickname: user.nickname ?? user.username ?? user.email?.split('@')[0] ?? name,
    picture: user.picture ?? pictureOf(user.email ?? String(name ?? user.id)),
    identities: identityViews(identities, shows),
  };
}

/** Returns the default picture, as at the hosted service: a Gravatar, or two letters. */
function pictureOf(text: string): string {
  const hash = createHash('md5').update(text.trim().toLowerCase()).digest('hex');
  const letters = encodeURIComponent(text.slice(0, 2).toLowerCase());
  return `https://s.gravatar.com/avatar/${hash}?s=480&r=pg&d=https%3A%2F%2Fcdn.auth0.com%2Favatars%2F${letters}.png`;
}
