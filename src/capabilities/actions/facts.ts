// The objects that events of all triggers have in common: user, client, connection, organization.
import type { Client, Connection, Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import type { Identity } from '../../users/changes.ts';
import type { User } from '../../users/user.ts';

/** Returns `event.user`, without the members that are internal to the server. */
export function userOf(user: User): Record<string, unknown> {
  const { id, email, email_verified, username, phone_number, phone_verified } = user;
  const { name, given_name, family_name, nickname, picture, created_at, updated_at } = user;
  const { user_metadata, app_metadata, multifactor, last_ip, last_login, last_password_reset } = user;
  const identifiers = { email, email_verified, username, phone_number, phone_verified };
  const profile = { name, given_name, family_name, nickname, picture, created_at, updated_at };
  const logins = { multifactor: multifactor ?? [], last_ip, last_login, last_password_reset };
  return { user_id: id, ...identifiers, ...profile, ...logins, user_metadata, app_metadata };
}

/** Returns `event.client`. */
export function clientOf(client: Client | undefined, clientId: string): Record<string, unknown> {
  const policies = client?.refresh_token?.policies;
  return {
    client_id: clientId,
    name: client?.name,
    metadata: client?.client_metadata ?? {},
    ...(policies !== undefined && { refresh_token: { policies } }),
  };
}

/** Returns `event.connection`. */
export function connectionOf(connection: Connection): Record<string, unknown> {
  const { id, name, strategy } = connection;
  return { id, name, strategy, metadata: (connection as { metadata?: object }).metadata ?? {} };
}

/** Returns `event.organization`. */
export function organizationOf(organization: Organization): Record<string, unknown> {
  const { id, name, display_name, metadata = {} } = organization;
  return { id, name, display_name, metadata };
}

/** Returns a member of `event.user.identities`. */
export const identityOf = ({ connection, provider, upstream_id, isSocial, profile }: Identity) => ({
  connection,
  provider,
  user_id: upstream_id,
  isSocial,
  ...(profile && { profileData: profile }),
});

/**
 * Makes the function that returns what events of all triggers have in common: the tenant, with what messages show of
 * it, and the custom domain that the request was sent to.
 */
export function commonFacts(
  config: Pick<Config, 'customDomains' | 'settings'>,
  hostname: string,
): (event: object) => Promise<Record<string, unknown>> {
  return async (event) => {
    const { request, notification } = event as { request?: { hostname?: unknown }; notification?: object };
    const domains = await config.customDomains();
    const found = domains.find(({ domain }) => domain === request?.hostname);
    return {
      ...(found && { custom_domain: { domain: found.domain, domain_metadata: found.metadata } }),
      tenant: { id: hostname.split('.')[0], ...(notification !== undefined && shownOf(config)) },
    };
  };
}

function shownOf(config: Pick<Config, 'settings'>): Record<string, unknown> {
  const { friendly_name, picture_url, support_email, support_url, default_redirection_uri } =
    config.settings().tenant;
  return {
    friendly_name,
    logo_url: picture_url,
    support_email,
    support_url,
    home_url: default_redirection_uri,
  };
}
