// Restricts the role of support within its scopes. The scopes needed to help users would also allow taking their
// accounts over: `update:users` sets passwords, links identities and grants permissions.
// docs/understand/decisions/console-account.md#support-staff-can-do-nothing-in-the-console-by-which-they-could-log-in-as-a-user
import type { AdministratorRole } from '../../../records/users/administrators.ts';

/** The members that are removed from every answer, whatever object they are in. */
const HIDDEN_MEMBERS: ReadonlySet<string> = new Set([
  'user_metadata',
  'app_metadata',
  'roles',
  'permissions',
]);
const METADATA_NAME = /(app|user)_metadata/i;

/**
 * The calls that support may make to change something, by method and path. A list names the only members that the
 * body may have.
 */
const ALLOWED_CHANGES: Readonly<Record<string, 'any' | readonly string[]>> = {
  'PATCH /users/:id': ['name', 'given_name', 'family_name', 'nickname', 'picture', 'blocked'],
  'POST /jobs/verification-email': ['user_id'],
  'DELETE /user-blocks': 'any',
  'DELETE /user-blocks/:id': 'any',
  'DELETE /anomaly/blocks/ips/:id': 'any',
  'DELETE /users/:id/authentication-methods': 'any',
  'DELETE /users/:id/authentication-methods/:method_id': 'any',
  'DELETE /users/:id/authenticators': 'any',
  'DELETE /users/:id/multifactor/:provider': 'any',
  'DELETE /guardian/enrollments/:enrollment_id': 'any',
  'POST /users/:id/multifactor/actions/invalidate-remember-browser': 'any',
  'DELETE /sessions/:id': 'any',
  'POST /sessions/:id/revoke': 'any',
  'DELETE /users/:id/sessions': 'any',
  'POST /users/:id/revoke-access': 'any',
  'DELETE /refresh-tokens/:id': 'any',
  'POST /refresh-tokens/revoke': 'any',
  'DELETE /users/:id/refresh-tokens': 'any',
  'DELETE /grants': 'any',
  'DELETE /grants/:id': 'any',
  'DELETE /device-credentials/:credential_id': 'any',
};

/** The reads that support may not make: who has which rights is for those who assign them. */
const HIDDEN_CALLS: ReadonlySet<string> = new Set([
  'GET /users/:id/roles',
  'GET /users/:id/permissions',
  'GET /roles/:id/users',
  'GET /organizations/:id/members/:user_id/roles',
]);

/**
 * The lists that the generated pages show to support: those about users. Names of other objects appear on the users'
 * own pages.
 */
const USER_CALLS =
  /^GET \/(users|users-by-email|user-blocks|anomaly|sessions|refresh-tokens|grants|device-credentials|guardian\/enrollments|logs)(\/|$)/;

const isVisibleCall = (name: string): boolean => USER_CALLS.test(name) && !HIDDEN_CALLS.has(name);

/**
 * Reports whether a role may read by itself what a call answers. Pages show support some of what others answer, such as the
 * names of a user's organizations.
 */
export function mayReadDirectly(role: AdministratorRole, name: string): boolean {
  return role !== 'support' || !name.startsWith('GET ') || isVisibleCall(name);
}

/** Reports whether a role may make a call without restriction, apart from its scopes. @param name method and path. */
export function mayCallUnrestricted(role: AdministratorRole, name: string): boolean {
  return role !== 'support' || isVisibleCall(name) || ALLOWED_CHANGES[name] === 'any';
}

/** Reports whether a role may make this very call, apart from its scopes. @param texts those of its query. */
export function mayMakeCall(
  role: AdministratorRole,
  name: string,
  { texts, body }: { texts: readonly string[]; body: unknown },
): boolean {
  if (role !== 'support') return true;
  if (HIDDEN_CALLS.has(name)) return false;
  // Searching by hidden members would reveal them letter by letter. Backslashes are removed because the query
  // language ignores them.
  if (name.startsWith('GET ')) return !texts.some((one) => METADATA_NAME.test(one.replaceAll('\\', '')));
  const members = Object.hasOwn(ALLOWED_CHANGES, name) ? ALLOWED_CHANGES[name] : undefined;
  if (members === undefined || members === 'any') return members === 'any';
  return Object.keys((body ?? {}) as object).every((one) => members.includes(one));
}

/**
 * Returns a copy of an answer without the members that a role must not see: for support, metadata that applications
 * keep about users, and rights.
 */
export function visibleTo(role: AdministratorRole, value: unknown): unknown {
  if (role !== 'support' || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => visibleTo(role, one));
  return Object.fromEntries(
    Object.entries(isRightsChange(value) ? withoutBody(value) : value)
      .filter(([name]) => !HIDDEN_MEMBERS.has(name))
      .map(([name, one]) => [name, visibleTo(role, one)]),
  );
}

interface LoggedCall {
  request: { method?: unknown; path: string };
  response?: unknown;
}

/** Reports whether a value is a log event's record of a call that granted or withdrew rights. */
function isRightsChange(value: object): value is LoggedCall {
  const { path } = (value as Partial<LoggedCall>).request ?? {};
  return typeof path === 'string' && /\/(roles|permissions)(\/|$)/.test(path);
}

/**
 * Returns the record of a call without its body: it shows that there was a call, but not what was granted to whom.
 */
function withoutBody({ request: { method, path }, response }: LoggedCall): object {
  return { request: { method, path }, response };
}
