// The pages where administrators set a password: with a link, or for themselves when logged in.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { linkExpired } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Frozen } from '../../../records/base/record.ts';
import { type AdministratorLink, CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import { checkStrength } from '../../../users/password-policy.ts';
import { passwordRefusal } from '../../../users/signup.ts';
import type { ShownRule } from '../../connections/database/base/database-pages.ts';
import { enrollable } from '../../factors/policy.ts';
import { addressOutsideConsole, CONSOLE, loginFormOptions } from '../console-callbacks.ts';
import { consoleLimits } from '../console-declaration.ts';
import { consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import { DIRECTORY_OPTIONS } from '../directory.ts';
import { PROGRAMS } from '../programs/approved-programs.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { isEmailTaken } from './console-administrator-members.ts';
import type { AdministratorsDependencies } from './console-administrators-routes.ts';
import { recordAdministrator } from './events.ts';
import { acceptLink, endPasswordLinks, LINK_PATH, linkOf, setPasswordByLink } from './links.ts';

export interface PasswordDependencies extends AdministratorsDependencies {
  /** CSRF protection of pages that nobody is logged in to. */
  csrf: Csrf;
  /** Ends pending enrolments and approvals, and forgets remembered browsers. */
  endPending(userId: string): Promise<void>;
}

type Deps = PasswordDependencies;
type Link = Frozen<AdministratorLink>;

const ROUTE = { ...PAGE, limit: consoleLimits.console } as const;
const PASSWORD = `${CONSOLE}/password`;
const MAX_NAME_LENGTH = 200;

/** What a form for a password reads. */
interface PasswordForm {
  faults: Faults;
  rules: ShownRule[];
}

interface AdministratorsPasswordModel extends PasswordForm {
  /** Where second factors are set up. */
  factorsUrl?: string;
  programsPath: string;
}

export const ADMINISTRATORS_PASSWORD_PAGE = declareConsolePage<AdministratorsPasswordModel>(
  'console/administrators-password',
);

/** The routes. Opening a link only shows the form; sending the form uses the link up. */
export const passwordRoutes: RouteDeclarations<PasswordDependencies> = {
  [`GET ${LINK_PATH}` as const]: { ...ROUTE, handle: (deps, ctx) => openLink(deps, ctx) },
  [`POST ${LINK_PATH}` as const]: { ...ROUTE, handle: useLink },
  [`GET ${PASSWORD}` as const]: consolePage('password', { scopes: [] }, (deps, ctx, session) =>
    renderConsole(deps, ctx, session, {
      page: ADMINISTRATORS_PASSWORD_PAGE,
      title: 't:console.password.title',
      model: { ...formOf(), ...factorsOf(deps, session), programsPath: PROGRAMS },
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
          page: ADMINISTRATORS_PASSWORD_PAGE,
          title: 't:console.password.title',
          alert: 't:reset.failed',
          alertFaults: faults,
          status: 400,
          model: { ...formOf(faults, password), ...factorsOf(deps, session), programsPath: PROGRAMS },
        });
      }
      await deps.administrators.setPassword(userId, password, { also: [endPasswordLinks(userId)] });
      await deps.endPending(userId);
      recordAdministrator(deps, ctx, {
        actor: session.administrator,
        description: 'new password',
        email,
      });
      // The session ends together with the old password, so this leads to the login.
      redirectAfterForm(ctx, CONSOLE);
    },
  ),
};

type Faults = Partial<Record<'password' | 'repeat' | 'name', string>>;

async function openLink(deps: Deps, ctx: Context): Promise<void> {
  const { ticket } = ctx.query;
  await showLink(deps, ctx, typeof ticket === 'string' ? ticket : '');
}

interface AdministratorsLinkModel extends PasswordForm {
  action: string;
  csrf: string;
  ticket: string;
  email: string;
  role: 'editor' | 'owner' | 'support' | 'viewer' | undefined;
  name: string;
  alert?: string;
}

export const ADMINISTRATORS_LINK_PAGE = declarePage<AdministratorsLinkModel>('console/administrators-link');

async function showLink(
  deps: Deps,
  ctx: Context,
  ticket: string,
  { faults, refusedPassword, name = '' }: { faults?: Faults; refusedPassword?: string; name?: string } = {},
): Promise<void> {
  const link = await linkOf(deps, ticket);
  if (link === undefined) throw linkExpired();
  await deps.views.page(
    ctx,
    ADMINISTRATORS_LINK_PAGE,
    {
      ...formOf(faults, refusedPassword),
      action: LINK_PATH,
      csrf: deps.csrf.token(ctx),
      ticket,
      email: link.email,
      role: link.role,
      name,
      ...(faults !== undefined && { alert: 'reset.failed' }),
    },
    { status: faults === undefined ? 200 : 400, ...loginFormOptions(deps) },
  );
}

async function useLink(deps: Deps, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const {
    ticket,
    name: enteredName,
    password,
    repeat,
  } = formFields(ctx, 'ticket', 'name', 'password', 'repeat');
  const name = enteredName.trim().slice(0, MAX_NAME_LENGTH);
  const link = await linkOf(deps, ticket);
  if (link === undefined) throw linkExpired();
  const account = { email: link.email, name, userId: link.user_id };
  const faults = await faultsOf(deps, account, password, repeat);
  const nameFault = link.role !== undefined && name === '' ? { name: 'console.link.nameless' } : undefined;
  if (faults !== undefined || nameFault !== undefined)
    return showLink(deps, ctx, ticket, {
      faults: { ...faults, ...nameFault },
      refusedPassword: password,
      name,
    });
  await redeemLink(deps, ctx, link, { name, password });
  redirectAfterForm(ctx, CONSOLE);
}

/** @throws AuthError 400 when it was used meanwhile, or its address belongs to another administrator. */
async function redeemLink(
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
      actor: { userId, email },
      description: 'new password',
      email,
    });
  }
  if (role === undefined) throw linkExpired();
  if (await isEmailTaken(deps, email)) throw linkExpired();
  const createdId = await acceptLink(deps, link, { name, password, role });
  if (createdId === undefined) throw linkExpired();
  const actor = { userId: createdId, email };
  recordAdministrator(deps, ctx, {
    actor,
    description: 'became an administrator',
    email,
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

/** @param refusedPassword the refused password, against which the rules are marked. */
function formOf(faults: Faults = {}, refusedPassword?: string): PasswordForm {
  const { rules } = checkStrength(DIRECTORY_OPTIONS, refusedPassword ?? '');
  return {
    faults,
    rules: refusedPassword === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
  };
}

/**
 * Returns the link to the account page where second factors are set up, if the tenant has one and offers a factor.
 */
function factorsOf(deps: Deps, { administrator }: ConsoleSession): { factorsUrl?: string } {
  const { enabled } = deps.config.settings().tenant.account_page;
  if (!enabled || enrollable(deps, { id: administrator.userId }).length === 0) return {};
  return { factorsUrl: addressOutsideConsole(deps, `/account/security?client_id=${CONSOLE_CLIENT}`) };
}
