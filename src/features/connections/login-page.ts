// Chooses the connection and the login page of a waiting authorization request.

import { declarePage, type ShownClient, shownClient } from '../../capabilities/pages/views.ts';
import type { Connection } from '../../records/collections.ts';
import { firstCode, passwordUse } from '../../records/database-options.ts';
import type { LoginPageOf } from '../flow/flow-routes.ts';
import { type HostedDependencies, type RequestPage, renderPage, stepPath } from '../flow/request-page.ts';
import { isSignUpOpen } from './database/base/database-pages.ts';
import type { PasswordFormDependencies } from './database/base/form-dependencies.ts';
import { showPasswordForm, wantsSignUp } from './database/database-hosted.ts';
import { showIdentifier } from './identifier/identifier-page.ts';
import { codeStep } from './passwordless/session-code.ts';
import {
  asksIdentifierFirst,
  connectionOf,
  directProvider,
  identifierOf,
  type LoginChoice,
  loginChoices,
} from './resolve.ts';
import { type ProviderRedirectDependencies, redirectToProvider } from './upstream/redirect-to-provider.ts';

/** Returns the function that chooses the login page of a request: that of the connection its user logs in with. */
export function loginPages(deps: PasswordFormDependencies & ProviderRedirectDependencies): LoginPageOf {
  const { config } = deps;
  return async (page) => {
    const { waiting } = page;
    const identifier = identifierOf(page);
    const target = await connectionOf(config, page, identifier ?? waiting.params.login_hint);
    if (target === undefined) return undefined;
    const provider = await directProvider(config, waiting);
    return {
      redirectsToProvider: provider !== undefined,
      show: async (ctx, form) => {
        // A form that the user opened by its own URL belongs to the default connection: login_hint does not select it.
        const followsHint = form === undefined || (form === 'login' && identifier !== undefined);
        const { connection, strategy } = followsHint
          ? target
          : ((await connectionOf(config, page)) ?? target);
        const isDirect = form === undefined || (form !== 'identifier' && strategy.page === 'redirect');
        if (provider !== undefined && isDirect) return redirectToProvider(deps, ctx, page, provider);
        const signsUp = strategy.page === 'form' && wantsSignUp(page, form) && isSignUpOpen(page, connection);
        const isIdentified = form === 'login' && identifier !== undefined;
        if (!signsUp && !isIdentified && (await asksIdentifierFirst(config, page))) {
          return showIdentifier(deps, ctx, page);
        }
        if (strategy.page === 'step') return ctx.redirect(stepPath(waiting, strategy.step(connection)));
        if (strategy.page === 'redirect') return showChoices(deps, ctx, page);
        const code = signsUp ? undefined : firstCodeKind(connection, identifier, form);
        if (code !== undefined) return ctx.redirect(stepPath(waiting, codeStep(connection, code)));
        await showPasswordForm(deps, ctx, page, connection, form);
      },
    };
  };
}

/**
 * Returns the kind of address to which a code is sent before the password form is shown.
 * @returns undefined when the password form comes first, and when the user opened it by its URL and may use a password.
 */
function firstCodeKind(connection: Connection, identifier: string | undefined, form: string | undefined) {
  if (form === 'login' && passwordUse(connection).logsIn) return undefined;
  return firstCode(connection, identifier);
}

interface LoginConnectionsModel {
  client: ShownClient;
  connections: LoginChoice[];
}

export const LOGIN_CONNECTIONS_PAGE = declarePage<LoginConnectionsModel>('login/connections');

/** Shows the page of an application whose connections are all at external providers: a list to choose from. */
async function showChoices(
  deps: HostedDependencies,
  ctx: Parameters<typeof renderPage>[1],
  page: RequestPage,
): Promise<void> {
  const client = shownClient(page.client);
  await renderPage(deps, ctx, page, LOGIN_CONNECTIONS_PAGE, {
    client,
    connections: await loginChoices(deps.config, page),
  });
}
