// Where the pages of users are.

export const USERS = '/console/users';

/** The tabs of a user's page, in their order; the first is the page itself. */
export const TABS = [
  'profile',
  'identities',
  'factors',
  'sessions',
  'roles',
  'organizations',
  'consents',
  'devices',
  'events',
] as const;
export type Tab = (typeof TABS)[number];

/** The path of a user's page, or of what is below it. */
export function userPath(id: string, below = ''): string {
  const path = `${USERS}/${encodeURIComponent(id)}`;
  return below === '' || below === 'profile' ? path : `${path}/${below}`;
}
