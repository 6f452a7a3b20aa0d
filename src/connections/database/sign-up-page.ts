// Sign-up on the hosted page.
import type { Context } from 'koa';
import { type RequestPage, renderPage, requestLanguages, tooManyAlert } from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { passwordUse } from '../../records/database-options.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { type SignUpRefusal, signUp, signUpFault, signUpRefusal } from '../../users/signup.ts';
import { loginBy } from '../strategy.ts';
import type { FormConnection, PasswordPagesDependencies } from './form-dependencies.ts';
import { isSignUpOpen, signUpPage } from './pages.ts';
import { beginSignUpCodes } from './sign-up-codes.ts';
import { refusedByCode, signUpAsker } from './sign-up-hooks.ts';
import { provedByCode, unprovable } from './sign-up-proofs.ts';
import { askNewToVerify } from './verification-link.ts';

/** Handles the posted sign-up form: creates and logs in the user, or first asks for codes. */
export async function postSignUp(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, strategy }: FormConnection,
): Promise<void> {
  if (!isSignUpOpen(page, connection)) return deps.showNext(ctx, page, 'login');
  const typed = typedIn(ctx, page);
  try {
    await deps.rateLimits.takeFrom(ctx, 'signup');
    await signUpAs(deps, ctx, { page, connection, strategy }, typed);
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (alert === undefined) throw thrown;
    await render(deps, ctx, page, { ...signUpPage(page, connection, typed.shown), alert }, 429);
  }
}

/** Reads the form: `shown` is what a repeated form contains, `given` is without the fields left empty. */
function typedIn(ctx: Context, { pending }: RequestPage) {
  const fields = formFields(ctx, 'email', 'phone', 'username', 'password');
  const { phone, username, password } = fields;
  // An invitation is for its own address, whatever is posted.
  const email = pending.invitedEmail ?? fields.email;
  const given = {
    ...(email !== '' && { email }),
    ...(phone !== '' && { phone_number: phone }),
    ...(username !== '' && { username }),
  };
  return { shown: { email, phone, username }, given, password };
}

async function signUpAs(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection, strategy }: FormConnection & { page: RequestPage },
  { shown, given, password }: ReturnType<typeof typedIn>,
): Promise<void> {
  const { clientId } = page.pending;
  const name = shown.email || shown.username || shown.phone;
  const seen = { client_id: clientId, connection: connection.name, user_name: name, ip: ctx.ip };
  const refused = (refusal: SignUpRefusal) => {
    deps.events.record({ ...seen, type: 'fs', description: refusal.reason });
    return render(deps, ctx, page, signUpPage(page, connection, shown, { refusal, password }), 400);
  };
  const { signsUp } = passwordUse(connection);
  const proved = provedByCode(connection, given);
  if (proved.length > 0 || !signsUp) {
    const fault = signsUp
      ? signUpFault({ connection, ...given, password })
      : (signUpRefusal(connection, given) ?? unprovable(connection, proved));
    if (fault !== undefined) return refused(fault);
    return beginSignUpCodes(deps, ctx, page, { connection, typed: given, ...(signsUp && { password }) });
  }
  const asker = signUpAsker(deps.config, ctx, page, given);
  const result = await signUp(deps.users, { connection, ...given, password, asker }).catch(refusedByCode);
  if ('status' in result) {
    const { status, ...said } = result;
    return render(deps, ctx, page, { ...signUpPage(page, connection, shown), ...said }, status);
  }
  if (!('user' in result)) return refused(result);
  deps.events.record({ ...seen, type: 'ss', user_id: result.user.id });
  const languages = requestLanguages(ctx, page);
  await askNewToVerify(deps, { user: result.user, connection, client: page.client, languages, ip: ctx.ip });
  const login = loginBy(deps, strategy, {
    userId: result.user.id,
    connection: connection.name,
    ip: ctx.ip,
    credentialVersion: FIRST_VERSION,
  });
  await deps.finish.login(ctx, page.pending, login);
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
