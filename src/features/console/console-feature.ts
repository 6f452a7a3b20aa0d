// The console, where administrators manage the tenant in a browser.
import { feature } from '../../engine/provider/feature.ts';
import type { ErrorShape } from '../../http/errors.ts';
import { createCsrf } from '../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import { managementScopes } from '../management/api.ts';
import { type ManagementNeeds, managementDependencies } from '../management/management-feature.ts';
import { isMasked } from '../management/roles/role-masks.ts';
import { actionsRoutes } from './actions/console-actions-routes.ts';
import type { ActionsDependencies } from './actions/view.ts';
import { administratorsRoutes } from './administrators/console-administrators-routes.ts';
import { administratorEvents } from './administrators/events.ts';
import { type PasswordDependencies, passwordRoutes } from './administrators/password.ts';
import { type AgentDependencies, agentsRoutes } from './agents/console-agents-routes.ts';
import type { ApiCallDependencies } from './api-calls.ts';
import { applicationsRoutes } from './applications/console-applications-routes.ts';
import type { TryDependencies } from './applications/try-page.ts';
import { brandingRoutes } from './branding/console-branding-routes.ts';
import type { BrandingDependencies } from './branding/shared.ts';
import { connectionsRoutes } from './connections/console-connections-routes.ts';
import type { ConnectionsDependencies } from './connections/shared.ts';
import { CONSOLE } from './console-callbacks.ts';
import { consoleLimits } from './console-declaration.ts';
import { finishLogin } from './console-login.ts';
import {
  type ConsolePageDependencies,
  consoleForm,
  consolePage,
  redirectAfterForm,
  showErrorInConsole,
} from './console-page.ts';
import { endConsoleSession } from './console-session.ts';
import { consoleBuiltIns } from './directory.ts';
import { AGAIN, AGAIN_FIELD, type KeptForm, readKeptForm } from './kept-form.ts';
import { type LogDependencies, logRoutes } from './log/console-log-routes.ts';
import { type MovePageDependencies, moveRoutes } from './move/console-move-routes.ts';
import { connectionChecks } from './overview/connection-checks.ts';
import { type OverviewDependencies, overviewRoutes } from './overview/console-overview-routes.ts';
import { type ProgramsDependencies, programsRoutes } from './programs/console-programs-routes.ts';
import { declareConsolePage, renderConsole } from './render.ts';
import { isSecretName } from './resources/console-resource-secrets.ts';
import { resourcesRoutes } from './resources/console-resources-routes.ts';
import type { ResourcesDependencies } from './resources/model.ts';
import { type SecurityDependencies, securityRoutes } from './security/console-security-routes.ts';
import { usersRoutes } from './users/console-users-routes.ts';
import type { UsersDependencies } from './users/dependencies.ts';
import { usersReadAhead } from './users/read-ahead.ts';

// The page that shows the form which an administrator had sent before they had to log in again, and lets them send or
// discard it.

/** The maximum length of a text that is shown, characters; for a longer one only its length is shown. */
const MAX_SHOWN_LENGTH = 120;

/** A field as the page shows it: its text, or only its length. */
interface ShownField {
  name: string;
  text?: string;
  length: number;
}

interface AgainModel {
  action: string;
  from: string;
  field: string;
  sent: ShownField[];
}

export const AGAIN_PAGE = declareConsolePage<AgainModel>('console/again');

const againRoutes: RouteDeclarations<ConsolePageDependencies> = {
  [`GET ${AGAIN}` as const]: consolePage('', { scopes: [] }, async (deps, ctx, session) => {
    const form = await readKeptForm(deps, session);
    // It was already sent, for example in another tab.
    if (form === undefined) return redirectAfterForm(ctx, CONSOLE);
    const { section, path, from } = form;
    await renderConsole(deps, ctx, session, {
      page: AGAIN_PAGE,
      section,
      title: 't:console.again.title',
      model: { action: path, from, field: AGAIN_FIELD, sent: shownFields(form) },
    });
  }),
};

/** Names of fields that hold state of the page rather than input. */
const PAGE_STATE = /^(_.*|seen|stamp|.*_stamp|step|as|switches|was\..*|switch\..*)$/;

/** Returns the fields that the administrator filled in. Secrets are not shown, nor JSON, which may contain some. */
function shownFields({ body }: KeptForm): ShownField[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const texts = [value].flat().filter((one): one is string => typeof one === 'string' && one !== '');
    const text = texts.join(', ');
    if (text === '' || PAGE_STATE.test(name)) return [];
    const isShown = text.length <= MAX_SHOWN_LENGTH && !isSecret(name) && !/^\s*[[{]/.test(text);
    return [{ name, length: text.length, ...(isShown && { text }) }];
  });
}

/** Field names of secrets that do not say so themselves: the value of an action's secret, and a repeated password. */
const SECRETS: readonly string[] = ['value', 'repeat'];

const isSecret = (name: string): boolean =>
  name.split('.').some((part) => SECRETS.includes(part) || isSecretName(part) || isMasked(part));

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
  MovePageDependencies &
  AgentDependencies &
  PasswordDependencies &
  ProgramsDependencies;

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
  ...agentsRoutes,
  ...moveRoutes,
  ...passwordRoutes,
  ...programsRoutes,
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
const CONSOLE_PATHS: ReadonlySet<string> = new Set(
  Object.keys(consoleRoutes).flatMap((key) => (key.startsWith('GET ') ? [key.slice('GET '.length)] : [])),
);
