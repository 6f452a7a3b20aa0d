// What all pages of the account page share: who is logged in, the layout, and the check of forms.
import type { Context } from 'koa';
import {
  declareFramedPage,
  type FramedPage,
  type ShownClient,
  shownClient,
  type Views,
} from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { PAGE, type RouteDeclaration } from '../../../http/server/router.ts';
import { isAdministratorId } from '../../../records/users/administrators.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import type { UserAct } from '../../../users/login.ts';
import { ACCOUNT } from './account-callbacks.ts';
import { type AccountLoginDependencies, goToLogin, reauthenticate, type Section } from './account-login.ts';
import { mayDo, type PageActor, pageActorOf } from './account-session.ts';

export interface AccountPageDependencies extends AccountLoginDependencies {
  csrf: Csrf;
  views: Views;
}

type Handle<D> = (deps: D, ctx: Context, actor: PageActor) => Promise<void>;

/** Returns a route that shows a page. Without a login it redirects to one. */
export function pageRoute<D extends AccountPageDependencies>(
  section: Section,
  handle: Handle<D>,
): RouteDeclaration<D> {
  return {
    ...PAGE,
    handle: async (deps, ctx) => {
      requirePage(deps);
      const actor = await pageActorOf(deps, ctx);
      refuseScripts(ctx, actor);
      if (actor === undefined) return goToLogin(deps, ctx, { to: section });
      await handle(deps, ctx, actor);
    },
  };
}

/**
 * Returns a route that handles a form.
 * @param rules `act`: what the form does. Where the login is not enough for it, the user has to authenticate again and
 *   send the form again. `isBound`: what the form sends is itself bound to user and login.
 */
export function formRoute<D extends AccountPageDependencies>(
  section: Section,
  rules: { act: UserAct; isBound?: boolean },
  handle: Handle<D>,
): RouteDeclaration<D> {
  return {
    ...PAGE,
    handle: async (deps, ctx) => {
      requirePage(deps);
      deps.csrf.verify(ctx);
      const actor = await pageActorOf(deps, ctx);
      refuseScripts(ctx, actor);
      if (actor === undefined) return goToLogin(deps, ctx, { to: section });
      if (!mayDo(deps, actor, rules.act)) return reauthenticate(deps, ctx, { to: section, actor });
      // The form may have been opened by a user before another one logged in with this browser.
      if (rules.isBound !== true && !isSameSecret(formFields(ctx, 'account').account, actor.formToken))
        return back(ctx, section);
      await handle(deps, ctx, actor);
    },
  };
}

/**
 * Refuses requests of scripts in an administrator's name. Pages of the same origin may have scripts of the tenant,
 * which must not change how administrators log in.
 * @throws AuthError 403 unless the browser navigates (`Sec-Fetch-Dest: document`).
 */
export function refuseScripts(ctx: Context, actor: PageActor | undefined): void {
  const isPage = ['', 'document'].includes(ctx.get('Sec-Fetch-Dest'));
  if (actor === undefined || isPage || !isAdministratorId(actor.user.id)) return;
  throw new AuthError(403, 'access_denied', 'This page is for no script.');
}

// docs/understand/decisions/console-account.md#the-page-at-account-is-on-for-every-tenant
/** Checks that the tenant has the account page switched on. @throws AuthError 404 */
export function requirePage({ config }: Pick<AccountPageDependencies, 'config'>): void {
  if (!config.settings().tenant.account_page.enabled) throw new AuthError(404, 'not_found', 'Not Found');
}

/** Returns whether users may delete their own account. Administrators are removed by an owner in the console. */
export function allowsDeletion(
  { config }: Pick<AccountPageDependencies, 'config'>,
  { user }: Pick<PageActor, 'user'>,
): boolean {
  return config.settings().tenant.account_page.allow_deletion && !isAdministratorId(user.id);
}

/** Redirects to a section after its form (RFC 9110 §15.4.4). @param notice what was done, shown there. */
export function back(ctx: Context, section: Section, notice?: PageNotice): void {
  ctx.redirect(`${ACCOUNT}${section}${notice === undefined ? '' : `?said=${notice}`}`);
  ctx.status = 303;
}

/** The messages of what was done that the query may name. */
const NOTICES = [
  'saved',
  'sessionEnded',
  'sessionsEnded',
  'withdrawn',
  'unlinked',
  'disconnected',
  'browsersForgotten',
  'emailSent',
  'emailNext',
  'methodRemoved',
  'methodRenamed',
  'methodAdded',
] as const;
type PageNotice = (typeof NOTICES)[number];

interface PageOptions {
  status?: number;
  /** A message key. */
  alert?: string | undefined;
}

/** What the frame of the account page reads, and all its forms. */
export interface AccountFrame {
  csrf: string;
  /** Ties the forms to the user and the login. */
  account: string;
  root: string;
  section: Section;
  /** Whether the user has authenticated recently. */
  isFresh: boolean;
  person: { name: string };
  client: ShownClient;
  allowsDeletion: boolean;
  /** A message key. */
  alert?: string;
  /** The message key of what was done. */
  said?: string;
}

/** Declares a page of the account page. @param template the path of its template below views/pages. */
export const declareAccountPage = <Own>(template: string) => declareFramedPage<Own, AccountFrame>(template);

export async function renderAccount<Own extends object>(
  { config, csrf, views }: Pick<AccountPageDependencies, 'config' | 'csrf' | 'views'>,
  ctx: Context,
  actor: PageActor,
  { page, section, model }: { page: FramedPage<Own, AccountFrame>; section: Section; model: NoInfer<Own> },
  { status = 200, alert }: PageOptions = {},
): Promise<void> {
  const { user, client, isFresh } = actor;
  const notice = NOTICES.find((one) => one === ctx.query.said);
  await views.page(
    ctx,
    page,
    {
      ...model,
      csrf: csrf.token(ctx),
      account: actor.formToken,
      root: ACCOUNT,
      section,
      isFresh,
      person: { name: user.name ?? user.email ?? user.username ?? user.phone_number ?? '' },
      client: shownClient(client),
      allowsDeletion: allowsDeletion({ config }, actor),
      ...(alert !== undefined && { alert }),
      ...(alert === undefined && notice !== undefined && { said: `own.said.${notice}` }),
    },
    { status },
  );
}
