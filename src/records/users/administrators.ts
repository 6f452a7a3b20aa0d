// The administrators of the tenant, who log in to the console. They are users of a separate directory, which the
// Management API cannot reach.
// docs/understand/decisions/console-account.md#administrators-are-no-users-of-the-tenant
import type { Stored } from '../base/record.ts';

/** The client_id of the console, which is in no store. */
export const CONSOLE_CLIENT = 'gatehouse-console';

/**
 * The name of the administrators' connection. It is in no store, and no connection of a tenant can have its name
 * because of the colon.
 */
export const CONSOLE_DIRECTORY = 'gatehouse:console';

/** The prefix of administrators' user ids, before the bar; no strategy has this name. */
export const ADMINISTRATOR = 'gatehouse';

export const ROLES = ['owner', 'editor', 'viewer', 'support'] as const;
/** What an administrator may do. */
export type AdministratorRole = (typeof ROLES)[number];

export interface AdministratorMember {
  user_id: string;
  role: AdministratorRole;
  /** ISO 8601. */
  added_at: string;
}

/** A link for becoming an administrator or for setting a new password; it can be used once. */
export interface AdministratorLink {
  id: string;
  /** SHA-256 of the secret in the link. */
  secret_hash: string;
  email: string;
  /** The role of the new administrator; none for a link to a new password. */
  role?: AdministratorRole;
  /** The user whose password is set. */
  user_id?: string;
  /** The administrator who made the link; undefined if the command made it. */
  made_by?: string;
  /** ISO 8601. */
  expires_at: string;
}

/** All administrators, in one record: so when two owners are removed concurrently, the last one stays. */
export interface AdministratorsRecord extends Stored {
  members: AdministratorMember[];
  links?: AdministratorLink[];
}

/** The id of the record. */
export const ADMINISTRATORS = 'administrators';

/** The purpose of the tickets of programs that administrators have approved (challenges). */
export const ADMINISTRATOR_TOKEN = 'administrator_token';

/** The purpose of the approvals whose programs have not fetched their token yet (challenges). */
export const ADMINISTRATOR_APPROVAL = 'administrator_approval';

export function isAdministratorId(userId: string): boolean {
  return userId.startsWith(`${ADMINISTRATOR}|`);
}

/**
 * Returns whether a login is allowed for an application: administrators may only log in to the console and only through
 * their directory, and nobody else may do either.
 */
export function mayLogInTo(
  clientId: string,
  { userId, connection }: { userId: string; connection: string | undefined },
): boolean {
  const isConsole = clientId === CONSOLE_CLIENT;
  return isAdministratorId(userId) === isConsole && (connection === CONSOLE_DIRECTORY) === isConsole;
}
