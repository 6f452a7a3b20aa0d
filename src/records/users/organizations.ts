// Memberships in organizations, and invitations.
import type { Stored } from '../base/record.ts';

/** `id` is the organization's id, a line feed and the user's id. */
export interface MembershipRecord extends Stored {
  organization_id: string;
  user_id: string;
  /** Roles within the organization. */
  roles: string[];
}

export function membershipId(organization: string, user: string): string {
  return `${organization}\n${user}`;
}

/** An invitation to an organization. Its ticket is stored as a hash. */
export interface InvitationRecord extends Stored {
  organization_id: string;
  ticketHash: string;
  inviter: { name: string };
  invitee: { email: string };
  client_id: string;
  connection_id?: string;
  app_metadata: Record<string, unknown>;
  user_metadata: Record<string, unknown>;
  roles: string[];
  /** `created_at` and `expires_at` are in ISO 8601. */
  created_at: string;
  expires_at: string;
}

interface EnabledConnection {
  connection_id: string;
  /** Whether a login makes the user a member. */
  assign_membership_on_login?: boolean;
  /** Whether the login page offers the connection. Default: true. */
  show_as_button?: boolean;
  /** Whether people can sign up with the connection without an invitation. */
  is_signup_enabled?: boolean;
  /** Whether members can log in with it. Default: true. */
  is_enabled?: boolean;
}

/** Returns the connections of an organization. Its members can log in with these alone. */
export function enabledConnectionsOf(organization: {
  readonly [member: string]: unknown;
}): readonly EnabledConnection[] {
  const all = (organization.enabled_connections as readonly EnabledConnection[] | undefined) ?? [];
  return all.filter(isEnabled);
}

export const isEnabled = ({ is_enabled: enabled }: { is_enabled?: boolean | undefined }): boolean =>
  enabled !== false;

/** Returns whether people can sign up at an organization by a connection: only where they then become members. */
export function opensSignUp(enabled: EnabledConnection | undefined): boolean {
  return enabled?.is_signup_enabled === true && enabled.assign_membership_on_login === true;
}

/** An e-mail domain by which an organization is found. */
export interface DiscoveryDomain {
  /** In lower case; unique among all organizations. */
  domain: string;
  status: 'pending' | 'verified';
  /** Whether an address of this domain leads to the organization. Default: true. */
  use_for_organization_discovery?: boolean;
}

export function discoveryDomainsOf(organization: {
  readonly [member: string]: unknown;
}): readonly DiscoveryDomain[] {
  return (organization.discovery_domains as readonly DiscoveryDomain[] | undefined) ?? [];
}

export function domainNamesOf(organization: { readonly [member: string]: unknown }): string[] {
  return discoveryDomainsOf(organization).map(({ domain }) => domain);
}

/** Returns the domains that lead to an organization: those that are verified and enabled for it. */
export function discoverableDomainsOf(organization: { readonly [member: string]: unknown }): string[] {
  return discoveryDomainsOf(organization)
    .filter((one) => one.status === 'verified' && one.use_for_organization_discovery !== false)
    .map(({ domain }) => domain);
}
