// The pages of a waiting request: /u/<uid> shows its next step. Connections and factors have their own pages below
// this path.

import type { Context } from 'koa';
import { declarePage, shownClient } from '../../capabilities/pages/views.ts';
import type { LoginTickets } from '../../capabilities/protection/login-tickets.ts';
import type { Organizations } from '../../engine/admission/admission.ts';
import { waitingState } from '../../engine/authorize/restarted-request.ts';
import { requestExpired } from '../../engine/authorize/waiting-requests.ts';
import { toAudience } from '../../engine/base/request-extensions.ts';
import { AuthError } from '../../http/errors.ts';
import { customPagePolicy } from '../../http/server/application.ts';
import { formFields } from '../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import { domainOf } from '../../records/base/email.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { CONFIG_PLACEHOLDER, customLoginPage } from '../../tenant/pages.ts';
import type { Users } from '../../users/users.ts';
import { type ActionRedirectDependencies, redirectForAction } from './action-redirects.ts';
import {
  ACCOUNT_LINK_STEP,
  FACTOR_STEP,
  mayKeepAccount,
  nextStep,
  OFFER_STEP,
  waitsForLogin,
} from './finish.ts';
import { accountPage, consentPage, LOGIN_ACCOUNT_PAGE, LOGIN_CONSENT_PAGE } from './flow-pages.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  stepPath,
} from './request-page.ts';
import { settingsBase, tenantName } from './widget.ts';

/** @param form the form to show, when its own path was opened. */
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

/** @param form the login form to show, when its own path was opened. */
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

export const requestRoutes: RouteDeclarations<FlowDependencies> = {
  'GET /u/:uid': withRequestPage(async (deps, ctx, page) => {
    if (!(await useTicket(deps, ctx, page))) await show(deps, ctx, page);
  }),
  'GET /u/:uid/consent': withRequestPage((deps, ctx, page) => show(deps, ctx, page)),
  'GET /u/:uid/account': withRequestPage((deps, ctx, page) =>
    mayKeepAccount(page.waiting) ? showAccount(deps, ctx, page) : show(deps, ctx, page),
  ),
  'GET /u/:uid/organization': withRequestPage((deps, ctx, page) => show(deps, ctx, page)),
  'POST /u/:uid/organization': withRequestPage((deps, ctx, page) => {
    const step = nextStep(page.waiting);
    if (step === 'organization_name') return acceptName(deps, ctx, page);
    return step === 'organization' ? acceptChoice(deps, ctx, page) : show(deps, ctx, page);
  }),
  'POST /u/:uid/consent': withRequestPage((deps, ctx, page) =>
    nextStep(page.waiting) === 'consent' ? decideConsent(deps, ctx) : show(deps, ctx, page),
  ),
  'POST /u/:uid/account': withRequestPage((deps, ctx, page) =>
    mayKeepAccount(page.waiting) ? deps.waitingRequests.answer(ctx, 'account') : show(deps, ctx, page),
  ),
};

/**
 * Completes the request with its login ticket or transferred login.
 * @returns whether there was a valid one for this browser.
 */
async function useTicket(deps: FlowDependencies, ctx: Context, { waiting }: RequestPage): Promise<boolean> {
  const { login_ticket: queryTicket } = ctx.query;
  const ticket = typeof queryTicket === 'string' ? queryTicket : waiting.loginTicket;
  if (!waitsForLogin(waiting)) return false;
  const login =
    waiting.transferredLogin ?? (ticket && (await deps.tickets.redeem(ctx, ticket, waiting.clientId)));
  if (!login) return false;
  try {
    await deps.finish.login(ctx, waiting, login);
    return true;
  } catch (thrown) {
    // No longer valid: the page asks again.
    if (thrown instanceof AuthError && thrown.error === 'invalid_grant') return false;
    throw thrown;
  }
}

