// What of the Management API the role of support may ask. The scopes to help users are those to take them over, too:
// `update:users` sets passwords, links identities and gives permissions.
import type { AdministratorRole } from '../records/administrators.ts';

/** What it is shown of nobody, wherever it stands. */
const UNSHOWN: ReadonlySet<string> = new Set(['user_metadata', 'app_metadata', 'roles', 'permissions']);
const METADATA_NAME = /(app|user)_metadata/i;

/** The calls that change something, by method and path; those with members take a body of no others. */
const CHANGES: Readonly<Record<string, 'any' | readonly string[]>> = {
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

/** What it does not see: who may do what is for those to know who decide it. */
const UNSEEN: ReadonlySet<string> = new Set([
  'GET /users/:id/roles',
  'GET /users/:id/permissions',
  'GET /roles/:id/users',
  'GET /organizations/:id/members/:user_id/roles',
]);

/** What the pages that are made of declarations show it: what is of users. Names of other things stand on users' own pages. */
const OF_USERS =
  /^GET \/(users|users-by-email|user-blocks|anomaly|sessions|refresh-tokens|grants|device-credentials|guardian\/enrollments|logs)(\/|$)/;

const isSeen = (name: string): boolean => OF_USERS.test(name) && !UNSEEN.has(name);

/** Whether all of a call is a role's, as far as it is not for its scopes to say. @param name method and path. */
export function isWhollyOf(role: AdministratorRole, name: string): boolean {
  return role !== 'support' || isSeen(name) || CHANGES[name] === 'any';
}

/** Whether a role may ask a call just so, as far as it is not for its scopes to say. */
export function mayAsk(
  role: AdministratorRole,
  name: string,
  { query, body }: { query: Readonly<Record<string, string | undefined>>; body: unknown },
): boolean {
  if (role !== 'support') return true;
  if (UNSEEN.has(name)) return false;
  // Whoever may search what they are not shown learns it, letter by letter. The language reads over backslashes.
  if (name.startsWith('GET '))
    return !Object.values(query).some(
      (one) => one !== undefined && METADATA_NAME.test(one.replaceAll('\\', '')),
    );
  const members = Object.hasOwn(CHANGES, name) ? CHANGES[name] : undefined;
  if (members === undefined || members === 'any') return members === 'any';
  return Object.keys((body ?? {}) as object).every((one) => members.includes(one));
}

/** A copy of an answer as a role is shown it: what applications note of users, and who may do what, is not for support. */
export function asShownTo(role: AdministratorRole, value: unknown): unknown {
  if (role !== 'support' || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => asShownTo(role, one));
  return Object.fromEntries(
    Object.entries(isOfRights(value) ? withoutChange(value) : value)
      .filter(([name]) => !UNSHOWN.has(name))
      .map(([name, one]) => [name, asShownTo(role, one)]),
  );
}

interface LoggedCall {
  request: { method?: unknown; path: string };
  response?: unknown;
}

/** Whether a value is what the log has of a call that gave or took rights. */
function isOfRights(value: object): value is LoggedCall {
  const { path } = (value as Partial<LoggedCall>).request ?? {};
  return typeof path === 'string' && /\/(roles|permissions)(\/|$)/.test(path);
}

/** That there was a call, and not to whom it gave what. */
function withoutChange({ request: { method, path }, response }: LoggedCall): object {
  return { request: { method, path }, response };
}
