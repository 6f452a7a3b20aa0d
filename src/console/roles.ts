// What each role of an administrator may do, in scopes of the Management API, and one of the console's own.
import { AuthError } from '../http/errors.ts';
import type { AdministratorRole } from '../records/administrators.ts';

/** Lets an administrator see and change who else is one. */
export const ADMINISTRATORS_SCOPE = 'console:administrators';

/** Scopes to read what opens something: private keys, providers' tokens. */
const SECRET_READS: ReadonlySet<string> = new Set([
  'read:client_keys',
  'read:connections_keys',
  'read:encryption_keys',
  'read:scim_token',
  'read:user_idp_tokens',
]);

/**
 * What whoever helps users may do: all with users as they are, and to look at what they have of it. No links that log
 * somebody in as a user: whoever is asked for help is not who is helped.
 */
const SUPPORT: ReadonlySet<string> = new Set([
  'read:users',
  'update:users',
  'read:authentication_methods',
  'delete:authentication_methods',
  'read:guardian_enrollments',
  'delete:guardian_enrollments',
  'read:anomaly_blocks',
  'delete:anomaly_blocks',
  'read:sessions',
  'delete:sessions',
  'read:refresh_tokens',
  'delete:refresh_tokens',
  'read:device_credentials',
  'delete:device_credentials',
  'read:grants',
  'delete:grants',
  'read:logs',
  'read:logs_users',
  'read:organizations',
  'read:organization_members',
  'read:client_summary',
]);

/** The scopes of a role. @param all those of the Management API. */
export function scopesOf(role: AdministratorRole, all: readonly string[]): ReadonlySet<string> {
  switch (role) {
    case 'owner':
      return new Set([...all, ADMINISTRATORS_SCOPE]);
    case 'editor':
      return new Set(all);
    case 'viewer':
      return new Set(all.filter((scope) => scope.startsWith('read:') && !SECRET_READS.has(scope)));
    case 'support':
      return new Set(all.filter((scope) => SUPPORT.has(scope)));
  }
}

/** Whether a role may see secrets that stand within what it may read: who can change them. */
export function seesSecrets(role: AdministratorRole): boolean {
  return role === 'owner' || role === 'editor';
}

/** What is said to whom it is not for. */
export function roleRefusal(): AuthError {
  return new AuthError(403, 'access_denied', 'Your role does not allow this.');
}
