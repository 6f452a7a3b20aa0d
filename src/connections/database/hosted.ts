// The routes of the password forms: /u/<uid>/login and /u/<uid>/signup.
import type { Context } from 'koa';
import { waitsForLogin } from '../../flow/next.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  renderPage,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { nameBrowser } from '../../http/browser.ts';
import { AuthError } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import type { Connection } from '../../records/collections.ts';
import { normalizePhone } from '../../records/phone.ts';
import { offerPasskey } from '../passkeys/offer.ts';
import { codeChoices } from '../passwordless/session-code.ts';
import { connectionOf, identifierOf, localChoices, loginChoices } from '../request-connections.ts';
import type {
  FormConnection,
  PasswordFormDependencies,
  PasswordPagesDependencies,
} from './form-dependencies.ts';
import { isSignUpOpen, loginPage, signUpPage, type TypedSignUp } from './pages.ts';
import { postSignUp } from './sign-up-page.ts';

type Post = (
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  meant: FormConnection,
) => Promise<void>;

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
    const meant = waitsForLogin(page.pending) ? await formConnection(deps, page, username) : undefined;
    if (meant?.strategy.page !== 'form') return deps.showNext(ctx, page);
    await post(deps, ctx, page, { connection: meant.connection, strategy: meant.strategy });
  },
});

/** Returns the connection that a form is posted for: that of the typed e-mail address's domain, if it has a form. */
async function formConnection({ config }: HostedDependencies, page: RequestPage, username: string) {
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
  const { invitedEmail, params } = page.pending;
  const hint = identifierOf(page) ?? params.login_hint ?? '';
  if (wantsSignUp(page, form) && isSignUpOpen(page, connection)) {
    return render(deps, ctx, page, 'signup', signUpPage(page, connection, typedAs(hint)));
  }
  await renderLogin(deps, ctx, page, connection, { username: identifierOf(page) ?? invitedEmail ?? hint });
}

/** Puts a login hint into the field of the sign-up form that it fits. */
function typedAs(hint: string): TypedSignUp {
  const isPhone = normalizePhone(hint) !== undefined;
  return { email: isPhone ? '' : hint, phone: isPhone ? hint : '', username: '' };
}

/** Returns whether the sign-up form is to be shown. @param form as in {@link showPasswordForm}. */
export function wantsSignUp({ pending }: RequestPage, form: string | undefined): boolean {
  // An invited user usually has no account yet.
  const first = pending.invitedEmail === undefined ? pending.params.screen_hint : 'signup';
  return (form ?? first) === 'signup';
}

/** Shows the login form: with a field for the address, or, if that was typed on the page before, for the password only. */
export async function renderLogin(
  deps: PasswordFormDependencies,
  ctx: Context,
  page: RequestPage,
  connection: Connection,
  shown: { username: string; alert?: string },
  status = 200,
): Promise<void> {
  const passkey = await offerPasskey(deps, ctx, page, connection);
  const isNamed = shown.username === identifierOf(page);
  const others = await (isNamed ? localChoices : loginChoices)(deps.config, page);
  const choices = [...codeChoices(page, connection), ...others];
  const model = { ...loginPage(page, connection, choices, shown), ...passkey };
  if (!isNamed) return render(deps, ctx, page, 'login', model, status);
  const identifierUrl = stepPath(page.pending, 'identifier');
  await render(deps, ctx, page, 'password', { ...model, identifierUrl }, status);
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
  { connection, strategy }: FormConnection,
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
      caller: { ip: ctx.ip, browser: nameBrowser(ctx, deps.random).browser },
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
