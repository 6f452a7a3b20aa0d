// What all routes of the console have in common: who is there, what they may do, and that a form or a script was the
// console's own.
import type { Context } from 'koa';
import { formFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import { type MultipartRules, readMultipart } from '../http/multipart.ts';
import { PAGE, type RouteDeclaration } from '../http/routes.ts';
import { CONSOLE } from './callbacks.ts';
import { AGAIN_FIELD, keepForm, takeForm } from './kept-form.ts';
import { type ConsoleLoginDependencies, goToLogin } from './login.ts';
import { pathOf } from './nav.ts';
import { type RenderDependencies, renderConsole } from './render.ts';
import { roleRefusal } from './roles.ts';
import {
  type AtConsole,
  atConsole,
  type ConsoleSessionDependencies,
  requireOwn,
  wasAtConsole,
} from './session.ts';

export type { AtConsole } from './session.ts';

export interface ConsolePageDependencies extends ConsoleLoginDependencies, RenderDependencies {}

/** What the page or form of a route is for. */
interface Rules {
  /** Those that the role must have, all of them. */
  scopes: readonly string[];
}

interface FormRules extends Rules {
  /** Whether a login of long ago does not do: the administrator logs in anew, and is then shown what they had sent, to send it. */
  isDangerous: boolean;
  /** For a form with a file (multipart): its text is the field's. It is read for administrators alone. */
  file?: MultipartRules;
}

type Handle<D> = (deps: D, ctx: Context, here: AtConsole) => Promise<void>;

const ROUTE = { ...PAGE, limit: 'console' } as const;

/**
 * A page of the console, for who is there and may see it. What a browser says to ask for in another way than as a page (a
 * script, a frame) must bring the console's token, as `X-Console-Token` or in the query as `_csrf`: pages of the same
 * origin may have scripts of the tenant's.
 */
export function consolePage<D extends ConsolePageDependencies>(
  section: string,
  { scopes }: Rules,
  handle: Handle<D>,
): RouteDeclaration<D> {
  return declared({ scopes, isDangerous: false }, async (deps, ctx) => {
    enter(ctx, section);
    const here = await atConsole(deps, ctx);
    if (here === undefined) {
      requirePage(ctx);
      return goToLogin(deps, ctx, { to: ctx.url });
    }
    if (!isPage(ctx)) requireOwn(ctx, here, deps.consoleUrl, ctx.get('X-Console-Token') || ctx.query._csrf);
    await orRefused(deps, ctx, here, () => {
      requireScopes(here, scopes);
      return handle(deps, ctx, here);
    });
  });
}

/** Does something; what is not there, or not for the role, is said within the console, whose places stay in reach. */
async function orRefused(
  deps: ConsolePageDependencies,
  ctx: Context,
  here: AtConsole,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    const isSaidHere = thrown instanceof AuthError && [403, 404].includes(thrown.status) && isPage(ctx);
    if (!isSaidHere) throw thrown;
    await showRefusal(deps, ctx, here, thrown);
  }
}

async function showRefusal(
  deps: RenderDependencies,
  ctx: Context,
  here: AtConsole,
  { status, error_description: description }: AuthError,
): Promise<void> {
  await renderConsole(deps, ctx, here, {
    template: 'console/refused',
    title: status === 403 ? 't:console.refused.role' : 't:console.refused.missing',
    status,
    model: { description, requestId: ctx.state.requestId },
  });
}

/**
 * Tells an administrator within the console that an address of it is not there, or takes no such request.
 * @returns whether it has answered: nobody else learns anything by it.
 */
export async function tellAtConsole(
  deps: ConsoleSessionDependencies & RenderDependencies,
  ctx: Context,
  error: AuthError,
): Promise<boolean> {
  const isOfConsole = ctx.path.startsWith(`${CONSOLE}/`) && isPage(ctx);
  if (!isOfConsole || ![404, 405].includes(error.status)) return false;
  const here = await atConsole(deps, ctx);
  if (here === undefined) return false;
  enter(ctx, ctx.path.split('/')[2] ?? '');
  await showRefusal(deps, ctx, here, error);
  return true;
}

/** What a form of the console does; it answers with {@link back}, or with a page that tells what is wrong. */
export function consoleForm<D extends ConsolePageDependencies>(
  section: string,
  { scopes, isDangerous, file }: FormRules,
  handle: Handle<D>,
): RouteDeclaration<D> {
  return declared({ scopes, isDangerous, ...(file && { file }) }, async (deps, ctx) => {
    enter(ctx, section);
    const here = await atConsole(deps, ctx);
    if (here === undefined) return afterTheEnd(deps, ctx, section, file);
    requireScopes(here, scopes);
    const isAgain = formFields(ctx, AGAIN_FIELD)[AGAIN_FIELD] !== '';
    if (file !== undefined && !isAgain) await readFile(ctx, file);
    requireOwnForm(deps, ctx, here);
    if (isAgain) await takeForm(deps, ctx, here);
    if (isDangerous && !here.isFresh) return keepAndLogIn(deps, ctx, here, section);
    await handle(deps, ctx, here);
  });
}

