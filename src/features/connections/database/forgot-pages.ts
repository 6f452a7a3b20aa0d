// The hosted pages of a forgotten password, which mail a link to set a new one.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { nameKey } from '../../../capabilities/protection/attempts.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { formFields } from '../../../http/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/router.ts';
import type { Connection } from '../../../records/collections.ts';
import { databaseOptions, offersReset } from '../../../records/database-options.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
} from '../../flow/request-page.ts';
import { type NameField, nameField, namesOf } from '../name-field.ts';
import { byOwnPassword, databaseFor, identifierOf } from '../resolve.ts';
import { callerOf } from './account-pages.ts';
import { databaseLimits } from './declaration.ts';
import type { RequestReset } from './reset-link.ts';

interface ForgotPagesDependencies extends HostedDependencies {
  random: Random;
  rateLimits: RateLimits;
  requestReset: RequestReset;
}

export const forgotPages: RouteDeclarations<ForgotPagesDependencies> = {
  'GET /u/:uid/forgot-password': { ...PAGE, handle: showForgot },
  'POST /u/:uid/forgot-password': { ...PAGE, handle: handleForgot },
};

interface AccountForgotModel extends PageModel {
  names: NameField;
  email: string;
  loginUrl: string;
}

export const ACCOUNT_FORGOT_PAGE = declarePage<AccountForgotModel>('account/forgot');

async function showForgot(deps: ForgotPagesDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const requestUrl = `/u/${page.waiting.uid}`;
  if (!waitsForLogin(page.waiting)) return ctx.redirect(requestUrl);
  const { names, connection } = await resetForm(deps, page);
  if (!offersReset(connection)) return ctx.redirect(requestUrl);
  await renderPage(deps, ctx, page, ACCOUNT_FORGOT_PAGE, {
    ...pageModel(page, 'forgot-password'),
    names,
    email: identifierOf(page) ?? page.waiting.params.login_hint ?? '',
    loginUrl: stepPath(page.waiting, 'login'),
  });
}

/** Returns the connection whose passwords the page resets, and the input field for the user's address or name. */
async function resetForm(
  { config }: ForgotPagesDependencies,
  { waiting: { clientId, params } }: RequestPage,
): Promise<{ connection: Connection; names: NameField }> {
  const query = { clientId, connection: params.connection };
  const { connection } = await databaseFor(config, query, byOwnPassword);
  const hasAttributes = databaseOptions(connection).attributes != null;
  return { connection, names: nameField(hasAttributes ? namesOf(connection) : ['email']) };
}

interface AccountSentModel extends PageModel {
  names: NameField;
  email: string;
  loginUrl: string;
}

export const ACCOUNT_SENT_PAGE = declarePage<AccountSentModel>('account/sent');

async function handleForgot(deps: ForgotPagesDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  deps.csrf.verify(ctx);
  const { email } = formFields(ctx, 'email');
  const { params } = page.waiting;
  const { names, connection } = await resetForm(deps, page);
  const loginUrl = stepPath(page.waiting, 'login');
  const model = { ...pageModel(page, 'forgot-password'), names, email, loginUrl };
  const isValidName =
    names.text === 'field.email' ? normalizeEmail(email) !== undefined : email.trim() !== '';
  if (!isValidName) {
    return renderPage(deps, ctx, page, ACCOUNT_FORGOT_PAGE, { ...model, alert: 'signup.email' }, 400);
  }
  await deps.rateLimits.takeFrom(ctx, databaseLimits.changePassword, nameKey(email));
  const { organization } = params;
  await deps.requestReset({
    email,
    connection,
    client: page.client,
    organization: organization === undefined ? undefined : await deps.config.organization(organization),
    languages: requestLanguages(ctx, page),
    caller: callerOf(deps, ctx),
  });
  await renderPage(deps, ctx, page, ACCOUNT_SENT_PAGE, model);
}