async function show(deps: FlowDependencies, ctx: Context, page: RequestPage, form?: string): Promise<void> {
  const { waiting } = page;
  // Opening a login form starts the login over.
  const step = form !== undefined && waitsForLogin(waiting) ? 'login' : nextStep(waiting);
  switch (step) {
    case 'consent':
      return renderPage(
        deps,
        ctx,
        page,
        LOGIN_CONSENT_PAGE,
        await consentPage(page, deps, await userOf(deps, page)),
      );
    case 'redirect':
      return redirectForAction(deps, ctx, page);
    case 'primary':
      if (waiting.primary === undefined) throw requestExpired();
      return deps.finish.resume(ctx, waiting, waiting.primary);
    case 'factor':
      return ctx.redirect(stepPath(waiting, FACTOR_STEP));
    case 'link':
      return ctx.redirect(stepPath(waiting, ACCOUNT_LINK_STEP));
    case 'offer':
      return ctx.redirect(stepPath(waiting, OFFER_STEP));
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
  await renderPage(deps, ctx, page, LOGIN_ACCOUNT_PAGE, accountPage(page, await userOf(deps, page)));
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
    return deps.waitingRequests.answer(ctx, {
      error: 'invalid_request',
      description: 'no connections enabled for the client',
    });
  const custom = login.redirectsToProvider ? undefined : customLoginPage(deps.config.settings(), page.client);
  await (custom === undefined ? login.show(ctx, form) : sendCustomPage(deps, ctx, page, custom));
}

async function userOf({ users }: FlowDependencies, { waiting: { userId } }: RequestPage) {
  return userId === undefined ? undefined : users.get(userId);
}

async function decideConsent({ waitingRequests }: FlowDependencies, ctx: Context): Promise<void> {
  const isAllowed = formFields(ctx, 'decision').decision === 'accept';
  const refusal = { error: 'access_denied', description: 'User did not authorize the request' };
  await waitingRequests.answer(ctx, isAllowed ? 'consent' : refusal);
}

// The pages that ask for an organization, when the application requires one and its request names none: the user
// types its name or an e-mail address before the login, or chooses one of their own after it.

interface OrganizationDependencies extends HostedDependencies {
  organizations: Pick<Organizations, 'choices'>;
}

type Show = (deps: OrganizationDependencies, ctx: Context, page: RequestPage) => Promise<void>;

/**
 * Asks for the name, or for an e-mail address with the domain of an organization, as the application's settings
 * say.
 */
const showName: Show = (deps, ctx, page) =>
  renderNamePage(
    deps,
    ctx,
    page,
    methodsOf(page).includes('email') ? (page.waiting.params.login_hint ?? '') : '',
  );

function methodsOf({ client }: RequestPage) {
  return client.organization_discovery_methods ?? ['organization_name'];
}

interface LoginOrganizationNameModel extends PageModel {
  name: string;
  takesName: boolean;
  takesEmail: boolean;
}

export const LOGIN_ORGANIZATION_NAME_PAGE =
  declarePage<LoginOrganizationNameModel>('login/organization-name');

function renderNamePage(
  deps: OrganizationDependencies,
  ctx: Context,
  page: RequestPage,
  name: string,
  alert?: string,
): Promise<void> {
  const methods = methodsOf(page);
  const model = {
    ...pageModel(page, 'organization'),
    name,
    takesName: methods.includes('organization_name'),
    takesEmail: methods.includes('email'),
    ...(alert === undefined ? {} : { alert }),
  };
  return renderPage(deps, ctx, page, LOGIN_ORGANIZATION_NAME_PAGE, model, alert === undefined ? 200 : 400);
}

/** The longest e-mail address (RFC 5321 §4.5.3.1); names of organizations are shorter. */
const MAX_NAME_LENGTH = 254;

// docs/understand/decisions/organizations.md#an-organization-can-be-found-by-an-e-mail-address
/**
 * Accepts the typed name or e-mail address. Membership is checked only after the login, and an e-mail address is
 * matched by its domain, so the page does not reveal which accounts exist.
 */
const acceptName: Show = async (deps, ctx, page) => {
  const typed = formFields(ctx, 'organization').organization.trim().slice(0, MAX_NAME_LENGTH);
  const methods = methodsOf(page);
  const domain = methods.includes('email') ? domainOf(typed) : undefined;
  if (domain !== undefined) {
    const found = await deps.config.organizationOfDomain(domain);
    return found === undefined
      ? renderNamePage(deps, ctx, page, typed, 'organization.unknownEmail')
      : deps.waitingRequests.answer(ctx, { organization: found.id, login_hint: typed });
  }
  const found = methods.includes('organization_name') ? await deps.config.organization(typed) : undefined;
  if (found === undefined || found.name.toLowerCase() !== typed.toLowerCase()) {
    const alert = methods.includes('organization_name') ? 'unknown' : 'unknownEmail';
    return renderNamePage(deps, ctx, page, typed, `organization.${alert}`);
  }
  await deps.waitingRequests.answer(ctx, { organization: found.id });
};

async function choicesOf(
  { organizations }: OrganizationDependencies,
  { waiting: { userId, connection } }: RequestPage,
) {
  return userId === undefined ? [] : organizations.choices(userId, connection ?? '');
}

interface LoginOrganizationModel extends PageModel {
  organizations: { id: string; name: string }[];
}

export const LOGIN_ORGANIZATION_PAGE = declarePage<LoginOrganizationModel>('login/organization');

/** Lets the user choose. With a single organization the request continues at once. */
const showChoice: Show = async (deps, ctx, page) => {
  const choices = await choicesOf(deps, page);
  const [first] = choices;
  if (first === undefined) {
    return deps.waitingRequests.answer(ctx, {
      error: 'access_denied',
      description: 'client requires organization membership, but user does not belong to any organization',
    });
  }
  if (choices.length === 1) return deps.waitingRequests.answer(ctx, { organization: first.id });
  const organizations = choices.map(({ id, name, display_name }) => ({ id, name: display_name ?? name }));
  await renderPage(deps, ctx, page, LOGIN_ORGANIZATION_PAGE, {
    ...pageModel(page, 'organization'),
    organizations,
  });
};

/** Accepts the choice, if it is one of the user's organizations. */
const acceptChoice: Show = async (deps, ctx, page) => {
  const { organization } = formFields(ctx, 'organization');
  const isOwn = (await choicesOf(deps, page)).some(({ id }) => id === organization);
  return isOwn ? deps.waitingRequests.answer(ctx, { organization }) : showChoice(deps, ctx, page);
};

// Customized login pages (docs/reference/wire/legacy-pages.md), whose script calls /usernamepassword/login and the
// like. They run in our origin, so a content security policy limits them to the origins that the page names.

interface CustomPageDependencies {
  baseUrl: string;
  config: Config;
  random: Random;
}

/** @param html as the operator wrote it. */
function sendCustomPage(deps: CustomPageDependencies, ctx: Context, page: RequestPage, html: string): void {
  const nonce = deps.random(16).toString('hex');
  const { vendor_host: vendor } = deps.config.settings();
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set(
    'Content-Security-Policy',
    customPagePolicy({
      nonce,
      sources: [`https://cdn.${vendor}`, ...namedOrigins(html)],
    }),
  );
  ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none');
  ctx.set('Referrer-Policy', 'same-origin');
  ctx.body = withNonce(html, nonce).replaceAll(CONFIG_PLACEHOLDER, encode(configOf(deps, page)));
}

/** Encodes JSON as base64, which needs no escaping in HTML or in a script's string. */
function encode(config: object): string {
  return Buffer.from(JSON.stringify(config), 'utf8').toString('base64');
}

/** Adds the nonce to each script element; unquoted, so as not to break a script that writes one. */
function withNonce(html: string, nonce: string): string {
  return html.replace(/<script(?=[\s/>])/gi, (tag) => `${tag} nonce=${nonce}`);
}

const MAX_ORIGINS = 30;

function namedOrigins(html: string): string[] {
  const origins = [
    ...html.matchAll(/(?:https:)?\/\/((?:[a-z0-9-]+\.)+[a-z0-9-]+(?::\d{1,5})?)(?=[/"'\s?#)<]|$)/gi),
  ];
  return [...new Set(origins.map(([, host = '']) => `https://${host.toLowerCase()}`))].slice(0, MAX_ORIGINS);
}

/** Parameters of the request that the page's SDK continues with. */
const PARAMETERS = [
  'response_type',
  'response_mode',
  'scope',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'prompt',
  'max_age',
  'acr_values',
  'login_hint',
  'screen_hint',
  'ui_locales',
  'display',
  'organization',
  'connection_scope',
] as const;

/** Returns the value of `@@config@@`, with the member names of the hosted service. */
function configOf({ baseUrl, config }: CustomPageDependencies, page: RequestPage): object {
  const { waiting, client, csrf } = page;
  const { params } = waiting;
  const { branding, vendor_host: vendor } = config.settings();
  const options = {
    protocol: 'oauth2',
    ...Object.fromEntries(
      PARAMETERS.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])),
    ),
    ...(params.resource !== undefined && { audience: toAudience(params.resource) }),
    // Names the waiting request; the page never sees the application's own state.
    // docs/understand/decisions/login-pages.md#the-state-of-a-customized-page-identifies-the-waiting-request
    state: waitingState(waiting.uid),
    _csrf: csrf,
    _intstate: 'deprecated',
  };
  const shown = shownClient(client);
  return {
    icon: shown.logo ?? branding.logo_url ?? '',
    assetsUrl: '',
    auth0Domain: new URL(baseUrl).host,
    auth0Tenant: tenantName(baseUrl),
    clientConfigurationBaseUrl: settingsBase(baseUrl, params.organization),
    callbackOnLocationHash: params.response_type?.split(' ').some((type) => type !== 'code') === true,
    callbackURL: params.redirect_uri,
    cdn: `https://cdn.${vendor}/`,
    clientID: client.client_id,
    connection: params.connection ?? null,
    prompt: params.prompt,
    dict: { signin: { title: shown.name } },
    extraParams: { ...waiting.upstream, ...options },
    internalOptions: options,
    isThirdPartyClient: !client.is_first_party,
    authorizationServer: { url: baseUrl, issuer: `${baseUrl}/` },
    colors: branding.colors,
  };
}
