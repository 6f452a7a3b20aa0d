// The pages at which a user types an address, and then the code that was sent to it.
import type { Context } from 'koa';
import type { CodeKind } from '../../../records/database-options.ts';
import {
  type HostedDependencies,
  pageModel,
  type RequestPage,
  renderPage,
  stepPath,
} from '../../flow/request-page.ts';
import { loginChoices, mayUsePassword, passwordChoice } from '../request-connections.ts';
import type { PasswordlessConnection } from './connection.ts';
import { codeChoices, codeStep } from './session-code.ts';
import { RESEND_SECONDS } from './session-routes.ts';

/** The request and the connection of a page. */
export interface CodePage {
  page: RequestPage;
  connection: PasswordlessConnection;
  /** For a database connection: the kind of address that its codes are sent to. */
  kind?: CodeKind;
}

/** Answers with the page for the address. @param input the address as typed, and the message key of an error. */
export async function showAddress(
  deps: HostedDependencies,
  ctx: Context,
  codePage: CodePage,
  input: { address: string; alert?: string },
  status = 200,
): Promise<void> {
  const { page, connection } = codePage;
  const choices = await loginChoices(deps.config, page);
  const ownUrl = stepPath(page.pending, stepOf(codePage));
  const codes = codePage.kind === undefined ? [] : codeChoices(page, connection.record);
  const password = (await mayUsePassword(deps.config, page)) ? [passwordChoice(page)] : [];
  await renderPage(
    deps,
    ctx,
    page,
    'passwordless/address',
    {
      ...pageModel(page, stepOf(codePage)),
      channel: connection.strategy.name,
      ...input,
      others: [...password, ...codes, ...choices].filter(({ url }) => url !== ownUrl),
    },
    status,
  );
}

/** Answers with the page for the code. @param input the address, and an error (`alert`) or a notice (`said`). */
export async function showCode(
  deps: HostedDependencies,
  ctx: Context,
  codePage: CodePage,
  input: { address: string; alert?: string; said?: string | undefined },
  status = 200,
): Promise<void> {
  const { page, connection } = codePage;
  const step = stepOf(codePage);
  await renderPage(
    deps,
    ctx,
    page,
    'passwordless/code',
    {
      ...pageModel(page, `${step}/code`),
      ...input,
      channel: connection.strategy.name,
      digits: connection.digits,
      minutes: Math.ceil(connection.ttlSeconds / 60),
      resendUrl: stepPath(page.pending, step),
      resendSeconds: RESEND_SECONDS,
      backUrl: stepPath(page.pending, step),
    },
    status,
  );
}

function stepOf({ connection: { record, strategy }, kind }: CodePage): string {
  return kind === undefined ? strategy.step(record) : codeStep(record, kind);
}
