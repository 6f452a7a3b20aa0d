// The pages of a waiting request: /u/<uid> shows its next step. Connections and factors have their own pages below
// this path.
import type { Context } from 'koa';
import type { LoginTickets } from '../../capabilities/protection/login-tickets.ts';
import type { Organizations } from '../../engine/organizations.ts';
import { requestExpired } from '../../engine/pending-interaction.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import { customLoginPage } from '../../tenant/pages.ts';
import type { Users } from '../../users/users.ts';
import { type ActionRedirectDependencies, redirectForAction } from './action-redirects.ts';
import { type CustomPageDependencies, sendCustomPage } from './custom-page.ts';
import { ACCOUNT_LINK_STEP, FACTOR_STEP, OFFER_STEP } from './finish.ts';
import { mayKeepAccount, nextStep, waitsForLogin } from './next.ts';
import { acceptChoice, acceptName, showChoice, showName } from './organization.ts';
import { accountPage, consentPage } from './pages.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  renderPage,
  stepPath,
} from './request-page.ts';

/** Shows the page of a login. @param form the form to show, when its own path was opened. */
type ShowLogin = (ctx: Context, form?: string) => Promise<void>;

/**
 * Returns how the user of a request logs in, as its connections decide.
 * @returns undefined when the application has no connection for the request.
 */
export type LoginPageOf = (page: RequestPage) => Promise<LoginPage | undefined>;

interface LoginPage {
  show: ShowLogin;
  /** Whether the user logs in at another provider and is redirected there without a page. */
  redirectsToProvider: boolean;
}

export interface FlowDependencies
  extends HostedDependencies,
    CustomPageDependencies,
    ActionRedirectDependencies {
  users: Users;
  tickets: LoginTickets;
  organizations: Pick<Organizations, 'choices'>;
  loginPageOf: LoginPageOf;
}

/** Shows a request's next step. @param form the login form to show, when its own path was opened. */
export type ShowNext = (ctx: Context, page: RequestPage, form?: string) => Promise<void>;

/** Makes {@link ShowNext}, which the features' pages use too. */
export function createShowNext(deps: FlowDependencies): ShowNext {
  return (ctx, page, form) => show(deps, ctx, page, form);
}

type Handle = (deps: FlowDependencies, ctx: Context, page: RequestPage) => Promise<void>;

/** Makes a handler that loads the request and verifies the CSRF token of a POST before it builds a page. */
const withRequestPage = (handle: Handle) => ({
  ...PAGE,
  handle: async (deps: FlowDependencies, ctx: Context): Promise<void> => {
    const page = await openRequestPage(deps, ctx);
    if (ctx.method === 'POST') deps.csrf.verify(ctx);
    await handle(deps, ctx, page);
  },
});

/** The routes of a waiting request. */
export const requestRoutes: RouteDeclarations<FlowDependencies> = {
  'GET /u/:uid': withRequestPage(async (deps, ctx, page) => {
    if (!(await useTicket(deps, ctx, page))) await show(deps, ctx, page);
  }),
  'GET /u/:uid/consent': withRequestPage((deps, ctx, page) => show(deps, ctx, page)),
  'GET /u/:uid/account': withRequestPage((deps, ctx, page) =>
    mayKeepAccount(page.pending) ? showAccount(deps, ctx, page) : show(deps, ctx, page),
  ),
  'GET /u/:uid/organization': withRequestPage((deps, ctx, page) => show(deps, ctx, page)),
  'POST /u/:uid/organization': withRequestPage((deps, ctx, page) => {
    const step = nextStep(page.pending);
    if (step === 'organization_name') return acceptName(deps, ctx, page);
    return step === 'organization' ? acceptChoice(deps, ctx, page) : show(deps, ctx, page);
  }),
  'POST /u/:uid/consent': withRequestPage((deps, ctx, page) =>
    nextStep(page.pending) === 'consent' ? decideConsent(deps, ctx) : show(deps, ctx, page),
  ),
  'POST /u/:uid/account': withRequestPage((deps, ctx, page) =>
    mayKeepAccount(page.pending) ? deps.interactions.answer(ctx, 'account') : show(deps, ctx, page),
  ),
};

/**
 * Completes the request with its login ticket or transferred login.
 * @returns whether there was a valid one for this browser.
 */
async function useTicket(deps: FlowDependencies, ctx: Context, { pending }: RequestPage): Promise<boolean> {
  const { login_ticket: queryTicket } = ctx.query;
  const ticket = typeof queryTicket === 'string' ? queryTicket : pending.loginTicket;
  if (!waitsForLogin(pending)) return false;
  const login =
    pending.transferredLogin ?? (ticket && (await deps.tickets.redeem(ctx, ticket, pending.clientId)));
  if (!login) return false;
  try {
    await deps.finish.login(ctx, pending, login);
    return true;
  } catch (thrown) {
    // No longer valid: the page asks again.
    if (thrown instanceof AuthError && thrown.error === 'invalid_grant') return false;
    throw thrown;
  }
}

async function show(deps: FlowDependencies, ctx: Context, page: RequestPage, form?: string): Promise<void> {
  const { pending } = page;
  // Opening a login form starts the login over.
  const step = form !== undefined && waitsForLogin(pending) ? 'login' : nextStep(pending);
  switch (step) {
    case 'consent':
      return renderPage(
        deps,
        ctx,
        page,
        'login/consent',
        await consentPage(page, deps, await userOf(deps, page)),
      );
    case 'redirect':
      return redirectForAction(deps, ctx, page);
    case 'primary':
      if (pending.primary === undefined) throw requestExpired();
      return deps.finish.login(ctx, pending, pending.primary);
    case 'factor':
      return ctx.redirect(stepPath(pending, FACTOR_STEP));
    case 'link':
      return ctx.redirect(stepPath(pending, ACCOUNT_LINK_STEP));
    case 'offer':
      return ctx.redirect(stepPath(pending, OFFER_STEP));
    case 'account':
      return showAccount(deps, ctx, page);
    case 'organization_name':
      return showName(deps, ctx, page);
    case 'organization':
      return showChoice(deps, ctx, page);
    case 'login':
      return showLogin(deps, ctx, page, form);
  }
}

async function showAccount(deps: FlowDependencies, ctx: Context, page: RequestPage): Promise<void> {
  await renderPage(deps, ctx, page, 'login/account', accountPage(page, await userOf(deps, page)));
}

async function showLogin(
  deps: FlowDependencies,
  ctx: Context,
  page: RequestPage,
  form?: string,
): Promise<void> {
  const login = await deps.loginPageOf(page);
  // The application gets an error, because the page would have no form.
  if (login === undefined)
    return deps.interactions.answer(ctx, {
      error: 'invalid_request',
      description: 'no connections enabled for the client',
    });
  const custom = login.redirectsToProvider ? undefined : customLoginPage(deps.config.settings(), page.client);
  await (custom === undefined ? login.show(ctx, form) : sendCustomPage(deps, ctx, page, custom));
}

async function userOf({ users }: FlowDependencies, { pending: { userId } }: RequestPage) {
  return userId === undefined ? undefined : users.get(userId);
}

async function decideConsent({ interactions }: FlowDependencies, ctx: Context): Promise<void> {
  const isAllowed = formFields(ctx, 'decision').decision === 'accept';
  const refusal = { error: 'access_denied', description: 'User did not authorize the request' };
  await interactions.answer(ctx, isAllowed ? 'consent' : refusal);
}
