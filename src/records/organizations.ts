// Who is a member of which organization, and who is invited.
import type { Stored } from './record.ts';

/** `id`: the organization's id, a line feed, and the user's. */
export interface MembershipRecord extends Stored {
  organization_id: string;
  user_id: string;
  /** Roles within the organization. */
  roles: string[];
}

/** Membership of a user in an organization. */
export function membershipId(organization: string, user: string): string {
  return `${organization}\n${user}`;
}

/** An invitation to an organization; its ticket is kept as a hash. */
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
  /** ISO 8601, as `expires_at`. */
  created_at: string;
  expires_at: string;
}

/** A connection as an organization has enabled it. */
interface EnabledConnection {
  connection_id: string;
  /** Whether who logs in by it becomes a member. */
  assign_membership_on_login?: boolean;
  /** Whether the login page offers it; it does unless told otherwise. */
  show_as_button?: boolean;
  /** Whether people sign up by it without an invitation. */
  is_signup_enabled?: boolean;
}

/** The connections of an organization, by which alone its members log in. */
export function enabledConnectionsOf(organization: {
  readonly [member: string]: unknown;
}): readonly EnabledConnection[] {
  return (organization.enabled_connections as readonly EnabledConnection[] | undefined) ?? [];
}

/** A domain by whose addresses an organization is found. */
export interface DiscoveryDomain {
  /** In lower case; no two organizations share one. */
  domain: string;
  status: 'pending' | 'verified';
  /** Whether who types an address of it is led to the organization. */
  use_for_organization_discovery?: boolean;
}

/** The discovery domains of an organization. */
export function discoveryDomainsOf(organization: {
  readonly [member: string]: unknown;
}): readonly DiscoveryDomain[] {
  return (organization.discovery_domains as readonly DiscoveryDomain[] | undefined) ?? [];
}

/** Their names. */
export function domainsOf(organization: { readonly [member: string]: unknown }): string[] {
  return discoveryDomainsOf(organization).map(({ domain }) => domain);
}

/** The domains by whose addresses an organization is found: those that somebody has proved, and that are used for it. */
export function leadingDomainsOf(organization: { readonly [member: string]: unknown }): string[] {
  return discoveryDomainsOf(organization)
    .filter((one) => one.status === 'verified' && one.use_for_organization_discovery !== false)
    .map(({ domain }) => domain);
}
