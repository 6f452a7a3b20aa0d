// The administrators of the tenant: people who log in to the console. They are users of a directory of their own, which
// no call of the Management API reaches.
import type { Stored } from './record.ts';

/** The console as an application: it is in no store. */
export const CONSOLE_CLIENT = 'gatehouse-console';

/** The directory of administrators: it is in no store, and by its colon no connection of a tenant has its name. */
export const CONSOLE_DIRECTORY = 'gatehouse:console';

/** What ids of administrators begin with, before the bar: no strategy has this name. */
export const ADMINISTRATOR = 'gatehouse';

export const ROLES = ['owner', 'editor', 'viewer', 'support'] as const;
/** What an administrator may do. */
export type AdministratorRole = (typeof ROLES)[number];

/** One administrator. */
export interface AdministratorMember {
  user_id: string;
  role: AdministratorRole;
  /** ISO 8601. */
  added_at: string;
}

/** A link by which somebody becomes an administrator, or sets a new password; it is used once. */
export interface AdministratorLink {
  id: string;
  /** SHA-256 of what the link holds. */
  secret_hash: string;
  email: string;
  /** What its user becomes; none for a link to a new password. */
  role?: AdministratorRole;
  /** Whose password it sets. */
  user_id?: string;
  /** The administrator who made it; undefined for the command. */
  made_by?: string;
  /** ISO 8601. */
  expires_at: string;
}

/** All administrators: one record, so that of two who are removed at once the last owner stays. */
export interface AdministratorsRecord extends Stored {
  members: AdministratorMember[];
  links?: AdministratorLink[];
}

/** The id of the one record. */
export const ADMINISTRATORS = 'administrators';

/** Whether a user id is that of an administrator. */
export function isAdministratorId(userId: string): boolean {
  return userId.startsWith(`${ADMINISTRATOR}|`);
}

/**
 * Whether a login may be for an application: administrators come to the console alone, by their directory, and nobody else
 * comes there.
 */
export function mayLogInTo(
  clientId: string,
  { userId, connection }: { userId: string; connection: string | undefined },
): boolean {
  const isConsole = clientId === CONSOLE_CLIENT;
  return isAdministratorId(userId) === isConsole && (connection === CONSOLE_DIRECTORY) === isConsole;
}
