// The routes of the password forms: /u/<uid>/login and /u/<uid>/signup.
import type { Context } from 'koa';
import { formFields } from '../../../http/body.ts';
import { nameBrowser } from '../../../http/browser-cookie.ts';
import { AuthError } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/router.ts';
import type { Connection } from '../../../records/collections.ts';
import { normalizePhone } from '../../../records/email.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  renderPage,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { offerPasskey } from '../passkeys/enrollment.ts';
import { codeChoices } from '../passwordless/session-code.ts';
import { connectionOf, identifierOf, localChoices, loginChoices } from '../resolve.ts';
import type {
  FormConnection,
  PasswordFormDependencies,
  PasswordPagesDependencies,
} from './form-dependencies.ts';
import {
  isSignUpOpen,
  LOGIN_PAGE,
  LOGIN_PASSWORD_PAGE,
  LOGIN_SIGNUP_PAGE,
  loginPage,
  type SignUpValues,
  signUpPage,
} from './pages.ts';
import { postSignUp } from './sign-up-page.ts';

type PostHandler = (
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  target: FormConnection,
) => Promise<void>;

const getRoute = (form: 'login' | 'signup') => ({
  ...PAGE,
  handle: async (deps: PasswordPagesDependencies, ctx: Context) =>
    deps.showNext(ctx, await openRequestPage(deps, ctx), form),
});

const postRoute = (post: PostHandler) => ({
  ...PAGE,
  handle: async (deps: PasswordPagesDependencies, ctx: Context): Promise<void> => {
    const page = await openRequestPage(deps, ctx);
    deps.csrf.verify(ctx);
    const { username } = formFields(ctx, 'username');
    const target = waitsForLogin(page.waiting) ? await formConnection(deps, page, username) : undefined;
    if (target?.strategy.page !== 'form') return deps.showNext(ctx, page);
    await post(deps, ctx, page, { connection: target.connection, strategy: target.strategy });
  },
});

/** Returns the connection that a form is posted for: that of the typed e-mail address's domain, if it has a form. */
async function formConnection({ config }: HostedDependencies, page: RequestPage, username: string) {
  const byDomain = await connectionOf(config, page, username);
  return byDomain?.strategy.page === 'form' ? byDomain : connectionOf(config, page);
}

export const passwordPages: RouteDeclarations<PasswordPagesDependencies> = {
  'GET /u/:uid/login': getRoute('login'),
  'POST /u/:uid/login': postRoute(postLogin),
  'GET /u/:uid/signup': getRoute('signup'),
  'POST /u/:uid/signup': postRoute(postSignUp),
};

/**
 * Shows the login form or the sign-up form.
 * @param form `login` or `signup` if the path names one; else the request's `screen_hint` decides.
 */
export async function showPasswordForm(
  deps: PasswordFormDependencies,
  ctx: Context,
  page: RequestPage,
  connection: Connection,
  form: string | undefined,
): Promise<void> {
  const { invitedEmail, params } = page.waiting;
  const hint = identifierOf(page) ?? params.login_hint ?? '';
  if (wantsSignUp(page, form) && isSignUpOpen(page, connection)) {
    const model = signUpPage(page, connection, signUpValuesOf(hint));
    return renderPage(deps, ctx, page, LOGIN_SIGNUP_PAGE, model);
  }
  await renderLogin(deps, ctx, page, connection, { username: identifierOf(page) ?? invitedEmail ?? hint });
}

/** Puts a login hint into the field of the sign-up form that it fits. */
function signUpValuesOf(hint: string): SignUpValues {
  const isPhone = normalizePhone(hint) !== undefined;
  return { email: isPhone ? '' : hint, phone: isPhone ? hint : '', username: '' };
}

/** @param form as in {@link showPasswordForm}. */
export function wantsSignUp({ waiting }: RequestPage, form: string | undefined): boolean {
  // An invited user usually has no account yet.
  const defaultForm = waiting.invitedEmail === undefined ? waiting.params.screen_hint : 'signup';
  return (form ?? defaultForm) === 'signup';
}

/** Shows the login form: with a field for the address, or, if that was typed on the page before, for the password only. */
export async function renderLogin(
  deps: PasswordFormDependencies,
  ctx: Context,
  page: RequestPage,
  connection: Connection,
  input: { username: string; alert?: string },
  status = 200,
): Promise<void> {
  const passkey = await offerPasskey(deps, ctx, page, connection);
  const isIdentified = input.username === identifierOf(page);
  const others = await (isIdentified ? localChoices : loginChoices)(deps.config, page);
  const choices = [...codeChoices(page, connection), ...others];
  const model = { ...loginPage(page, connection, choices, input), ...passkey };
  if (!isIdentified) return renderPage(deps, ctx, page, LOGIN_PAGE, model, status);
  const identifierUrl = stepPath(page.waiting, 'identifier');
  await renderPage(deps, ctx, page, LOGIN_PASSWORD_PAGE, { ...model, identifierUrl }, status);
}

async function postLogin(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: FormConnection,
): Promise<void> {
  const { username, password } = formFields(ctx, 'username', 'password');
  const showError = (alert: string, status: number) =>
    renderLogin(deps, ctx, page, connection, { username, alert }, status);
  if (username === '' || password === '') return showError('login.missing', 400);
  try {
    await deps.limitLogin(ctx, connection, username);
    const login = await strategy.prove(deps, {
      clientId: page.waiting.clientId,
      connection,
      identifier: username,
      credentials: password,
      caller: { ip: ctx.ip, browser: nameBrowser(ctx, deps.random).browser },
      organization: page.organization,
    });
    await deps.finish.login(ctx, page.waiting, login);
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? (tooManyAlert(thrown) ?? ALERTS[thrown.error]) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await showError(alert, thrown.status === 403 ? 400 : thrown.status);
  }
}

/** Message keys of errors that the user can correct. */
const ALERTS: Record<string, string> = {
  invalid_grant: 'login.wrong',
  temporarily_unavailable: 'login.busy',
};
