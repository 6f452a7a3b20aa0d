// The console, where administrators manage the tenant in a browser.
import { feature } from '../../engine/provider/feature.ts';
import { createCsrf } from '../../http/csrf.ts';
import type { ErrorShape } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/router.ts';
import { managementApi } from '../management/api.ts';
import { type ManagementNeeds, managementDependencies } from '../management/feature.ts';
import { actionsRoutes } from './actions/routes.ts';
import type { ActionsDependencies } from './actions/view.ts';
import { administratorEvents } from './administrators/events.ts';
import { type PasswordDependencies, passwordRoutes } from './administrators/password.ts';
import { administratorsRoutes } from './administrators/routes.ts';
import { againRoutes } from './again-page.ts';
import type { ApiCallDependencies } from './api-calls.ts';
import { applicationsRoutes } from './applications/routes.ts';
import type { TryDependencies } from './applications/try-page.ts';
import { brandingRoutes } from './branding/routes.ts';
import type { BrandingDependencies } from './branding/shared.ts';
import { CONSOLE } from './callbacks.ts';
import { connectionsRoutes } from './connections/routes.ts';
import type { ConnectionsDependencies } from './connections/shared.ts';
import { consoleLimits } from './declaration.ts';
import { consoleBuiltIns } from './directory.ts';
import { type LogDependencies, logRoutes } from './log/routes.ts';
import { finishLogin } from './login.ts';
import { connectionChecks } from './overview/connection-checks.ts';
import { type OverviewDependencies, overviewRoutes } from './overview/routes.ts';
import { type ConsolePageDependencies, consoleForm, redirectAfterForm, showErrorInConsole } from './page.ts';
import type { ResourcesDependencies } from './resources/model.ts';
import { resourcesRoutes } from './resources/routes.ts';
import { type SecurityDependencies, securityRoutes } from './security/routes.ts';
import { endConsoleSession } from './session.ts';
import type { UsersDependencies } from './users/dependencies.ts';
import { usersReadAhead } from './users/read-ahead.ts';
import { usersRoutes } from './users/routes.ts';

export type ConsoleDependencies = ConsolePageDependencies &
  ApiCallDependencies &
  ActionsDependencies &
  LogDependencies &
  SecurityDependencies &
  OverviewDependencies &
  UsersDependencies &
  BrandingDependencies &
  ConnectionsDependencies &
  ResourcesDependencies &
  TryDependencies &
  PasswordDependencies;

const shellRoutes: RouteDeclarations<ConsolePageDependencies> = {
  ...againRoutes,
  [`POST ${CONSOLE}/logout` as const]: consoleForm(
    '',
    { scopes: [], isDangerous: false },
    async (deps, ctx) => {
      await endConsoleSession(deps, ctx);
      redirectAfterForm(ctx, CONSOLE);
    },
  ),
  [`GET ${CONSOLE}/callback` as const]: { ...PAGE, limit: consoleLimits.console, handle: finishLogin },
};

export const consoleRoutes: RouteDeclarations<ConsoleDependencies> = {
  ...shellRoutes,
  ...overviewRoutes,
  ...logRoutes,
  ...securityRoutes,
  ...actionsRoutes,
  ...usersRoutes,
  ...connectionsRoutes,
  ...brandingRoutes,
  ...resourcesRoutes,
  ...applicationsRoutes,
  ...administratorsRoutes,
  ...passwordRoutes,
};

/** What the console makes of other capabilities, or has by another name. */
type Made = 'connectionChecks' | 'csrf' | 'management' | 'paths' | 'readUsersAhead' | 'scopes';

export type ConsoleNeeds = Omit<ConsoleDependencies, Made> &
  ManagementNeeds &
  Parameters<typeof usersReadAhead>[0] & {
    hasConsole: boolean;
    /** Ends when the server begins to stop. */
    ending: AbortSignal;
    providers: Pick<Parameters<typeof connectionChecks>[0], 'faultOf' | 'usesNames'>;
  };

function consoleDependencies(needs: ConsoleNeeds): ConsoleDependencies {
  return {
    ...needs,
    connectionChecks: connectionChecks({ ...needs, ...needs.providers }),
    // Its cookie belongs to the console's host.
    csrf: createCsrf(needs.consoleUrl, needs.random),
    management: managementDependencies(needs),
    paths: CONSOLE_PATHS,
    readUsersAhead: usersReadAhead(needs),
    scopes: managementScopes(needs.issuer),
  };
}

const managementScopes = (issuer: string) => managementApi(issuer).scopes.map(({ value }) => value);

type ErrorPageNeeds = Omit<Parameters<typeof showErrorInConsole>[0], 'paths' | 'scopes'> & {
  hasConsole: boolean;
  issuer: string;
};

/** Returns how errors are shown to browsers: within the console for administrators who are logged in there, else by `page`. */
export function errorPageInConsole(needs: ErrorPageNeeds, page: ErrorShape): ErrorShape {
  if (!needs.hasConsole) return page;
  const shown = { ...needs, paths: CONSOLE_PATHS, scopes: managementScopes(needs.issuer) };
  return async (ctx, error) => {
    if (!(await showErrorInConsole(shown, ctx, error))) await page(ctx, error);
  };
}

export const consoleFeature = feature<ConsoleNeeds, unknown, ConsoleDependencies>({
  name: 'console',
  hasResources: true,
  builtIns: consoleBuiltIns,
  given: (needs) => (needs.hasConsole ? consoleDependencies(needs) : undefined),
  limits: consoleLimits,
  events: administratorEvents,
  routes: consoleRoutes,
  collections: [
    'administrators',
    'administratorUsers',
    'administratorIdentities',
    'administratorCredentials',
  ],
});

/** The paths of the console's pages. The navigation links to no others. */
export const CONSOLE_PATHS: ReadonlySet<string> = new Set(
  Object.keys(consoleRoutes).flatMap((key) => (key.startsWith('GET ') ? [key.slice('GET '.length)] : [])),
);
