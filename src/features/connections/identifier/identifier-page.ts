// The page that asks for an identifier (an e-mail address, for example) before anything else.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { databaseOptions } from '../../../records/database-options.ts';
import {
  type HostedDependencies,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  stepPath,
} from '../../flow/request-page.ts';
import { isSignUpOpen } from '../database/base/database-pages.ts';
import { type NameField, nameField, namesOf } from '../name-field.ts';
import {
  byForm,
  byOwnPassword,
  identifierOf,
  type LoginChoice,
  loginChoices,
  usableConnections,
} from '../resolve.ts';

interface LoginIdentifierModel extends PageModel {
  names: NameField;
  identifier: string;
  connections: LoginChoice[];
  signupUrl?: string;
}

/** A failed attempt: what was typed, and why it was rejected. */
interface FailedAttempt {
  identifier: string;
  /** A message key. */
  alert: string;
}

export const LOGIN_IDENTIFIER_PAGE = declarePage<LoginIdentifierModel>('login/identifier');

/** @param attempt the failed attempt, if any; the status is then 400. */
export async function showIdentifier(
  deps: HostedDependencies,
  ctx: Context,
  page: RequestPage,
  attempt?: FailedAttempt,
): Promise<void> {
  const model = await identifierPage(deps, page, attempt?.identifier);
  const { alert } = attempt ?? {};
  await renderPage(
    deps,
    ctx,
    page,
    LOGIN_IDENTIFIER_PAGE,
    { ...model, ...(alert !== undefined && { alert }) },
    alert === undefined ? 200 : 400,
  );
}

async function identifierPage(
  { config }: HostedDependencies,
  page: RequestPage,
  typedIdentifier: string | undefined,
): Promise<LoginIdentifierModel> {
  const { client, organization, waiting } = page;
  const usable = await usableConnections(config, client.client_id, organization?.id);
  const database = usable.find(({ strategy }) => byOwnPassword(strategy))?.connection;
  const offersSignUp =
    database !== undefined && !databaseOptions(database).disable_signup && isSignUpOpen(page, database);
  return {
    ...pageModel(page, 'identifier'),
    names: nameField(
      usable.flatMap(({ connection, strategy }) => (byForm(strategy) ? namesOf(connection) : [])),
    ),
    identifier:
      typedIdentifier ?? identifierOf(page) ?? waiting.invitedEmail ?? waiting.params.login_hint ?? '',
    connections: await loginChoices(config, page),
    ...(offersSignUp && { signupUrl: stepPath(waiting, 'signup') }),
  };
}
