// Chooses the connection and login page for a waiting request.
import { type HostedDependencies, type RequestPage, renderPage, stepPath } from '../flow/request-page.ts';
import type { LoginPageOf } from '../flow/routes.ts';
import { showPasswordForm } from './database/hosted.ts';
import { connectionOf, loginChoices, straightUpstream } from './request.ts';
import { type GoUpstreamDependencies, goUpstream } from './upstream/go.ts';

/** The page of the connection that a request's user logs in with. */
export function loginPages(deps: HostedDependencies & GoUpstreamDependencies): LoginPageOf {
  return async (page) => {
    const { pending } = page;
    const meant = await connectionOf(deps.config, page, pending.params.login_hint);
    if (meant === undefined) return undefined;
    const straight = await straightUpstream(deps.config, pending);
    return {
      isElsewhere: straight !== undefined,
      show: async (ctx, form) => {
        // Who asks for a form by its address has seen the other page.
        const asked = form === undefined ? meant : ((await connectionOf(deps.config, page)) ?? meant);
        const { connection, strategy } = asked;
        if (straight !== undefined && (form === undefined || strategy.page === 'redirect')) {
          return goUpstream(deps, ctx, page, straight);
        }
        if (strategy.page === 'step') return ctx.redirect(stepPath(pending, strategy.step(connection)));
        if (strategy.page === 'redirect') return showChoices(deps, ctx, page);
        await showPasswordForm(deps, ctx, page, connection, form);
      },
    };
  };
}

/** An application that has providers elsewhere alone: its user chooses one. */
async function showChoices(
  deps: HostedDependencies,
  ctx: Parameters<typeof renderPage>[1],
  page: RequestPage,
): Promise<void> {
  const { name, logo_uri: logo } = page.client;
  const client = { name, ...(logo !== undefined && { logo }) };
  await renderPage(deps, ctx, page, 'login/connections', {
    client,
    connections: await loginChoices(deps.config, page),
  });
}
