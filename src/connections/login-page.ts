// Chooses the connection and login page for a waiting request.
import { type HostedDependencies, stepPath } from '../flow/request-page.ts';
import type { LoginPageOf } from '../flow/routes.ts';
import { showPasswordForm } from './database/hosted.ts';
import { connectionOf, passwordlessStep } from './request.ts';

/** The page of the connection that a request's user logs in with. */
export function loginPages(deps: HostedDependencies): LoginPageOf {
  return async (page) => {
    const connection = await connectionOf(deps.config, page);
    if (connection === undefined) return undefined;
    const step = passwordlessStep(connection);
    if (step !== undefined) return async (ctx) => ctx.redirect(stepPath(page.pending, step));
    return (ctx, form) => showPasswordForm(deps, ctx, page, connection, form);
  };
}