/** Notes which part of the console a request is for, and where its error page leads back to. */
function enter(ctx: Context, section: string): void {
  ctx.state.section = section;
  ctx.state.home = CONSOLE;
}

/** Whether a browser asks as for a page, and not as a script or a frame does. */
const isPage = (ctx: Context): boolean => ['', 'document'].includes(ctx.get('Sec-Fetch-Dest'));

/** @throws AuthError 401 `login_required` for a script, a frame or a body that no form sends: they cannot be led to the login. */
export function requirePage(ctx: Context): void {
  if (!isPage(ctx) || ctx.is('urlencoded', 'multipart') === false)
    throw new AuthError(401, 'login_required', 'The session is over. Log in again.');
}

/** That a form came from the console's own page. @throws AuthError as {@link requireOwn}. */
function requireOwnForm({ consoleUrl }: ConsolePageDependencies, ctx: Context, sender: AtConsole): void {
  requireOwn(ctx, sender, consoleUrl, ctx.get('X-Console-Token') || formFields(ctx, '_csrf')._csrf);
}

/** Leads who sent a form as nobody to the login, and to the page then that it was on. @param section for where that is not told. */
export async function logInFirst(
  deps: ConsolePageDependencies,
  ctx: Context,
  section: string,
): Promise<void> {
  await goToLogin(deps, ctx, { to: cameFrom(deps, ctx, section) });
}

/** What was sent waits for a new login of who sent it. */
async function keepAndLogIn(
  deps: ConsolePageDependencies,
  ctx: Context,
  as: AtConsole,
  section: string,
): Promise<void> {
  const from = cameFrom(deps, ctx, section);
  const form = await keepForm(deps, ctx, as, { from, section });
  await goToLogin(deps, ctx, { to: from, as, form });
}

/** A form of nobody leads to the login; of a session whose time is over, from the console's own page, it is kept meanwhile. */
async function afterTheEnd(
  deps: ConsolePageDependencies,
  ctx: Context,
  section: string,
  file: MultipartRules | undefined,
): Promise<void> {
  const before = await wasAtConsole(deps, ctx);
  if (before === undefined || formFields(ctx, AGAIN_FIELD)[AGAIN_FIELD] !== '')
    return logInFirst(deps, ctx, section);
  if (file !== undefined) await readFile(ctx, file);
  requireOwnForm(deps, ctx, before);
  await keepAndLogIn(deps, ctx, before, section);
}

/** A route of the console, which says of itself whom it is for. */
type ConsoleRoute<D> = RouteDeclaration<D> & { console: Readonly<FormRules> };

function declared<D>(rules: FormRules, handle: RouteDeclaration<D>['handle']): ConsoleRoute<D> {
  return { ...ROUTE, console: rules, handle };
}

/** Whom a route is for; undefined for one of strangers. */
export function rulesOf<D>(route: RouteDeclaration<D>): Readonly<FormRules> | undefined {
  return (route as Partial<ConsoleRoute<D>>).console;
}

/** Leaves the fields of a form at `ctx.request.body`, as other forms are left there, its file among them as text. @throws AuthError 4xx */
async function readFile(ctx: Context, rules: MultipartRules): Promise<void> {
  const { fields, file } = await readMultipart(ctx.req, rules);
  const text = file === undefined ? {} : { [file.field]: file.data.toString('utf8') };
  Object.assign(ctx.request, { body: { ...fields, ...text } });
}

function requireScopes(here: AtConsole, scopes: readonly string[]): void {
  if (scopes.every(here.can)) return;
  throw roleRefusal();
}

/** The page that a form was on, where the browser says so. */
function cameFrom({ consoleUrl }: ConsolePageDependencies, ctx: Context, section: string): string {
  const url = URL.parse(ctx.get('Referer'));
  const isOfConsole = url?.pathname === CONSOLE || url?.pathname.startsWith(`${CONSOLE}/`) === true;
  const isPage = isOfConsole && url?.origin === new URL(consoleUrl).origin;
  return isPage && url !== null ? `${url.pathname}${url.search}` : pathOf(section);
}

/**
 * Back to a page after its form (RFC 9110 §15.4.4).
 * @param path of the console. @param said a message key of the list `SAID`: what was done.
 */
export function back(ctx: Context, path: string, said?: string): void {
  const sign = path.includes('?') ? '&' : '?';
  ctx.redirect(said === undefined ? path : `${path}${sign}said=${encodeURIComponent(said)}`);
  ctx.status = 303;
}
