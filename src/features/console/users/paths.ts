// Paths of the user pages.

export const USERS = '/console/users';

/** The tabs in their order; the first one has the address of the page itself. */
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

export function userPath(id: string, below = ''): string {
  const path = `${USERS}/${encodeURIComponent(id)}`;
  return below === '' || below === 'profile' ? path : `${path}/${below}`;
}
