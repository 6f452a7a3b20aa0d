// Routes of the application pages that have a design of their own.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { consoleForm, consolePage } from '../page.ts';
import { create, showKinds } from './create.ts';
import { APPLICATIONS } from './model.ts';
import {
  showApis,
  showApplications,
  showConnections,
  showQuickstart,
  switchApi,
  switchConnection,
} from './pages.ts';
import { TRY_CALLBACK } from './try-logins.ts';
import { showTry, showTryResult, startTry, type TryDependencies } from './try-page.ts';

const SECTION = 'applications';

/** Trying an application uses its secret, so it requires the scope to see the secret. */
const TRY_SCOPES = ['update:clients', 'read:client_keys'];

const page = (scopes: readonly string[], handle: Parameters<typeof consolePage<TryDependencies>>[2]) =>
  consolePage<TryDependencies>(SECTION, { scopes: ['read:clients', ...scopes] }, handle);

const form = (
  scopes: readonly string[],
  handle: Parameters<typeof consoleForm<TryDependencies>>[2],
  { isDangerous = true } = {},
) => consoleForm<TryDependencies>(SECTION, { scopes: ['read:clients', ...scopes], isDangerous }, handle);

// These forms count as dangerous: a new application has users' tokens sent to its callback, connections let users in,
// and an API may be the Management API.
export const applicationsRoutes: RouteDeclarations<TryDependencies> = {
  [`GET ${APPLICATIONS}` as const]: page([], showApplications),
  'GET /console/new-application': page(['create:clients'], (deps, ctx, session) =>
    showKinds(deps, ctx, session),
  ),
  'POST /console/new-application': form(['create:clients'], create),
  [`GET ${APPLICATIONS}/:id` as const]: page([], showQuickstart),
  [`GET ${APPLICATIONS}/:id/connections` as const]: page(['read:connections'], showConnections),
  [`POST ${APPLICATIONS}/:id/connections` as const]: form(['update:connections'], switchConnection),
  [`GET ${APPLICATIONS}/:id/apis` as const]: page(['read:resource_servers', 'read:client_grants'], showApis),
  [`POST ${APPLICATIONS}/:id/apis` as const]: form(
    ['read:resource_servers', 'read:client_grants', 'create:client_grants', 'delete:client_grants'],
    switchApi,
  ),
  [`GET ${APPLICATIONS}/:id/try` as const]: page(TRY_SCOPES, showTry),
  [`POST ${APPLICATIONS}/:id/try` as const]: form(TRY_SCOPES, startTry, { isDangerous: false }),
  [`GET ${TRY_CALLBACK}/:id` as const]: page(TRY_SCOPES, showTryResult),
};

/** The templates of these pages. */
export const APPLICATIONS_PAGES = [
  'console/applications-list',
  'console/applications-new',
  'console/applications-quickstart',
  'console/applications-connections',
  'console/applications-apis',
  'console/applications-try',
] as const;
