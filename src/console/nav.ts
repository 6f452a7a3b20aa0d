// The navigation of the console, in order: what there is, and for whom.
import type { AdministratorRole } from '../records/administrators.ts';
import { CONSOLE } from './callbacks.ts';
import { ADMINISTRATORS_SCOPE } from './roles.ts';
import type { AtConsole } from './session.ts';

interface NavItem {
  /** The section, as its pages name it: the path below the console. */
  section: string;
  /** One of them is enough; none for everybody. */
  scopes: readonly string[];
  /** Who has the scope for something else: support sees the organizations of users, and no others. */
  except?: AdministratorRole;
}

const NAV: readonly NavItem[] = [
  { section: '', scopes: [] },
  { section: 'applications', scopes: ['read:clients'] },
  { section: 'apis', scopes: ['read:resource_servers'] },
  { section: 'connections', scopes: ['read:connections'] },
  { section: 'users', scopes: ['read:users'] },
  { section: 'roles', scopes: ['read:roles'] },
  { section: 'organizations', scopes: ['read:organizations'], except: 'support' },
  { section: 'actions', scopes: ['read:actions'] },
  { section: 'branding', scopes: ['read:branding'] },
  { section: 'log', scopes: ['read:logs'] },
  { section: 'security', scopes: ['read:attack_protection', 'read:anomaly_blocks'] },
  { section: 'resources', scopes: ['read:tenant_settings'] },
  { section: 'administrators', scopes: [ADMINISTRATORS_SCOPE] },
];

/** A line of the navigation, as the layout shows it. */
interface NavLine {
  path: string;
  /** A message key. */
  text: string;
  isCurrent: boolean;
}

/** The navigation of an administrator. @param paths the pages that there are. */
export function navOf(here: AtConsole, section: string, paths: ReadonlySet<string>): NavLine[] {
  return NAV.map((item) => ({ ...item, path: pathOf(item.section) }))
    .filter(({ path, except }) => paths.has(path) && except !== here.administrator.role)
    .filter(({ scopes }) => scopes.length === 0 || scopes.some(here.can))
    .map((item) => ({
      path: item.path,
      text: `console.nav.${item.section === '' ? 'overview' : item.section}`,
      isCurrent: item.section === section,
    }));
}

/** The first page of a section. */
export function pathOf(section: string): string {
  return section === '' ? CONSOLE : `${CONSOLE}/${section}`;
}
