// /console/security: redirects to the first part that the administrator may see.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { consolePage, redirectAfterForm } from '../page.ts';
import { roleRefusal } from '../roles.ts';
import { blockedRoutes } from './blocked.ts';
import { factorsRoutes } from './factors.ts';
import { keysRoutes } from './keys.ts';
import { type SecuritySettingsDependencies, settingsRoutes } from './settings-pages.ts';
import { SECURITY, tabsOf } from './tabs.ts';

export type SecurityDependencies = SecuritySettingsDependencies;

export const securityRoutes: RouteDeclarations<SecurityDependencies> = {
  [`GET ${SECURITY}` as const]: consolePage('security', { scopes: [] }, async (_deps, ctx, session) => {
    const [first] = tabsOf(session);
    if (first === undefined) throw roleRefusal();
    redirectAfterForm(ctx, first.path);
  }),
  ...factorsRoutes,
  ...settingsRoutes,
  ...blockedRoutes,
  ...keysRoutes,
};

export const SECURITY_PAGES = [
  'console/security-blocked',
  'console/security-factors',
  'console/security-keys',
  'console/security-settings',
];
