// Sign-up on the hosted page.
import type { Context } from 'koa';
import { formFields } from '../../../http/body.ts';
import { AuthError } from '../../../http/errors.ts';
import { passwordUse } from '../../../records/database-options.ts';
import { userEvents } from '../../../users/declaration.ts';
import { FIRST_VERSION } from '../../../users/login.ts';
import { type SignUpRefusal, signUp, signUpFault, signUpRefusal } from '../../../users/signup.ts';
import { type RequestPage, renderPage, requestLanguages, tooManyAlert } from '../../flow/request-page.ts';
import { loginBy } from '../strategy.ts';
import { databaseLimits } from './declaration.ts';
import type { FormConnection, PasswordPagesDependencies } from './form-dependencies.ts';
import { isSignUpOpen, LOGIN_SIGNUP_PAGE, type SignUpModel, signUpPage } from './pages.ts';
import { beginSignUpCodes } from './sign-up-codes.ts';
import { serverLoginCodeRefusal, signUpAsker } from './sign-up-hooks.ts';
import { kindsToProve, unprovableRefusal } from './sign-up-proofs.ts';
import { askNewUserToVerify } from './verification-link.ts';

/** Handles the posted sign-up form: creates and logs in the user, or first asks for codes. */
export async function postSignUp(
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
