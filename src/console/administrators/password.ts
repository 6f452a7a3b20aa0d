// The pages where administrators set a password: with a link, or for themselves when logged in.
import type { Context } from 'koa';
import { enrollable } from '../../factors/policy.ts';
import { formFields } from '../../http/body-fields.ts';
import type { Csrf } from '../../http/csrf.ts';
import { linkExpired } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import { type AdministratorLink, CONSOLE_CLIENT } from '../../records/administrators.ts';
import type { Frozen } from '../../records/record.ts';
import { checkStrength } from '../../users/password-policy.ts';
import { passwordRefusal } from '../../users/signup.ts';
import { CONSOLE, formsLeadOutside, outsideOf } from '../callbacks.ts';
import { DIRECTORY_OPTIONS } from '../directory.ts';
import { back, consoleForm, consolePage } from '../page.ts';
import { renderConsole } from '../render.ts';
import { recordAdministrator } from './events.ts';
import { acceptLink, endPasswordLinks, LINK_PATH, linkOf, setPasswordByLink } from './links.ts';
import { isTaken } from './members.ts';
import type { AdministratorsDependencies } from './routes.ts';

export interface PasswordDependencies extends AdministratorsDependencies {
  /** CSRF protection of pages that nobody is logged in to. */
  csrf: Csrf;
  /** Ends pending enrolments and approvals, and forgets remembered browsers. */
  endPending(userId: string): Promise<void>;
}

type Deps = PasswordDependencies;
type Link = Frozen<AdministratorLink>;

const ROUTE = { ...PAGE, limit: 'console' } as const;
const PASSWORD = `${CONSOLE}/password`;
const LONGEST_NAME = 200;

/** The routes. Opening a link only shows the form; sending the form uses the link up. */
export const passwordRoutes: RouteDeclarations<PasswordDependencies> = {
  [`GET ${LINK_PATH}` as const]: { ...ROUTE, handle: (deps, ctx) => openLink(deps, ctx) },
  [`POST ${LINK_PATH}` as const]: { ...ROUTE, handle: useLink },
  [`GET ${PASSWORD}` as const]: consolePage('password', { scopes: [] }, (deps, ctx, session) =>
    renderConsole(deps, ctx, session, {
      template: 'console/administrators-password',
      title: 't:console.password.title',
      model: { ...formOf(), ...factorsOf(deps) },
    }),
  ),
  [`POST ${PASSWORD}` as const]: consoleForm(
    'password',
    { scopes: [], isDangerous: true },
    async (deps, ctx, session) => {
      const { userId, email, name } = session.administrator;
      const { password, repeat } = formFields(ctx, 'password', 'repeat');
      const faults = await faultsOf(deps, { email, name, userId }, password, repeat);
      if (faults !== undefined) {
        return renderConsole(deps, ctx, session, {
          template: 'console/administrators-password',
          title: 't:console.password.title',
          alert: 't:reset.failed',
          status: 400,
          model: { ...formOf(faults, password), ...factorsOf(deps) },
        });
      }
      await deps.administrators.setPassword(userId, password, { also: [endPasswordLinks(userId)] });
      await deps.endPending(userId);
      recordAdministrator(deps, ctx, {
        by: session.administrator,
        description: 'new password',
        about: email,
      });
      // The session ends together with the old password, so this leads to the login.
      back(ctx, CONSOLE);
    },
  ),
};

interface Faults {
  password?: string;
  repeat?: string;
  name?: string;
}

async function openLink(deps: Deps, ctx: Context): Promise<void> {
  const { ticket } = ctx.query;
  await showLink(deps, ctx, typeof ticket === 'string' ? ticket : '');
}

async function showLink(
  deps: Deps,
  ctx: Context,
  ticket: string,
  { faults, tried, name = '' }: { faults?: Faults; tried?: string; name?: string } = {},
): Promise<void> {
  const link = await linkOf(deps, ticket);
  if (link === undefined) throw linkExpired();
  await deps.views.page(
    ctx,
    'console/administrators-link',
    {
      ...formOf(faults, tried),
      action: LINK_PATH,
      csrf: deps.csrf.token(ctx),
      ticket,
      email: link.email,
      role: link.role,
      name,
      ...(faults !== undefined && { alert: 'reset.failed' }),
    },
    { status: faults === undefined ? 200 : 400, ...formsLeadOutside(deps) },
  );
}

async function useLink(deps: Deps, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, name: typed, password, repeat } = formFields(ctx, 'ticket', 'name', 'password', 'repeat');
  const name = typed.trim().slice(0, LONGEST_NAME);
  const link = await linkOf(deps, ticket);
  if (link === undefined) throw linkExpired();
  const about = { email: link.email, name, userId: link.user_id };
  const faults = await faultsOf(deps, about, password, repeat);
  const unnamed = link.role !== undefined && name === '' ? { name: 'console.link.nameless' } : undefined;
  if (faults !== undefined || unnamed !== undefined)
    return showLink(deps, ctx, ticket, { faults: { ...faults, ...unnamed }, tried: password, name });
  await used(deps, ctx, link, { name, password });
  back(ctx, CONSOLE);
}

/**
 * Uses the link up.
 * @throws AuthError 400 when it was used meanwhile, or its address belongs to another administrator.
 */
async function used(
  deps: Deps,
  ctx: Context,
  link: Link,
  { name, password }: { name: string; password: string },
): Promise<void> {
  const { role, user_id: userId, email } = link;
  if (userId !== undefined) {
    await setPasswordByLink(deps, { ...link, user_id: userId }, password);
    await deps.endPending(userId);
    return recordAdministrator(deps, ctx, {
      by: { userId, email },
      description: 'new password',
      about: email,
    });
  }
  if (role === undefined) throw linkExpired();
  if (await isTaken(deps, email)) throw linkExpired();
  const made = await acceptLink(deps, link, { name, password, role });
  if (made === undefined) throw linkExpired();
  const by = { userId: made, email };
  recordAdministrator(deps, ctx, {
    by,
    description: 'became an administrator',
    about: email,
    after: { role },
  });
}

async function faultsOf(
  { administrators }: Deps,
  { email, name, userId }: { email: string; name: string; userId?: string | undefined },
  password: string,
  repeat: string,
): Promise<Faults | undefined> {
  if (password !== repeat) return { repeat: 'reset.differ' };
  const refusal = passwordRefusal(DIRECTORY_OPTIONS, password, { email, name });
  if (refusal !== undefined) {
    const { reason } = refusal;
    if (reason === 'common-password') return { password: 'signup.common' };
    return { password: reason === 'personal-password' ? 'signup.personal' : 'signup.weak' };
  }
  const isSame =
    userId !== undefined && (await administrators.verifyPassword(userId, password)) !== undefined;
  return isSame ? { password: 'reset.used' } : undefined;
}

/**
 * Returns the data of a form for a password.
 * @param tried the refused password, against which the rules are marked.
 */
function formOf(faults: Faults = {}, tried?: string): object {
  const { rules } = checkStrength(DIRECTORY_OPTIONS, tried ?? '');
  return {
    faults,
    rules: tried === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
  };
}

/**
 * Returns the link to the account page where second factors are set up, if the tenant has one and offers a factor.
 */
function factorsOf(deps: Deps): { factorsUrl?: string } {
  const { enabled } = deps.config.settings().tenant.account_page;
  if (!enabled || enrollable(deps).length === 0) return {};
  return { factorsUrl: outsideOf(deps, `/account/security?client_id=${CONSOLE_CLIENT}`) };
}
