// The hosted login pages: /u/<uid> and what is posted from there. Nothing is decided here.
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { type Interactions, type PendingInteraction, requestExpired } from '../engine/interaction.ts';
import type { Csrf } from '../http/csrf.ts';
import { AuthError } from '../http/errors.ts';
import type { Views } from '../http/views.ts';
import type { Connection } from '../tenant/directory.ts';
import { signUp } from '../users/signup.ts';
import { databaseFor, type LoginDependencies, type LoginLimit, logIn } from './login.ts';
import { accountPage, consentPage, loginPage, signUpPage, type Visit } from './pages.ts';
import { accepts, nextStep, type Step } from './steps.ts';

export interface LoginRoutesDependencies extends LoginDependencies {
  interactions: Interactions;
  views: Views;
  csrf: Csrf;
  limit: LoginLimit;
}

/** The routes of the login pages. */
export function loginRoutes(deps: LoginRoutesDependencies): Middleware {
  const router = new Router();
  const visit = (ctx: Context) => open(deps, ctx);
  router.get('/u/:uid', async (ctx) => {
    const opened = await visit(ctx);
    await show(deps, ctx, opened, nextStep(opened.pending));
  });
  router.get('/u/:uid/:step', async (ctx) => {
    const opened = await visit(ctx);
    const step = ctx.params.step as Step;
    await show(deps, ctx, opened, accepts(opened.pending, step) ? step : nextStep(opened.pending));
  });
  const posts: Record<Step, (ctx: Context, opened: Visit) => Promise<void>> = {
    login: (ctx, opened) => postLogin(deps, ctx, opened),
    signup: (ctx, opened) => postSignUp(deps, ctx, opened),
    consent: (ctx) => postConsent(deps, ctx),
    account: (ctx) => deps.interactions.keepAccount(ctx),
  };
  for (const step of Object.keys(posts) as Step[]) {
    router.post(`/u/:uid/${step}`, async (ctx) => {
      const opened = await visit(ctx);
      deps.csrf.verify(ctx);
      if (!accepts(opened.pending, step)) return show(deps, ctx, opened, nextStep(opened.pending));
      await posts[step](ctx, opened);
    });
  }
  return router.routes() as Middleware;
}

/** @throws AuthError 400 when this browser has no such request waiting. */
async function open(deps: LoginRoutesDependencies, ctx: Context): Promise<Visit> {
  const pending = await deps.interactions.pending(ctx);
  const client = await deps.directory.client(pending.clientId);
  if (client === undefined || pending.uid !== ctx.params.uid) {
    throw requestExpired();
  }
  return { pending, client, csrf: deps.csrf.token(ctx) };
}

async function show(deps: LoginRoutesDependencies, ctx: Context, visit: Visit, step: Step): Promise<void> {
  const { pending } = visit;
  const user = pending.userId === undefined ? undefined : await deps.users.get(pending.userId);
  if (step === 'consent')
    return render(deps, ctx, visit, step, await consentPage(visit, deps.directory, user));
  if (step === 'account') return render(deps, ctx, visit, step, accountPage(visit, user));
  const connection = await connectionOf(deps, pending);
  const hint = pending.params.login_hint ?? '';
  if (step === 'signup')
    return render(deps, ctx, visit, step, signUpPage(visit, connection, { email: hint, username: '' }));
  return render(deps, ctx, visit, step, loginPage(visit, connection, { username: hint }));
}

function render(
  deps: LoginRoutesDependencies,
  ctx: Context,
  visit: Visit,
  step: Step,
  model: object,
  status = 200,
) {
  const { ui_locales: uiLocales, redirect_uri: formAction } = visit.pending.params;
  return deps.views.page(ctx, `login/${step}`, model, { status, uiLocales, formAction });
}

function connectionOf(
  { directory }: LoginRoutesDependencies,
  { clientId, params }: PendingInteraction,
): Promise<Connection> {
  return databaseFor(directory, clientId, params.connection);
}

async function postLogin(deps: LoginRoutesDependencies, ctx: Context, visit: Visit): Promise<void> {
  const { pending } = visit;
  const { username, password } = fields(ctx);
  const connection = await connectionOf(deps, pending);
  const again = (alert: string, status: number) =>
    render(deps, ctx, visit, 'login', loginPage(visit, connection, { username, alert }), status);
  if (username === '' || password === '') return again('login.missing', 400);
  try {
    await deps.limit(ctx, connection, username);
    const user = await logIn(deps, {
      clientId: pending.clientId,
      connection,
      identifier: username,
      password,
      ip: ctx.ip,
    });
    await deps.interactions.login(ctx, { userId: user.id });
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? ALERTS[thrown.error] : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await again(alert, thrown.status === 403 ? 400 : thrown.status);
  }
}

/** Failures that the person at the page can do something about. */
const ALERTS: Record<string, string> = {
  invalid_grant: 'login.wrong',
  too_many_requests: 'login.locked',
  temporarily_unavailable: 'login.busy',
};

async function postSignUp(deps: LoginRoutesDependencies, ctx: Context, visit: Visit): Promise<void> {
  const { clientId } = visit.pending;
  const { email, username, password } = fields(ctx);
  const connection = await connectionOf(deps, visit.pending);
  const result = await signUp(deps.users, {
    connection,
    email,
    password,
    username: username === '' ? undefined : username,
  });
  const seen = { client_id: clientId, connection: connection.name, user_name: email, ip: ctx.ip };
  if (!('user' in result)) {
    deps.events.record({ ...seen, type: 'fs', description: result.reason });
    const page = signUpPage(visit, connection, { email, username }, { refusal: result, password });
    return render(deps, ctx, visit, 'signup', page, 400);
  }
  deps.events.record({ ...seen, type: 'ss', user_id: result.user.id });
  deps.events.record({ ...seen, type: 's', user_id: result.user.id });
  await deps.interactions.login(ctx, { userId: result.user.id });
}

async function postConsent({ interactions }: LoginRoutesDependencies, ctx: Context): Promise<void> {
  if (fields(ctx).decision === 'accept') return interactions.consent(ctx);
  return interactions.refuse(ctx, 'access_denied', 'User did not authorize the request');
}

type Fields = Record<'username' | 'email' | 'password' | 'decision', string>;

function fields(ctx: Context): Fields {
  const { body } = ctx.request as { body?: Record<string, unknown> };
  const text = (name: string) => (typeof body?.[name] === 'string' ? (body[name] as string) : '');
  return {
    username: text('username'),
    email: text('email'),
    password: text('password'),
    decision: text('decision'),
  };
}
