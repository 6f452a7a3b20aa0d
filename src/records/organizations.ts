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
