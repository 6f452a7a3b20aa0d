// The pages of applications that are made by hand.
import type { RouteDeclarations } from '../../http/routes.ts';
import { consoleForm, consolePage } from '../page.ts';
import { create, showKinds } from './create.ts';
import { APPLICATIONS, type ApplicationsDependencies } from './model.ts';
import {
  showApis,
  showApplications,
  showConnections,
  showQuickstart,
  switchApi,
  switchConnection,
} from './pages.ts';

const SECTION = 'applications';

const page = (
  scopes: readonly string[],
  handle: Parameters<typeof consolePage<ApplicationsDependencies>>[2],
) => consolePage<ApplicationsDependencies>(SECTION, { scopes: ['read:clients', ...scopes] }, handle);

const form = (
  scopes: readonly string[],
  handle: Parameters<typeof consoleForm<ApplicationsDependencies>>[2],
) =>
  consoleForm<ApplicationsDependencies>(
    SECTION,
    { scopes: ['read:clients', ...scopes], isDangerous: false },
    handle,
  );

export const applicationsRoutes: RouteDeclarations<ApplicationsDependencies> = {
  [`GET ${APPLICATIONS}` as const]: page([], showApplications),
  'GET /console/new-application': page(['create:clients'], (deps, ctx, here) => showKinds(deps, ctx, here)),
  'POST /console/new-application': form(['create:clients'], create),
  [`GET ${APPLICATIONS}/:id` as const]: page([], showQuickstart),
  [`GET ${APPLICATIONS}/:id/connections` as const]: page(['read:connections'], showConnections),
  [`POST ${APPLICATIONS}/:id/connections` as const]: form(['update:connections'], switchConnection),
  [`GET ${APPLICATIONS}/:id/apis` as const]: page(['read:resource_servers', 'read:client_grants'], showApis),
  [`POST ${APPLICATIONS}/:id/apis` as const]: form(
    ['read:resource_servers', 'read:client_grants', 'create:client_grants', 'delete:client_grants'],
    switchApi,
  ),
};

/** The templates of these pages. */
export const APPLICATIONS_PAGES = [
  'console/applications-list',
  'console/applications-new',
  'console/applications-quickstart',
  'console/applications-connections',
  'console/applications-apis',
] as const;
