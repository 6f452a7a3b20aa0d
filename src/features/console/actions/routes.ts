// The pages of actions.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { codeRoutes } from './code.ts';
import { listRoutes } from './list.ts';
import { newActionRoutes } from './new-action.ts';
import { runRoutes } from './runs.ts';
import { versionRoutes } from './versions.ts';
import type { ActionsDependencies } from './view.ts';

export const actionsRoutes: RouteDeclarations<ActionsDependencies> = {
  ...listRoutes,
  ...newActionRoutes,
  ...codeRoutes,
  ...versionRoutes,
  ...runRoutes,
};

/** The templates of these pages. */
export const ACTIONS_PAGES = [
  'console/actions-code',
  'console/actions-delete',
  'console/actions-deploy',
  'console/actions-list',
  'console/actions-new',
  'console/actions-runs',
  'console/actions-test',
  'console/actions-versions',
];
