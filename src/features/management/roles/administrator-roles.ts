// The scopes of each role: scopes of the Management API, and one of the console itself.
import { AuthError } from '../../../http/errors.ts';
import { type AdministratorRole, ROLES } from '../../../records/users/administrators.ts';

/** Allows an administrator to see and change the administrators. */
export const ADMINISTRATORS_SCOPE = 'console:administrators';

/** Scopes to read secrets: private keys, tokens of providers. */
const SECRET_READS: ReadonlySet<string> = new Set([
  'read:client_keys',
  'read:connections_keys',
  'read:encryption_keys',
  'read:scim_token',
  'read:user_idp_tokens',
]);

/**
 * Scopes of those who help users: what they need to manage users and to see what users have. Links that log in as a
 * user are left out, because a person who asks for help may not be the user.
 */
const SUPPORT_SCOPES: ReadonlySet<string> = new Set([
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

/** @param all the scopes of the Management API. */
export function scopesOf(role: AdministratorRole, all: readonly string[]): ReadonlySet<string> {
  switch (role) {
    case 'owner':
      return new Set([...all, ADMINISTRATORS_SCOPE]);
    case 'editor':
      return new Set(all);
    case 'viewer':
      return new Set(all.filter((scope) => scope.startsWith('read:') && !SECRET_READS.has(scope)));
    case 'support':
      return new Set(all.filter((scope) => SUPPORT_SCOPES.has(scope)));
  }
}

/** Reports whether a role may see secrets within what it may read. Roles that may change them may also see them. */
export function maySeeSecrets(role: AdministratorRole): boolean {
  return role === 'owner' || role === 'editor';
}

/** Returns the one of two roles that may do and see less with the same scopes: each role may less than those before it. */
export function lesserRole(one: AdministratorRole, other: AdministratorRole): AdministratorRole {
  return ROLES.indexOf(one) > ROLES.indexOf(other) ? one : other;
}

/** Returns the error for an action that the role does not allow. */
export function roleRefusal(): AuthError {
  return new AuthError(403, 'access_denied', 'Your role does not allow this.');
}
