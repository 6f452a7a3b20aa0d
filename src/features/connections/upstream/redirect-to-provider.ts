// Sends the browser of a waiting authorization request to an upstream provider.

import type { Context } from 'koa';
import type { Logger } from 'pino';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Events } from '../../../tenant/events.ts';
import type { HostedDependencies, RequestPage } from '../../flow/request-page.ts';
import type { UpstreamRedirect } from '../redirect.ts';
import { type BeginDependencies, beginUpstream, type Upstream } from './begin.ts';

export interface ProviderRedirectDependencies extends BeginDependencies, HostedDependencies {
  events: Events;
  log: Logger;
}

interface LoginElsewhereModel {
  /** The provider's address, and what the form sends there. */
  action: string;
  fields: [string, string][];
  client: { name: string };
}

/** The page whose form posts itself to a provider. */
export const LOGIN_ELSEWHERE_PAGE = declarePage<LoginElsewhereModel>('login/elsewhere');

/**
 * Sends the browser to a provider, by a redirect or a form that posts itself. If the request to the provider cannot be built,
 * the browser goes back to the application with an error, and a log event is recorded.
 */
export async function redirectToProvider(
  deps: ProviderRedirectDependencies,
  ctx: Context,
  page: RequestPage,
  upstream: Upstream,
): Promise<void> {
  const { waiting } = page;
  let redirect: UpstreamRedirect;
  try {
    redirect = await beginUpstream(deps, ctx, waiting, upstream);
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    const { error, error_description: description, cause } = thrown;
    const { name: connection } = upstream.connection;
    deps.events.record({
      type: engineEvents.f,
      client_id: waiting.clientId,
      connection,
      ip: ctx.ip,
      description,
    });
    if (cause !== undefined)
      deps.log.warn({ err: cause, connection }, 'an upstream provider cannot be asked');
    return deps.waitingRequests.answer(ctx, { error, description });
  }
  ctx.set('Cache-Control', 'no-store');
  if ('url' in redirect) return ctx.redirect(redirect.url);
  const { action, fields } = redirect;
  const { name } = page.client;
  await deps.views.page(
    ctx,
    LOGIN_ELSEWHERE_PAGE,
    { action, fields: Object.entries(fields), client: { name } },
    { uiLocales: waiting.params.ui_locales, formsLeave: true, organization: page.organization },
  );
}
