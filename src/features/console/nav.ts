// The navigation of the console in its order, with the scopes that each item requires.
import type { AdministratorRole } from '../../records/users/administrators.ts';
import { ADMINISTRATORS_SCOPE } from '../management/roles/administrator-roles.ts';
import { CONSOLE } from './console-callbacks.ts';
import type { ConsoleSession } from './console-session.ts';

interface NavItem {
  /** The section, which is its path below the console. */
  section: string;
  /** Any one of these scopes is enough; empty when everyone may see it. */
  scopes: readonly string[];
  /** A role that has the scope for another purpose: support may see the organizations of users, but not the list. */
  except?: AdministratorRole;
}

const NAV: readonly NavItem[] = [
  { section: '', scopes: [] },
  { section: 'applications', scopes: ['read:clients'] },
  { section: 'apis', scopes: ['read:resource_servers'] },
  { section: 'agents', scopes: ['read:clients'] },
  { section: 'connections', scopes: ['read:connections'] },
  { section: 'users', scopes: ['read:users'] },
  { section: 'roles', scopes: ['read:roles'] },
  { section: 'organizations', scopes: ['read:organizations'], except: 'support' },
  { section: 'actions', scopes: ['read:actions'] },
  { section: 'branding', scopes: ['read:branding'] },
  { section: 'log', scopes: ['read:logs'] },
  { section: 'move', scopes: ['read:tenant_settings'] },
  { section: 'security', scopes: ['read:attack_protection', 'read:anomaly_blocks'] },
  { section: 'resources', scopes: ['read:tenant_settings'] },
  { section: 'administrators', scopes: [ADMINISTRATORS_SCOPE] },
];

/** An item of the navigation as the layout shows it. */
export interface NavLine {
  path: string;
  /** A message key. */
  text: string;
  isCurrent: boolean;
}

/** Returns the navigation of an administrator. @param paths the paths of the existing pages. */
export function navOf(session: ConsoleSession, section: string, paths: ReadonlySet<string>): NavLine[] {
  return NAV.map((item) => ({ ...item, path: pathOf(item.section) }))
    .filter(({ path, except }) => paths.has(path) && except !== session.administrator.role)
    .filter(({ scopes }) => scopes.length === 0 || scopes.some(session.can))
    .map((item) => ({
      path: item.path,
      text: `console.nav.${item.section === '' ? 'overview' : item.section}`,
      isCurrent: item.section === section,
    }));
}

/** Returns the path of a section's first page. */
export function pathOf(section: string): string {
  return section === '' ? CONSOLE : `${CONSOLE}/${section}`;
}
