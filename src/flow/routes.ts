// The hosted login pages: /u/<uid> and what is posted from there. Nothing is decided here.
import type { Context } from 'koa';
import type { PendingInteraction } from '../engine/interaction.ts';
import { formFields } from '../http/body-fields.ts';
import { markBrowser } from '../http/browser.ts';
import { AuthError } from '../http/errors.ts';
import { PAGE, type Route } from '../http/routes.ts';
import type { LoginTickets } from '../protection/login-tickets.ts';
import type { RateLimits } from '../protection/rate-limit.ts';
import type { Connection } from '../records/collections.ts';
import type { Random } from '../runtime/random.ts';
import { databaseFor, findDatabase } from '../tenant/databases.ts';
import { customLoginPage } from '../tenant/pages.ts';
import { FIRST_VERSION } from '../users/login.ts';
import { signUp } from '../users/signup.ts';
import { type CustomPageDependencies, sendCustomPage } from './custom-page.ts';
import { type LoginDependencies, type LoginLimit, logIn, passwordLogin } from './login.ts';
import { accountPage, consentPage, loginPage, signUpPage } from './pages.ts';
import {
  type HostedDependencies,
  openVisit,
  passwordlessChoices,
  passwordlessStep,
  renderPage,
  stepPath,
  tooManyAlert,
  type Visit,
  visitLanguages,
} from './request-page.ts';
import { accepts, nextStep, type Step } from './steps.ts';
import { askToVerify, type VerificationDependencies } from './verification.ts';

export interface LoginRoutesDependencies
  extends LoginDependencies,
    HostedDependencies,
    CustomPageDependencies,
    VerificationDependencies {
  limit: LoginLimit;
  limits: RateLimits;
  tickets: LoginTickets;
  random: Random;
}

/** The routes of the login pages. */
export function loginRoutes(deps: LoginRoutesDependencies): Route[] {
  const posts: Record<Step, (ctx: Context, visit: Visit) => Promise<void>> = {
    login: (ctx, visit) => postLogin(deps, ctx, visit),
    signup: (ctx, visit) => postSignUp(deps, ctx, visit),
    consent: (ctx) => postConsent(deps, ctx),
    account: (ctx) => deps.interactions.keepAccount(ctx),
  };
  const steps = Object.entries(posts) as [Step, (typeof posts)[Step]][];
  return [
    { ...PAGE, methods: ['GET'], path: '/u/:uid', handle: (ctx) => begin(deps, ctx) },
    ...steps.flatMap(([step, post]): Route[] => [
      { ...PAGE, methods: ['GET'], path: `/u/:uid/${step}`, handle: (ctx) => showStep(deps, ctx, step) },
      {
        ...PAGE,
        methods: ['POST'],
        path: `/u/:uid/${step}`,
        handle: async (ctx) => {
          const visit = await openVisit(deps, ctx);
          deps.csrf.verify(ctx);
          const isOpen = accepts(visit.pending, step) && (await hasStep(deps, visit, step));
          await (isOpen ? post(ctx, visit) : show(deps, ctx, visit, nextStep(visit.pending)));
        },
      },
    ]),
  ];
}

async function begin(deps: LoginRoutesDependencies, ctx: Context): Promise<void> {
  const visit = await openVisit(deps, ctx);
  if (await useTicket(deps, ctx, visit)) return;
  if (visit.pending.firstFactor !== undefined) return ctx.redirect(stepPath(visit.pending, 'mfa'));
  await show(deps, ctx, visit, nextStep(visit.pending));
}

async function showStep(deps: LoginRoutesDependencies, ctx: Context, step: Step): Promise<void> {
  const visit = await openVisit(deps, ctx);
  await show(deps, ctx, visit, accepts(visit.pending, step) ? step : nextStep(visit.pending));
}

/**
 * A login that was done before the request, or beside it, ends here. @returns whether there was one, of this browser.
 */
async function useTicket(deps: LoginRoutesDependencies, ctx: Context, { pending }: Visit): Promise<boolean> {
  const { login_ticket: beside } = ctx.query;
  const ticket = typeof beside === 'string' ? beside : pending.loginTicket;
  if (ticket === undefined || nextStep(pending) === 'consent') return false;
  const login = await deps.tickets.redeem(ctx, ticket, pending.clientId);
  if (login === undefined) return false;
  try {
    await deps.interactions.login(ctx, login);
    return true;
  } catch (thrown) {
    // It does not hold any more: the page asks anew.
    if (thrown instanceof AuthError && thrown.error === 'invalid_grant') return false;
    throw thrown;
  }
}

