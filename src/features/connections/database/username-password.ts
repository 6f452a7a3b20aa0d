// The two requests of a customized login page (docs/reference/wire/legacy-pages.md): its script posts the password,
// gets a form with a login ticket, and submits it. The user is logged in only when the form is submitted.
import type { Context } from 'koa';
import type { LimitLogin } from '../../../capabilities/protection/attempts.ts';
import type { LoginTickets } from '../../../capabilities/protection/login-tickets.ts';
import { uidOfState, waitingState } from '../../../engine/authorize/restarted-request.ts';
import {
  requestExpired,
  type WaitingRequest,
  waitingPath,
} from '../../../engine/authorize/waiting-requests.ts';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import { nameBrowser } from '../../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import type { HostedDependencies } from '../../flow/request-page.ts';
import { tenantName } from '../../flow/widget.ts';
import { databaseFor } from '../resolve.ts';
import type { ProofDependencies } from '../strategy.ts';

export interface UsernamePasswordDependencies extends ProofDependencies, HostedDependencies {
  baseUrl: string;
  limitLogin: LimitLogin;
  tickets: LoginTickets;
  random: Random;
}

/** Path to which the form is posted. Upstream providers send their responses there, too (../upstream/upstream-feature.ts). */
const CALLBACK = '/login/callback';

export const usernamePasswordRoutes: RouteDeclarations<UsernamePasswordDependencies> = {
  'POST /usernamepassword/login': { ...PAGE, errors: loginErrorShape, handle: verify },
};

// docs/understand/decisions/login-pages.md#usernamepasswordlogin-does-not-log-the-user-in-itself
/** `POST /usernamepassword/login`: verifies the password and responds with an HTML form to be submitted unchanged. */
async function verify(deps: UsernamePasswordDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { state, client_id, connection: connectionName, username, email, password } = bodyTexts(ctx);
  const { uid, clientId, params } = await waitingRequest(deps, ctx, state);
  const identifier = username || email;
  if (client_id !== clientId || !identifier || !password) {
    throw new AuthError(400, 'invalid_request', 'client_id, username and password are required.');
  }
  // A connection named by the authorization request takes precedence.
  const { connection, strategy } = await databaseFor(deps.config, {
    clientId,
    connection: params.connection,
    realm: connectionName || undefined,
  });
  await deps.limitLogin(ctx, connection, identifier);
  const { browser } = nameBrowser(ctx, deps.random);
  const login = await strategy.prove(deps, {
    clientId,
    connection,
    identifier,
    credentials: password,
    caller: { ip: ctx.ip, browser },
  });
  const context = {
    strategy: connection.strategy,
    tenant: tenantName(deps.baseUrl),
    connection: connection.name,
    client_id: clientId,
    protocol: 'oauth2',
    state: waitingState(uid),
  };
  const fields = {
    wa: 'wsignin1.0',
    wresult: await deps.tickets.issue(ctx, login, clientId),
    wctx: JSON.stringify(context),
  };
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.body = form(`${deps.baseUrl}${CALLBACK}`, fields);
}

/** Returns whether a request to `/login/callback` contains that form. */
export function isLoginForm(ctx: Context): boolean {
  const { wresult, wctx } = bodyTexts(ctx);
  return wresult !== undefined && wctx !== undefined;
}

/** `POST /login/callback`: redirects to the page of the waiting request, which completes the login. */
export async function handleLoginForm(
  deps: Pick<UsernamePasswordDependencies, 'waitingRequests'>,
  ctx: Context,
): Promise<void> {
  const { wresult = '', wctx = '' } = bodyTexts(ctx);
  const { uid } = await waitingRequest(deps, ctx, stateOf(wctx));
  ctx.redirect(`${waitingPath(uid)}?${new URLSearchParams({ login_ticket: wresult })}`);
}

/** @throws AuthError 400 if no request with this state waits for a login. */
async function waitingRequest(
  { waitingRequests }: Pick<UsernamePasswordDependencies, 'waitingRequests'>,
  ctx: Context,
  state: string | undefined,
): Promise<WaitingRequest> {
  const waiting = await waitingRequests.find(ctx, uidOfState(state) ?? '');
  if (!waitsForLogin(waiting)) throw requestExpired();
  return waiting;
}

function stateOf(context: string): string | undefined {
  try {
    const { state } = JSON.parse(context) as { state?: unknown };
    return typeof state === 'string' ? state : undefined;
  } catch {
    return undefined;
  }
}

function form(action: string, fields: Record<string, string>): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`,
  );
  return `<form method="post" name="hiddenform" action="${escapeHtml(action)}">${inputs.join('')}</form>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Writes errors with the codes that the login page's SDK knows. */
function loginErrorShape(ctx: Context, { status, error, error_description, extra }: AuthError): void {
  const isWrongPassword = error === 'invalid_grant';
  const isExpired = extra.reason === 'request_expired' || extra.reason === 'form_expired';
  ctx.status = isWrongPassword ? 401 : status;
  ctx.set('Cache-Control', 'no-store');
  ctx.body = {
    name: status === 429 ? 'AnomalyDetected' : 'ValidationError',
    code: isWrongPassword ? 'invalid_user_password' : isExpired ? 'session_missing' : error,
    description: error_description,
    statusCode: ctx.status,
  };
}
