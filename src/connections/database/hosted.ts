// The routes of the password forms: /u/<uid>/login and /u/<uid>/signup.
import type { Context } from 'koa';
import { askerOf } from '../../engine/action-event.ts';
import { transactionOf } from '../../engine/login-event.ts';
import { waitsForLogin } from '../../flow/next.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import type { ShowNext } from '../../flow/routes.ts';
import { formFields } from '../../http/body-fields.ts';
import { markBrowser } from '../../http/browser.ts';
import { AuthError } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import type { Connection } from '../../records/collections.ts';
import { scopeValues } from '../../records/scope.ts';
import type { Random } from '../../runtime/random.ts';
import type { Config } from '../../tenant/config.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { RegistrationRefused } from '../../users/registration.ts';
import { signUp } from '../../users/signup.ts';
import { type OfferDependencies, offerPasskey } from '../passkeys/offer.ts';
import { connectionOf, identifierOf, localChoices, loginChoices } from '../request.ts';
import { type FormStrategy, loginBy, type ProofDependencies } from '../strategy.ts';
import type { LimitLogin } from './limit-login.ts';
import { isSignUpOpen, loginPage, signUpPage } from './pages.ts';
import { askToVerify, type VerificationDependencies } from './verification-link.ts';

/** What the form of a password is shown with: passkeys stand beside it. */
export interface PasswordFormDependencies extends HostedDependencies, OfferDependencies {
  config: Config;
}

export interface PasswordPagesDependencies
  extends ProofDependencies,
    PasswordFormDependencies,
    VerificationDependencies {
  limitLogin: LimitLogin;
  rateLimits: RateLimits;
  random: Random;
  showNext: ShowNext;
}

/** The connection that a form is posted for. */
interface Meant {
  connection: Connection;
  strategy: FormStrategy;
}

type Post = (deps: PasswordPagesDependencies, ctx: Context, page: RequestPage, meant: Meant) => Promise<void>;

const get = (form: 'login' | 'signup') => ({
  ...PAGE,
  handle: async (deps: PasswordPagesDependencies, ctx: Context) =>
    deps.showNext(ctx, await openRequestPage(deps, ctx), form),
});

const posted = (post: Post) => ({
  ...PAGE,
  handle: async (deps: PasswordPagesDependencies, ctx: Context): Promise<void> => {
    const page = await openRequestPage(deps, ctx);
    deps.csrf.verify(ctx);
    const { username } = formFields(ctx, 'username');
    const meant = waitsForLogin(page.pending) ? await meantBy(deps, page, username) : undefined;
    if (meant?.strategy.page !== 'form') return deps.showNext(ctx, page);
    await post(deps, ctx, page, { connection: meant.connection, strategy: meant.strategy });
  },
});

/** The connection of a form: the domain of the typed name chooses among those with one. */
async function meantBy({ config }: HostedDependencies, page: RequestPage, username: string) {
  const named = await connectionOf(config, page, username);
  return named?.strategy.page === 'form' ? named : connectionOf(config, page);
}

/** The routes of the forms. */
export const passwordPages: RouteDeclarations<PasswordPagesDependencies> = {
  'GET /u/:uid/login': get('login'),
  'POST /u/:uid/login': posted(postLogin),
  'GET /u/:uid/signup': get('signup'),
  'POST /u/:uid/signup': posted(postSignUp),
};

/**
 * Shows the form that a request asks for.
 * @param form `login` or `signup`, where it was asked for by its own address.
 */
export async function showPasswordForm(
  deps: PasswordFormDependencies,
  ctx: Context,
  page: RequestPage,
  connection: Connection,
  form: string | undefined,
): Promise<void> {
  const { invitedEmail, params } = page.pending;
  const hint = identifierOf(page) ?? params.login_hint ?? '';
  if (wantsSignUp(page, form) && isSignUpOpen(page, connection)) {
    return render(deps, ctx, page, 'signup', signUpPage(page, connection, { email: hint, username: '' }));
  }
  await renderLogin(deps, ctx, page, connection, { username: identifierOf(page) ?? invitedEmail ?? hint });
}

/** Whether the form to sign up is wanted. @param form as in {@link showPasswordForm}. */
export function wantsSignUp({ pending }: RequestPage, form: string | undefined): boolean {
  // Who is invited is new, as a rule.
  const first = pending.invitedEmail === undefined ? pending.params.screen_hint : 'signup';
  return (form ?? first) === 'signup';
}

