// The routes of the password forms: /u/<uid>/login and /u/<uid>/signup.
import type { Context } from 'koa';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import { nameBrowser } from '../../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { normalizePhone } from '../../../records/base/email.ts';
import type { Connection } from '../../../records/collections.ts';
import { passwordUse } from '../../../records/database-options.ts';
import { FIRST_VERSION } from '../../../users/login.ts';
import { type SignUpRefusal, signUp, signUpFault, signUpRefusal } from '../../../users/signup.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { offerPasskey } from '../passkeys/enrollment.ts';
import { codeChoices } from '../passwordless/session-code.ts';
import { connectionOf, identifierOf, localChoices, loginChoices } from '../resolve.ts';
import { loginBy } from '../strategy.ts';
import { databaseLimits } from './base/database-declaration.ts';
import {
  isSignUpOpen,
  LOGIN_PAGE,
  LOGIN_PASSWORD_PAGE,
  LOGIN_SIGNUP_PAGE,
  loginPage,
  type SignUpModel,
  type SignUpValues,
  signUpPage,
} from './base/database-pages.ts';
import type {
  FormConnection,
  PasswordFormDependencies,
  PasswordPagesDependencies,
} from './base/form-dependencies.ts';
import { askNewUserToVerify } from './base/verification-link.ts';
import { beginSignUpCodes } from './sign-up/sign-up-codes.ts';
import { serverLoginCodeRefusal, signUpAsker } from './sign-up/sign-up-hooks.ts';
import { kindsToProve, unprovableRefusal } from './sign-up/sign-up-proofs.ts';

// Sign-up on the hosted page.

/** Handles the posted sign-up form: creates and logs in the user, or first asks for codes. */
async function postSignUp(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: FormConnection,
): Promise<void> {
  if (!isSignUpOpen(page, connection)) return deps.showNext(ctx, page, 'login');
  const form = readForm(ctx, page);
  try {
    await deps.rateLimits.takeFrom(ctx, databaseLimits.signup);
    await signUpAs(deps, ctx, { page, connection, strategy }, form);
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (alert === undefined) throw thrown;
    await render(deps, ctx, page, { ...signUpPage(page, connection, form.values), alert }, 429);
  }
}

/** Reads the form: `shown` is what a repeated form contains, `given` is without the fields left empty. */
function readForm(ctx: Context, { waiting }: RequestPage) {
  const fields = formFields(ctx, 'email', 'phone', 'username', 'password');
  const { phone, username, password } = fields;
  // An invitation is for its own address, whatever is posted.
  const email = waiting.invitedEmail ?? fields.email;
  const addresses = {
    ...(email !== '' && { email }),
    ...(phone !== '' && { phone_number: phone }),
    ...(username !== '' && { username }),
  };
  return { values: { email, phone, username }, addresses, password };
}

async function signUpAs(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection, strategy }: FormConnection & { page: RequestPage },
  { values, addresses, password }: ReturnType<typeof readForm>,
): Promise<void> {
  const { clientId } = page.waiting;
  const name = values.email || values.username || values.phone;
  const details = { client_id: clientId, connection: connection.name, user_name: name, ip: ctx.ip };
  const showRefusal = (refusal: SignUpRefusal) => {
    deps.events.record({ ...details, type: userEvents.fs, description: refusal.reason });
    return render(deps, ctx, page, signUpPage(page, connection, values, { refusal, password }), 400);
  };
  const { signsUp } = passwordUse(connection);
  const toProve = kindsToProve(connection, addresses);
  if (toProve.length > 0 || !signsUp) {
    const fault = signsUp
      ? signUpFault({ connection, ...addresses, password })
      : (signUpRefusal(connection, addresses) ?? unprovableRefusal(connection, toProve));
    if (fault !== undefined) return showRefusal(fault);
    return beginSignUpCodes(deps, ctx, page, { connection, typed: addresses, ...(signsUp && { password }) });
  }
  const asker = signUpAsker(deps.config, ctx, page, addresses);
  const result = await signUp(deps.users, { connection, ...addresses, password, asker }).catch(
    serverLoginCodeRefusal,
  );
  if ('status' in result) {
    const { status, ...notice } = result;
    return render(deps, ctx, page, { ...signUpPage(page, connection, values), ...notice }, status);
  }
  if (!('user' in result)) return showRefusal(result);
  deps.events.record({ ...details, type: userEvents.ss, user_id: result.user.id });
  const languages = requestLanguages(ctx, page);
  await askNewUserToVerify(deps, {
    user: result.user,
    connection,
    client: page.client,
    languages,
    ip: ctx.ip,
  });
  const login = loginBy(deps, strategy, {
    userId: result.user.id,
    connection: connection.name,
    ip: ctx.ip,
    credentialVersion: FIRST_VERSION,
  });
  await deps.finish.login(ctx, page.waiting, login);
}

function render(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  model: SignUpModel,
  status: number,
): Promise<void> {
  return renderPage(deps, ctx, page, LOGIN_SIGNUP_PAGE, model, status);
}

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
