// What actions of any trigger are told of users, applications and connections.
import type { Client, Connection, Organization } from '../records/collections.ts';
import type { Identity } from '../users/identities.ts';
import type { User } from '../users/user.ts';

/** `event.user`: what is known of the user, without what only the server is concerned with. */
export function userOf(user: User): Record<string, unknown> {
  const { id, email, email_verified, username, phone_number, phone_verified } = user;
  const { name, given_name, family_name, nickname, picture, created_at, updated_at } = user;
  const { user_metadata, app_metadata, multifactor, last_ip, last_login, last_password_reset } = user;
  const addresses = { email, email_verified, username, phone_number, phone_verified };
  const profile = { name, given_name, family_name, nickname, picture, created_at, updated_at };
  const logins = { multifactor: multifactor ?? [], last_ip, last_login, last_password_reset };
  return { user_id: id, ...addresses, ...profile, ...logins, user_metadata, app_metadata };
}

/** `event.client`. */
export function clientOf(client: Client | undefined, clientId: string): Record<string, unknown> {
  const policies = client?.refresh_token?.policies;
  return {
    client_id: clientId,
    name: client?.name,
    metadata: client?.client_metadata ?? {},
    ...(policies !== undefined && { refresh_token: { policies } }),
  };
}

/** `event.connection`. */
export function connectionOf(connection: Connection): Record<string, unknown> {
  const { id, name, strategy } = connection;
  return { id, name, strategy, metadata: (connection as { metadata?: object }).metadata ?? {} };
}

/** `event.organization`. */
export function organizationOf(organization: Organization): Record<string, unknown> {
  const { id, name, display_name, metadata = {} } = organization;
  return { id, name, display_name, metadata };
}

/** One of `event.user.identities`. */
export const identityOf = ({ connection, provider, upstream_id, isSocial, profile }: Identity) => ({
  connection,
  provider,
  user_id: upstream_id,
  isSocial,
  ...(profile && { profileData: profile }),
});
