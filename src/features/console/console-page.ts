// What all routes of the console share: finding the session, checking scopes, and verifying that a form is our own.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import type { BodyRules } from '../../http/server/body.ts';
import { formFields } from '../../http/server/body.ts';
import { PAGE, type RouteDeclaration, route } from '../../http/server/router.ts';
import { roleRefusal } from '../management/roles/administrator-roles.ts';
import { CONSOLE } from './console-callbacks.ts';
import { consoleLimits } from './console-declaration.ts';
import { type ConsoleLoginDependencies, goToLogin } from './console-login.ts';
import {
  type ConsoleSession,
  type ConsoleSessionDependencies,
  consoleSession,
  expiredConsoleSession,
  requireConsoleRequest,
} from './console-session.ts';
import { AGAIN_FIELD, keepForm, restoreForm } from './kept-form.ts';
import { pathOf } from './nav.ts';
import { declareConsolePage, type RenderDependencies, renderConsole } from './render.ts';

export type { ConsoleSession } from './console-session.ts';

export interface ConsolePageDependencies extends ConsoleLoginDependencies, RenderDependencies {}

interface Rules {
  /** The scopes that the role must have, all of them. */
  scopes: readonly string[];
}

interface FormRules extends Rules {
  /**
   * Whether the login must be recent. Otherwise the administrator logs in again, and is then shown the form to send.
   */
  isDangerous: boolean;
  /**
   * For a form with a file or long texts. Its body is only read for an administrator whose role has the scopes, and
   * for one whose session has expired after its eight hours. Any other browser is redirected to the login before that.
   */
  bodies?: BodyRules;
}

export const LONG_TEXTS: BodyRules = { maxBytes: 400 * 1024 };

const ROUTE = { ...PAGE, limit: consoleLimits.console } as const;

type Handler<D> = (deps: D, ctx: Context, session: ConsoleSession) => Promise<void>;

// docs/understand/decisions/console-account.md#scripts-of-the-tenants-pages-cannot-reach-the-console
/**
 * Declares a page of the console for administrators with the scopes. A request that does not load a document (from a
 * script or a frame) must carry the console's token, in `X-Console-Token` or as `_csrf` in the query: other pages of
 * the same origin may run scripts of the tenant.
 */
export function consolePage<D extends ConsolePageDependencies>(
  section: string,
  { scopes }: Rules,
  handle: Handler<D>,
): RouteDeclaration<D> {
  const declared = route<D, ConsoleSession>({
    ...ROUTE,
    admit: async (deps, ctx) => {
      ctx.state.home = CONSOLE;
      const session = await consoleSession(deps, ctx, section);
      if (session === undefined) {
        requirePage(ctx);
        await goToLogin(deps, ctx, { to: ctx.url });
        return 'answered';
      }
      if (!isPage(ctx))
        requireConsoleRequest(ctx, session, deps.consoleUrl, ctx.get('X-Console-Token') || ctx.query._csrf);
      return session;
    },
    handle: (deps, ctx, { admitted: session }) =>
      showRefusals(deps, ctx, session, () => {
        requireScopes(session, scopes);
        return handle(deps, ctx, session);
      }),
  });
  return withRules(declared, { section, scopes, isDangerous: false });
}

/**
 * Runs a handler; a refusal is shown inside the console's layout, so that its navigation stays available. A 400 with a
 * reason of its own, such as an expired form, has a page of its own.
 */
async function showRefusals(
  deps: ConsolePageDependencies,
  ctx: Context,
  session: ConsoleSession,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || !isPage(ctx)) throw thrown;
    const isInvalid = thrown.status === 400 && thrown.extra.reason === undefined;
    if (!isInvalid && ![403, 404].includes(thrown.status)) throw thrown;
    await showRefusal(deps, ctx, session, thrown);
  }
}

/** Headings of refusals by status; others say that nothing is there. */
const REFUSALS: Readonly<Record<number, `t:${string}`>> = {
  400: 't:console.refused.invalid',
  403: 't:console.refused.role',
};

interface RefusedModel {
  description: string;
  requestId: string;
}

export const REFUSED_PAGE = declareConsolePage<RefusedModel>('console/refused');

async function showRefusal(
  deps: RenderDependencies,
  ctx: Context,
  session: ConsoleSession,
  { status, error_description: description }: AuthError,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: REFUSED_PAGE,
    title: REFUSALS[status] ?? 't:console.refused.missing',
    status,
    model: { description, requestId: ctx.state.requestId },
  });
}

/**
 * Answers with an error page inside the console's layout when an administrator requests an unknown address of it or
 * uses a wrong method.
 * @returns whether it has answered; for others it has not, so that they learn nothing about the console.
 */
export async function showErrorInConsole(
  deps: ConsoleSessionDependencies & RenderDependencies,
  ctx: Context,
  error: AuthError,
): Promise<boolean> {
  const isOfConsole = ctx.path.startsWith(`${CONSOLE}/`) && isPage(ctx);
  if (!isOfConsole || ![404, 405].includes(error.status)) return false;
  const session = await consoleSession(deps, ctx, ctx.path.split('/')[2] ?? '');
  if (session === undefined) return false;
  ctx.state.home = CONSOLE;
  await showRefusal(deps, ctx, session, error);
  return true;
}

