// The routes of logins at upstream providers: to the provider, back from it, and back to the waiting authorization request.
import type { Context } from 'koa';
import { requestExpired } from '../../../engine/pending-interaction.ts';
import { bodyTexts, textsOf } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/routes.ts';
import { waitsForLogin } from '../../flow/next.ts';
import { acceptsConnection, openRequestPage } from '../../flow/request-page.ts';
import { type ConnectedRouteDependencies, connectedRoutes, finishAtProvider } from '../connected/routes.ts';
import { handleLoginForm, isLoginForm } from '../database/username-password.ts';
import { byRedirect, resolveConnection } from '../resolve.ts';
import { CALLBACK } from './begin.ts';
import { complete } from './complete.ts';
import { type ProviderRedirectDependencies, redirectToProvider } from './redirect-to-provider.ts';
import type { TestLogins } from './test-logins.ts';
import { handleUnsolicited, type UnsolicitedDependencies } from './unsolicited.ts';

export interface UpstreamRouteDependencies
  extends ProviderRedirectDependencies,
    UnsolicitedDependencies,
    ConnectedRouteDependencies {
  testLogins: Pick<TestLogins, 'receive'>;
  /** The URL of the console page that shows the result of a test login; the ticket of the answer is added to its query. */
  testUrl: string;
}

/** Bytes. The largest answers that are posted are signed and encrypted SAML responses. */
const MAX_ANSWER_BYTES = 256 * 1024;

export const upstreamRoutes: RouteDeclarations<UpstreamRouteDependencies> = {
  'GET /u/:uid/connection/:connection': { ...PAGE, handle: handleChoice },
  [`GET ${CALLBACK}` as const]: {
    ...PAGE,
    handle: (deps, ctx) => handleCallback(deps, ctx, textsOf(ctx.query)),
  },
  [`POST ${CALLBACK}` as const]: {
    ...PAGE,
    bodies: { maxBytes: MAX_ANSWER_BYTES },
    handle: (deps, ctx) =>
      isLoginForm(ctx) ? handleLoginForm(deps, ctx) : handleCallback(deps, ctx, bodyTexts(ctx)),
  },
  'GET /u/:uid/callback': { ...PAGE, handle: resumeRequest },
  ...connectedRoutes,
};

/** Handles the choice of a connection on a login page. */
async function handleChoice(deps: UpstreamRouteDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const { pending, client, organization } = page;
  const name = String(ctx.params.connection);
  if (!waitsForLogin(pending) || !acceptsConnection(pending, { name }))
    return ctx.redirect(`/u/${pending.uid}`);
  const query = { clientId: client.client_id, connection: name, organization: organization?.id };
  const found = await resolveConnection(deps.config, query, byRedirect);
  if (!('strategy' in found)) return ctx.redirect(`/u/${pending.uid}`);
  await redirectToProvider(deps, ctx, page, found);
}

/** Handles the answer of a provider, which the browser brings back. */
async function handleCallback(
  deps: UpstreamRouteDependencies,
  ctx: Context,
  parameters: Record<string, string>,
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  // The code and the state in this URL must not reach the next page as its referrer.
  ctx.set('Referrer-Policy', 'no-referrer');
  const state = parameters.state ?? parameters.RelayState ?? '';
  refuseMisplaced(ctx);
  const pending = state === '' ? undefined : await deps.pendingLogins.take(ctx, state);
  const connection = connectionOfAddress(ctx);
  const isPosted = ctx.method === 'POST';
  ctx.status = 303;
  if (pending === undefined) {
    const testTicket = await deps.testLogins.receive(state, { parameters, isPosted, connection });
    if (testTicket !== undefined) return ctx.redirect(`${deps.testUrl}?ticket=${testTicket}`);
    const unsolicitedUrl = await handleUnsolicited(deps, ctx, connection, parameters);
    if (unsolicitedUrl !== undefined) return ctx.redirect(unsolicitedUrl);
    deps.events.record({ type: 'f', ip: ctx.ip, description: NOT_WAITING });
    throw requestExpired();
  }
  const callback = { pending, state, parameters, isPosted, connection };
  if (pending.connecting !== undefined) return finishAtProvider(deps, ctx, pending.connecting, callback);
  const outcome = await complete(deps, ctx, callback);
  // The cookies of the waiting request are sent below /u/<uid> only, so the result is handed over by a ticket.
  const ticket = await deps.pendingLogins.storeOutcome(ctx, pending.uid, outcome);
  ctx.redirect(`/u/${pending.uid}/callback?ticket=${ticket}`);
}

/** Returns the connection that the callback URL of a posted answer names (SAML). */
function connectionOfAddress({ method, query }: Context): string | undefined {
  return method === 'POST' && query.connection !== undefined ? String(query.connection) : undefined;
}

/**
 * The parameters that are a proof of the user themselves, unlike a code. They are posted (OAuth 2.0 Form Post Response Mode;
 * SAML Profiles §4.1.2): in a query they would be in logs and in the browser's history (OAuth 2.0 Multiple Response Types §3).
 */
const POSTED = ['id_token', 'access_token', 'SAMLResponse'];

/** @throws AuthError 400 for an answer with such a parameter in the query; its login still waits. */
function refuseMisplaced({ query }: Context): void {
  const found = POSTED.find((name) => query[name] !== undefined);
  if (found !== undefined) throw new AuthError(400, 'invalid_request', `${found} must be posted.`);
}

const NOT_WAITING = 'an answer of an identity provider that no login of this browser waits for';

/** Continues the waiting authorization request with the result of the login. */
async function resumeRequest(deps: UpstreamRouteDependencies, ctx: Context): Promise<void> {
  const { pending } = await openRequestPage(deps, ctx);
  const { ticket } = ctx.query;
  const outcome =
    typeof ticket === 'string' ? await deps.pendingLogins.takeOutcome(ctx, pending.uid, ticket) : undefined;
  if (outcome === undefined || !waitsForLogin(pending)) throw requestExpired();
  if (!('login' in outcome)) return deps.interactions.answer(ctx, outcome);
  await deps.finish.resume(ctx, pending, outcome.login);
}
