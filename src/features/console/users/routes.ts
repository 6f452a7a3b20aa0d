// The routes of the user pages.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { accessRoutes } from './access.ts';
import type { UsersDependencies } from './dependencies.ts';
import { listRoutes } from './list.ts';
import { loginMethodRoutes } from './login-methods.ts';
import { newUserRoutes } from './new-user.ts';
import { profileRoutes } from './profile.ts';
import { sessionRoutes } from './sessions.ts';
import { transferRoutes } from './transfer.ts';
import { userActionRoutes } from './user-actions.ts';

export const usersRoutes: RouteDeclarations<UsersDependencies> = {
  ...listRoutes,
  ...newUserRoutes,
  ...transferRoutes,
  ...profileRoutes,
  ...userActionRoutes,
  ...loginMethodRoutes,
  ...sessionRoutes,
  ...accessRoutes,
};

/** The templates of these pages. */
export const USERS_PAGES = [
  'console/users-consents',
  'console/users-delete',
  'console/users-devices',
  'console/users-events',
  'console/users-factors',
  'console/users-found',
  'console/users-identities',
  'console/users-job',
  'console/users-list',
  'console/users-new',
  'console/users-organizations',
  'console/users-profile',
  'console/users-roles',
  'console/users-sessions',
  'console/users-transfer',
];