/** Declares a form of the console. The handler answers with {@link redirectAfterForm}, or with a page that shows what is wrong. */
export function consoleForm<D extends ConsolePageDependencies>(
  section: string,
  { scopes, isDangerous, bodies }: FormRules,
  handle: Handler<D>,
): RouteDeclaration<D> {
  const withBodies = { ...(bodies && { bodies }) };
  const declared = route<D, ConsoleSession | undefined>({
    ...ROUTE,
    ...withBodies,
    admit: async (deps, ctx) => {
      ctx.state.home = CONSOLE;
      const session = await consoleSession(deps, ctx, section);
      if (session !== undefined) requireScopes(session, scopes);
      else if (bodies !== undefined && (await expiredConsoleSession(deps, ctx, section)) === undefined) {
        requirePage(ctx);
        await redirectToLogin(deps, ctx, section);
        return 'answered';
      }
      return session;
    },
    handle: async (deps, ctx, { admitted: session }) => {
      if (session === undefined) return handleWithoutSession(deps, ctx, section);
      requireConsoleForm(deps, ctx, session);
      if (formFields(ctx, AGAIN_FIELD)[AGAIN_FIELD] !== '') await restoreForm(deps, ctx, session);
      if (isDangerous && !session.isFresh) return keepAndLogIn(deps, ctx, session, section);
      await handle(deps, ctx, session);
    },
  });
  return withRules(declared, { section, scopes, isDangerous, ...withBodies });
}

/** Reports whether the browser loads a document, rather than a script or a frame. */
const isPage = (ctx: Context): boolean => ['', 'document'].includes(ctx.get('Sec-Fetch-Dest'));

/**
 * Refuses requests that cannot be redirected to a login: those of scripts and frames, and those with a body that no
 * form sends.
 * @throws AuthError 401 `login_required`
 */
export function requirePage(ctx: Context): void {
  if (!isPage(ctx) || ctx.is('urlencoded', 'multipart') === false)
    throw new AuthError(401, 'login_required', 'The session is over. Log in again.');
}

/** Verifies that a form comes from the console's own page. @throws AuthError as {@link requireConsoleRequest}. */
function requireConsoleForm(
  { consoleUrl }: ConsolePageDependencies,
  ctx: Context,
  sender: ConsoleSession,
): void {
  requireConsoleRequest(
    ctx,
    sender,
    consoleUrl,
    ctx.get('X-Console-Token') || formFields(ctx, '_csrf')._csrf,
  );
}

/**
 * Redirects a form that was sent without a session to the login, and then to the page that it was sent from.
 * @param section where to return to when the browser does not name that page.
 */
async function redirectToLogin(deps: ConsolePageDependencies, ctx: Context, section: string): Promise<void> {
  await goToLogin(deps, ctx, { to: sourcePage(deps, ctx, section) });
}

/** Keeps the form and asks its sender to log in again. */
async function keepAndLogIn(
  deps: ConsolePageDependencies,
  ctx: Context,
  sender: ConsoleSession,
  section: string,
): Promise<void> {
  const from = sourcePage(deps, ctx, section);
  const form = await keepForm(deps, ctx, sender, { from, section });
  await goToLogin(deps, ctx, { to: from, previousSession: sender, form });
}

/**
 * Handles a form without an open session. One of an expired session is kept if it comes from the console's own page;
 * any other only leads to the login.
 */
async function handleWithoutSession(
  deps: ConsolePageDependencies,
  ctx: Context,
  section: string,
): Promise<void> {
  const expired = await expiredConsoleSession(deps, ctx, section);
  if (expired === undefined || formFields(ctx, AGAIN_FIELD)[AGAIN_FIELD] !== '')
    return redirectToLogin(deps, ctx, section);
  requireConsoleForm(deps, ctx, expired);
  await keepAndLogIn(deps, ctx, expired, section);
}

type ConsoleRoute<D> = RouteDeclaration<D> & { console: Readonly<RouteRules> };

/** The requirements of a route, and the section of the navigation that it belongs to. */
interface RouteRules extends FormRules {
  section: string;
}

const withRules = <D>(declared: RouteDeclaration<D>, console: RouteRules): ConsoleRoute<D> => ({
  ...declared,
  console,
});

/** Returns the requirements of a route; undefined for one that needs no session. */
export function rulesOf<D>(declared: RouteDeclaration<D>): Readonly<RouteRules> | undefined {
  return (declared as Partial<ConsoleRoute<D>>).console;
}

function requireScopes(session: ConsoleSession, scopes: readonly string[]): void {
  if (scopes.every(session.can)) return;
  throw roleRefusal();
}

/**
 * Returns the console page that a form was sent from, if the browser names it, or else the first page of the section.
 */
function sourcePage({ consoleUrl }: ConsolePageDependencies, ctx: Context, section: string): string {
  const url = URL.parse(ctx.get('Referer'));
  const isOfConsole = url?.pathname === CONSOLE || url?.pathname.startsWith(`${CONSOLE}/`) === true;
  const isPage = isOfConsole && url?.origin === new URL(consoleUrl).origin;
  return isPage && url !== null ? `${url.pathname}${url.search}` : pathOf(section);
}

/** Redirects to a page after a form (RFC 9110 §15.4.4). @param notice the key of a message to show there, one of `NOTICES`. */
export function redirectAfterForm(ctx: Context, path: string, notice?: string): void {
  const sign = path.includes('?') ? '&' : '?';
  ctx.redirect(notice === undefined ? path : `${path}${sign}said=${encodeURIComponent(notice)}`);
  ctx.status = 303;
}
