// The routes of connections.
import type { RouteDeclarations } from '../../../http/routes.ts';
import { withLongTexts } from '../forms.ts';
import { consoleForm, consolePage } from '../page.ts';
import { saveApplications, showApplications } from './applications.ts';
import { create, showKinds, showNew } from './create.ts';
import { showConnections } from './list.ts';
import { showScript, submitScript } from './script-page.ts';
import { remove, saveSettings, showRemoval, showSettings } from './settings.ts';
import { CHANGE, type ConnectionsDependencies, PATH, READ, SECTION, TRY_RESULT } from './shared.ts';
import { showTry, showTryResult, tryConnection } from './try-page.ts';

type D = ConnectionsDependencies;

const MAKE = ['create:connections'];
const REMOVE = ['delete:connections'];
const dangerous = (scopes: readonly string[]) => ({ scopes, isDangerous: true });

export const connectionsRoutes: RouteDeclarations<D> = {
  [`GET ${PATH}` as const]: consolePage<D>(SECTION, { scopes: READ }, showConnections),
  [`GET ${PATH}/new` as const]: consolePage<D>(SECTION, { scopes: MAKE }, showKinds),
  [`GET ${PATH}/new/:strategy` as const]: consolePage<D>(SECTION, { scopes: MAKE }, showNew),
  [`POST ${PATH}/new/:strategy` as const]: withLongTexts(consoleForm<D>(SECTION, dangerous(MAKE), create)),
  // What a trial shows of a provider's users requires the scope to change the connection.
  [`GET ${TRY_RESULT}` as const]: consolePage<D>(SECTION, { scopes: CHANGE }, showTryResult),
  [`GET ${PATH}/:id` as const]: consolePage<D>(SECTION, { scopes: READ }, showSettings),
  // Dangerous: the options say where users log in, and where the connection's secrets are sent.
  [`POST ${PATH}/:id` as const]: withLongTexts(consoleForm<D>(SECTION, dangerous(CHANGE), saveSettings)),
  [`GET ${PATH}/:id/applications` as const]: consolePage<D>(
    SECTION,
    { scopes: [...READ, 'read:clients'] },
    showApplications,
  ),
  // Dangerous: it decides who can log in to which application.
  [`POST ${PATH}/:id/applications` as const]: consoleForm<D>(SECTION, dangerous(CHANGE), saveApplications),
  [`GET ${PATH}/:id/scripts/:script` as const]: consolePage<D>(SECTION, { scopes: READ }, showScript),
  [`POST ${PATH}/:id/scripts/:script` as const]: withLongTexts(
    // Dangerous: a script that is run can read the connection's secrets and use the network.
    consoleForm<D>(SECTION, dangerous(CHANGE), submitScript),
  ),
  [`GET ${PATH}/:id/try` as const]: consolePage<D>(SECTION, { scopes: CHANGE }, showTry),
  [`POST ${PATH}/:id/try` as const]: consoleForm<D>(
    SECTION,
    { scopes: CHANGE, isDangerous: false },
    tryConnection,
  ),
  [`GET ${PATH}/:id/delete` as const]: consolePage<D>(SECTION, { scopes: REMOVE }, showRemoval),
  [`POST ${PATH}/:id/delete` as const]: consoleForm<D>(SECTION, dangerous(REMOVE), remove),
};

/** The templates of these pages, below views/pages. */
export const CONNECTIONS_PAGES: readonly string[] = [
  'applications',
  'delete',
  'kinds',
  'list',
  'new',
  'script',
  'settings',
  'try',
].map((name) => `console/connections-${name}`);
