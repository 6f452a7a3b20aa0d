// What all pages of an account have in common: who is there, the frame around them, and that a form was theirs.
import type { Context } from 'koa';
import { formFields } from '../../http/body-fields.ts';
import type { Csrf } from '../../http/csrf.ts';
import { AuthError } from '../../http/errors.ts';
import { PAGE, type RouteDeclaration } from '../../http/routes.ts';
import { shownClient } from '../../pages/shown-client.ts';
import type { Views } from '../../pages/views.ts';
import { isAdministratorId } from '../../records/administrators.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import { ACCOUNT } from './callbacks.ts';
import { type AccountLoginDependencies, goToLogin, proveAnew, type Section } from './login.ts';
import { type AtAccount, atAccount } from './session.ts';

export interface AccountPageDependencies extends AccountLoginDependencies {
  csrf: Csrf;
  views: Views;
}

type Handle<D> = (deps: D, ctx: Context, here: AtAccount) => Promise<void>;

/** A page, which who is not there logs in for. */
export function shown<D extends AccountPageDependencies>(
  section: Section,
  handle: Handle<D>,
): RouteDeclaration<D> {
  return {
    ...PAGE,
    handle: async (deps, ctx) => {
      requirePage(deps);
      const here = await atAccount(deps, ctx);
      refuseScripts(ctx, here);
      if (here === undefined) return goToLogin(deps, ctx, { to: section });
      await handle(deps, ctx, here);
    },
  };
}

/**
 * What a form of a page does.
 * @param rules `isSensitive`: a login of long ago does not do; the user logs in anew, and then sends the form again.
 *   `isBound`: what it sends is bound to the user and the login by itself.
 */
export function posted<D extends AccountPageDependencies>(
  section: Section,
  rules: { isSensitive: boolean; isBound?: boolean },
  handle: Handle<D>,
): RouteDeclaration<D> {
  return {
    ...PAGE,
    handle: async (deps, ctx) => {
      requirePage(deps);
      deps.csrf.verify(ctx);
      const here = await atAccount(deps, ctx);
      refuseScripts(ctx, here);
      if (here === undefined) return goToLogin(deps, ctx, { to: section });
      if (rules.isSensitive && !here.isFresh) return proveAnew(deps, ctx, { to: section, here });
      // Of a form that was opened by somebody else, who has logged in here meanwhile.
      if (rules.isBound !== true && !isSameSecret(formFields(ctx, 'account').account, here.stamp))
        return back(ctx, section);
      await handle(deps, ctx, here);
    },
  };
}

/**
 * Pages of the same origin may have scripts of the tenant's, which must not reach what administrators log in with.
 * @throws AuthError 403 for what a browser says to ask for in an administrator's name in another way than as a page.
 */
export function refuseScripts(ctx: Context, here: AtAccount | undefined): void {
  const isPage = ['', 'document'].includes(ctx.get('Sec-Fetch-Dest'));
  if (here === undefined || isPage || !isAdministratorId(here.user.id)) return;
  throw new AuthError(403, 'access_denied', 'This page is for no script.');
}

/** @throws AuthError 404 where the tenant has no such page. */
export function requirePage({ config }: Pick<AccountPageDependencies, 'config'>): void {
  if (!config.settings().tenant.account_page.enabled) throw new AuthError(404, 'not_found', 'Not Found');
}

/** Whether somebody may delete their own account: an administrator goes by an owner's word, and the last owner not at all. */
export function allowsDeletion(
  { config }: Pick<AccountPageDependencies, 'config'>,
  { user }: Pick<AtAccount, 'user'>,
): boolean {
  return config.settings().tenant.account_page.allow_deletion && !isAdministratorId(user.id);
}

/** Back to a page after its form (RFC 9110 §15.4.4). @param said a message key of what was done. */
export function back(ctx: Context, section: Section, said?: Said): void {
  ctx.redirect(`${ACCOUNT}${section}${said === undefined ? '' : `?said=${said}`}`);
  ctx.status = 303;
}

/** What a page says of what was done: what its address names is one of these. */
const SAID = [
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
type Said = (typeof SAID)[number];

interface PageOptions {
  status?: number;
  /** A message key. */
  alert?: string | undefined;
}

/** Answers with a page of an account. @param template below views/pages/own. */
export async function renderAccount(
  { config, csrf, views }: Pick<AccountPageDependencies, 'config' | 'csrf' | 'views'>,
  ctx: Context,
  here: AtAccount,
  { template, section, model }: { template: string; section: Section; model: object },
  { status = 200, alert }: PageOptions = {},
): Promise<void> {
  const { user, client, isFresh } = here;
  const said = SAID.find((one) => one === ctx.query.said);
  await views.page(
    ctx,
    `own/${template}`,
    {
      ...model,
      csrf: csrf.token(ctx),
      account: here.stamp,
      root: ACCOUNT,
      section,
      isFresh,
      person: { name: user.name ?? user.email ?? user.username ?? user.phone_number ?? '' },
      client: shownClient(client),
      allowsDeletion: allowsDeletion({ config }, here),
      ...(alert !== undefined && { alert }),
      ...(alert === undefined && said !== undefined && { said: `own.said.${said}` }),
    },
    { status },
  );
}
