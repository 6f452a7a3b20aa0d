// Signing up on the hosted page.
import type { Context } from 'koa';
import { askerOf } from '../../engine/action-event.ts';
import { anonymousSessionPart } from '../../engine/anonymous-transfer.ts';
import { transactionOf } from '../../engine/login-event.ts';
import { type RequestPage, renderPage, requestLanguages, tooManyAlert } from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { scopeValues } from '../../records/scope.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { RegistrationRefused } from '../../users/registration.ts';
import { signUp } from '../../users/signup.ts';
import { loginBy } from '../strategy.ts';
import type { Meant, PasswordPagesDependencies } from './form-dependencies.ts';
import { isSignUpOpen, signUpPage } from './pages.ts';
import { askToVerify } from './verification-link.ts';

/** Takes the form to sign up: a new user is logged in. */
export async function postSignUp(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: Meant,
): Promise<void> {
  const { clientId } = page.pending;
  if (!isSignUpOpen(page, connection)) return deps.showNext(ctx, page, 'login');
  const {
    email: typed,
    phone,
    username,
    password,
  } = formFields(ctx, 'email', 'phone', 'username', 'password');
  // An invitation is for its own address, whatever is posted.
  const email = page.pending.invitedEmail ?? typed;
  const shown = { email, phone, username };
  try {
    await deps.rateLimits.takeFrom(ctx, 'signup');
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (alert === undefined) throw thrown;
    return render(deps, ctx, page, { ...signUpPage(page, connection, shown), alert }, 429);
  }
  const given = {
    ...(email !== '' && { email }),
    ...(phone !== '' && { phone_number: phone }),
    ...(username !== '' && { username }),
  };
  const scopes = scopeValues(page.pending.params.scope);
  const result = await signUp(deps.users, {
    connection,
    ...given,
    password,
    asker: {
      ...askerOf(ctx, clientId, given),
      organization: page.organization,
      transaction: transactionOf(page.pending.params, { protocol: 'oidc-basic-profile', scopes }),
      visitor: anonymousSessionPart(page.pending.params),
    },
  }).catch(refusedByCode);
  if ('status' in result) {
    const { status, ...said } = result;
    return render(deps, ctx, page, { ...signUpPage(page, connection, shown), ...said }, status);
  }
  const seen = {
    client_id: clientId,
    connection: connection.name,
    user_name: email || username || phone,
    ip: ctx.ip,
  };
  if (!('user' in result)) {
    deps.events.record({ ...seen, type: 'fs', description: result.reason });
    const refused = signUpPage(page, connection, shown, { refusal: result, password });
    return render(deps, ctx, page, refused, 400);
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

function render(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  model: object,
  status: number,
): Promise<void> {
  return renderPage(deps, ctx, page, 'login/signup', model, status);
}