async function show(deps: LoginRoutesDependencies, ctx: Context, visit: Visit, step: Step): Promise<void> {
  const { pending } = visit;
  const user = pending.userId === undefined ? undefined : await deps.users.get(pending.userId);
  if (step === 'consent') return render(deps, ctx, visit, step, await consentPage(visit, deps.config, user));
  if (step === 'account') return render(deps, ctx, visit, step, accountPage(visit, user));
  const connection = await wayIn(deps, pending);
  if (connection === undefined)
    return deps.interactions.refuse(ctx, 'invalid_request', 'no connections enabled for the client');
  const custom = customLoginPage(deps.config.settings(), visit.client);
  if (custom !== undefined) return sendCustomPage(deps, ctx, visit, custom);
  const elsewhere = passwordlessStep(connection);
  if (elsewhere !== undefined) return ctx.redirect(stepPath(pending, elsewhere));
  const hint = pending.params.login_hint ?? '';
  if (step === 'signup')
    return render(deps, ctx, visit, step, signUpPage(visit, connection, { email: hint, username: '' }));
  const choices = await passwordlessChoices(deps.config, visit);
  return render(deps, ctx, visit, step, loginPage(visit, connection, choices, { username: hint }));
}

/**
 * The connection that a request's user logs in with: the one that it names, else one with passwords, else a
 * passwordless one. @returns undefined when the application has none: it is told, instead of showing a dead page.
 */
async function wayIn(
  { config }: LoginRoutesDependencies,
  { clientId, params }: PendingInteraction,
): Promise<Connection | undefined> {
  const { connection: name } = params;
  const passwordless = (await config.connectionsOf(clientId)).filter(
    (connection) => passwordlessStep(connection) !== undefined,
  );
  const named = passwordless.find((connection) => connection.name === name);
  if (named !== undefined) return named;
  const database = await findDatabase(config, clientId, name);
  return database ?? (name === undefined ? passwordless[0] : undefined);
}

/** Whether a step is one of the request's way in: what is posted to a form of passwords is for a database. */
async function hasStep(deps: LoginRoutesDependencies, { pending }: Visit, step: Step): Promise<boolean> {
  if (step !== 'login' && step !== 'signup') return true;
  const way = await wayIn(deps, pending);
  return way !== undefined && passwordlessStep(way) === undefined;
}

function render(
  deps: LoginRoutesDependencies,
  ctx: Context,
  visit: Visit,
  step: Step,
  model: object,
  status = 200,
) {
  return renderPage(deps, ctx, visit, `login/${step}`, model, status);
}

function connectionOf(
  { config }: LoginRoutesDependencies,
  { clientId, params }: PendingInteraction,
): Promise<Connection> {
  return databaseFor(config, clientId, params.connection);
}

async function postLogin(deps: LoginRoutesDependencies, ctx: Context, visit: Visit): Promise<void> {
  const { pending } = visit;
  const { username, password } = formFields(ctx, 'username', 'password');
  const connection = await connectionOf(deps, pending);
  const choices = await passwordlessChoices(deps.config, visit);
  const again = (alert: string, status: number) =>
    render(deps, ctx, visit, 'login', loginPage(visit, connection, choices, { username, alert }), status);
  if (username === '' || password === '') return again('login.missing', 400);
  try {
    await deps.limit(ctx, connection, username);
    const login = await logIn(deps, {
      clientId: pending.clientId,
      connection,
      identifier: username,
      password,
      ip: ctx.ip,
      browser: markBrowser(ctx, deps.random).browser,
    });
    await deps.interactions.login(ctx, login);
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? (tooManyAlert(thrown) ?? ALERTS[thrown.error]) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await again(alert, thrown.status === 403 ? 400 : thrown.status);
  }
}

/** Failures that the person at the page can do something about. */
const ALERTS: Record<string, string> = {
  invalid_grant: 'login.wrong',
  temporarily_unavailable: 'login.busy',
};

async function postSignUp(deps: LoginRoutesDependencies, ctx: Context, visit: Visit): Promise<void> {
  const { clientId } = visit.pending;
  const { email, username, password } = formFields(ctx, 'email', 'username', 'password');
  const connection = await connectionOf(deps, visit.pending);
  const shown = { email, username };
  try {
    await deps.limits.takeFrom(ctx, 'signup');
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (alert === undefined) throw thrown;
    return render(deps, ctx, visit, 'signup', { ...signUpPage(visit, connection, shown), alert }, 429);
  }
  const result = await signUp(deps.users, {
    connection,
    email,
    password,
    username: username === '' ? undefined : username,
  });
  const seen = { client_id: clientId, connection: connection.name, user_name: email, ip: ctx.ip };
  if (!('user' in result)) {
    deps.events.record({ ...seen, type: 'fs', description: result.reason });
    const page = signUpPage(visit, connection, shown, { refusal: result, password });
    return render(deps, ctx, visit, 'signup', page, 400);
  }
  deps.events.record({ ...seen, type: 'ss', user_id: result.user.id });
  const languages = visitLanguages(ctx, visit);
  await askToVerify(deps, { user: result.user, connection, client: visit.client, languages, ip: ctx.ip });
  await deps.interactions.login(ctx, passwordLogin(result.user, connection, FIRST_VERSION));
}

async function postConsent({ interactions }: LoginRoutesDependencies, ctx: Context): Promise<void> {
  if (formFields(ctx, 'decision').decision === 'accept') return interactions.consent(ctx);
  return interactions.refuse(ctx, 'access_denied', 'User did not authorize the request');
}
