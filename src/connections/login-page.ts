// Chooses the connection and login page for a waiting request.
import { type HostedDependencies, stepPath } from '../flow/request-page.ts';
import type { LoginPageOf } from '../flow/routes.ts';
import { showPasswordForm } from './database/hosted.ts';
import { connectionOf } from './request.ts';

/** The page of the connection that a request's user logs in with. */
export function loginPages(deps: HostedDependencies): LoginPageOf {
  return async (page) => {
    const meant = await connectionOf(deps.config, page, page.pending.params.login_hint);
    if (meant === undefined) return undefined;
    return async (ctx, form) => {
      // Who asks for a form by its address has seen the other page.
      const asked = form === undefined ? meant : await connectionOf(deps.config, page);
      const { connection, strategy } = asked ?? meant;
      if (strategy.page === 'step') return ctx.redirect(stepPath(page.pending, strategy.step(connection)));
      await showPasswordForm(deps, ctx, page, connection, form);
    };
  };
}
