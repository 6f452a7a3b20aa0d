// The pages of "Try connection".
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { CONSOLE_CLIENT } from '../../../records/administrators.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import type { UpstreamRedirect } from '../../connections/redirect.ts';
import { callApi } from '../api-calls.ts';
import { renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { usedOf } from './scripts.ts';
import {
  type ConnectionsDependencies,
  connectionAt,
  headOf,
  recordOf,
  type ShownConnection,
} from './shared.ts';
import type { Step } from './steps.ts';
import { finishTry, startTry, tryMethodOf, tryPassword } from './try.ts';

/** Returns a hash that stands for the administrator's session, which one browser has. */
const sessionHash = ({ token }: ConsoleSession) => sha256(`trial ${token}`);

/** Shows the form. */
export async function showTry(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  await showPage(deps, ctx, session, await connectionAt(deps, ctx, session));
}

/** Begins a login at the provider, or checks an identifier and a password. */
export async function tryConnection(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const shown = await connectionAt(deps, ctx, session);
  const connection = await recordOf(deps, shown);
  const method = tryMethodOf(connection);
  if (method.kind === 'redirect') {
    const owner = { userId: session.administrator.userId, session: sessionHash(session) };
    const started = await startTry(deps, owner, { connection, strategy: method.strategy });
    if (started.redirect === undefined)
      return showPage(deps, ctx, session, shown, { ...started, isRight: false });
    return showRedirect(deps, ctx, session, shown, { ...started, redirect: started.redirect });
  }
  if (method.kind === 'none')
    throw new AuthError(400, 'invalid_request', 'This connection cannot be tried here.');
  const { identifier, password } = formFields(ctx, 'identifier', 'password');
  await deps.limitLogin(ctx, connection, identifier);
  const passwordTry = {
    connection,
    strategy: method.strategy,
    identifier,
    password,
    caller: { ip: ctx.ip },
    clientId: CONSOLE_CLIENT,
  };
  await showPage(deps, ctx, session, shown, await tryPassword(deps, passwordTry));
}

/** Shows the outcome after the browser has returned from the provider. */
export async function showTryResult(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { ticket } = ctx.query;
  const answer =
    typeof ticket === 'string' ? await deps.testLogins.take(ticket, sessionHash(session)) : undefined;
  if (answer === undefined)
    throw new AuthError(400, 'invalid_request', 'This try is over. Begin another one.', {
      extra: { reason: 'request_expired' },
    });
  const params = { id: answer.connectionId };
  const shown = (await callApi(deps, ctx, session, 'GET /connections/:id', { params }))
    .body as ShownConnection;
  const steps = await finishTry(deps, answer, await recordOf(deps, shown));
  await showPage(deps, ctx, session, shown, { steps, isRight: steps.at(-1)?.kind === 'profile' });
}

/**
 * Shows a link to the provider. It is not a redirect, because forms of the console's pages may not lead elsewhere. A
 * provider that needs a form gets a page of its own.
 */
async function showRedirect(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  shown: ShownConnection,
  { steps, redirect }: { steps: readonly Step[]; redirect: UpstreamRedirect },
): Promise<void> {
  if ('url' in redirect)
    return showPage(deps, ctx, session, shown, { steps, isRight: false, goUrl: redirect.url });
  const { action, fields } = redirect;
  const model = { action, fields: Object.entries(fields), client: { name: session.administrator.name } };
  await deps.views.page(ctx, 'login/elsewhere', model, { formsLeave: true });
}

async function showPage(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
  connection: ShownConnection,
  outcome?: { steps: readonly Step[]; isRight: boolean; goUrl?: string },
): Promise<void> {
  const head = headOf(session, connection, 'try');
  await renderConsole(deps, ctx, session, {
    template: 'console/connections-try',
    title: { text: head.connection.title },
    model: {
      ...head,
      by: tryMethodOf(connection).kind,
      action: `${head.connection.path}/try`,
      steps: outcome?.steps.map(shownStep),
      isRight: outcome?.isRight,
      goUrl: /^https?:/i.test(outcome?.goUrl ?? '') ? outcome?.goUrl : undefined,
    },
  });
}

/** Returns a step with rounded times, and with the limits of a script. */
function shownStep(step: Step) {
  if (step.kind === 'request') return { ...step, ms: Math.round(step.ms) };
  return step.kind === 'script' ? { ...step, used: usedOf(step.used) } : step;
}