/** The form of the password: with its own field for the address, or for the one that was typed on the page before. */
export async function renderLogin(
  deps: PasswordFormDependencies,
  ctx: Context,
  page: RequestPage,
  connection: Connection,
  shown: { username: string; alert?: string },
  status = 200,
): Promise<void> {
  const passkey = await offerPasskey(deps, ctx, page, connection);
  if (shown.username !== identifierOf(page)) {
    const choices = await loginChoices(deps.config, page);
    const model = { ...loginPage(page, connection, choices, shown), ...passkey };
    return render(deps, ctx, page, 'login', model, status);
  }
  const choices = await localChoices(deps.config, page);
  const identifierUrl = stepPath(page.pending, 'identifier');
  const model = { ...loginPage(page, connection, choices, shown), ...passkey, identifierUrl };
  await render(deps, ctx, page, 'password', model, status);
}

function render(
  deps: HostedDependencies,
  ctx: Context,
  page: RequestPage,
  form: 'login' | 'password' | 'signup',
  model: object,
  status = 200,
): Promise<void> {
  return renderPage(deps, ctx, page, `login/${form}`, model, status);
}

async function postLogin(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: Meant,
): Promise<void> {
  const { username, password } = formFields(ctx, 'username', 'password');
  const again = (alert: string, status: number) =>
    renderLogin(deps, ctx, page, connection, { username, alert }, status);
  if (username === '' || password === '') return again('login.missing', 400);
  try {
    await deps.limitLogin(ctx, connection, username);
    const login = await strategy.prove(deps, {
      clientId: page.pending.clientId,
      connection,
      identifier: username,
      credentials: password,
      caller: { ip: ctx.ip, browser: markBrowser(ctx, deps.random).browser },
      organization: page.organization,
    });
    await deps.finish.login(ctx, page.pending, login);
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? (tooManyAlert(thrown) ?? ALERTS[thrown.error]) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await again(alert, thrown.status === 403 ? 400 : thrown.status);
  }
}

/** Message keys of errors that the user can correct. */
const ALERTS: Record<string, string> = {
  invalid_grant: 'login.wrong',
  temporarily_unavailable: 'login.busy',
};

async function postSignUp(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: Meant,
): Promise<void> {
  const { clientId } = page.pending;
  if (!isSignUpOpen(page, connection)) return deps.showNext(ctx, page, 'login');
  const { email: typed, username, password } = formFields(ctx, 'email', 'username', 'password');
  // An invitation is for its own address, whatever is posted.
  const email = page.pending.invitedEmail ?? typed;
  const shown = { email, username };
  try {
    await deps.rateLimits.takeFrom(ctx, 'signup');
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (alert === undefined) throw thrown;
    return render(deps, ctx, page, 'signup', { ...signUpPage(page, connection, shown), alert }, 429);
  }
  const scopes = scopeValues(page.pending.params.scope);
  const result = await signUp(deps.users, {
    connection,
    email,
    password,
    username: username === '' ? undefined : username,
    asker: {
      ...askerOf(ctx, clientId, { email, username }),
      organization: page.organization,
      transaction: transactionOf(page.pending.params, { protocol: 'oidc-basic-profile', scopes }),
    },
  }).catch(refusedByCode);
  if ('status' in result) {
    const { status, ...said } = result;
    return render(deps, ctx, page, 'signup', { ...signUpPage(page, connection, shown), ...said }, status);
  }
  const seen = { client_id: clientId, connection: connection.name, user_name: email, ip: ctx.ip };
  if (!('user' in result)) {
    deps.events.record({ ...seen, type: 'fs', description: result.reason });
    const refused = signUpPage(page, connection, shown, { refusal: result, password });
    return render(deps, ctx, page, 'signup', refused, 400);
  }
  deps.events.record({ ...seen, type: 'ss', user_id: result.user.id });
  const languages = requestLanguages(ctx, page);
  await askToVerify(deps, { user: result.user, connection, client: page.client, languages, ip: ctx.ip });
  const login = loginBy(deps, strategy, {
    userId: result.user.id,
    connection: connection.name,
    ip: ctx.ip,
    credentialVersion: FIRST_VERSION,
  });
  await deps.finish.login(ctx, page.pending, login);
}

/** What the page says where the tenant's own code refuses a user, or cannot be asked. @throws whatever else was thrown */
function refusedByCode(thrown: unknown): { status: number; alert: string; said?: string | undefined } {
  const refused = { status: 400, alert: 'signup.refused' };
  if (thrown instanceof RegistrationRefused) return { ...refused, said: thrown.said };
  if (!(thrown instanceof AuthError)) throw thrown;
  if (thrown.error === 'temporarily_unavailable') return { status: thrown.status, alert: 'login.busy' };
  if (thrown.status !== 400) throw thrown;
  return { ...refused, said: thrown.error_description };
}
