// The routes of the passwordless pages: address, then code.

import type { Context } from 'koa';
import { declarePage } from '../../../capabilities/pages/views.ts';
import type { Caller, RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import { anonymousSessionPart } from '../../../engine/session/anonymous-sessions.ts';
import { addressKey } from '../../../http/addresses.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Languages } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import { nameBrowser } from '../../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Connection } from '../../../records/collections.ts';
import type { CodeKind } from '../../../records/database-options.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { RegistrationRefused } from '../../../users/registration.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import { flowLimits } from '../../flow/flow-declaration.ts';
import {
  acceptsConnection,
  type HostedDependencies,
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { type OfferDependencies, offerPasskey, type PasskeyOffer } from '../passkeys/enrollment.ts';
import { identifierOf, type LoginChoice, loginChoices, mayUsePassword, passwordChoice } from '../resolve.ts';
import type { ProofDependencies } from '../strategy.ts';
import { type PasswordlessConnection, passwordlessConnection } from './connection.ts';
import { passwordlessLimits } from './passwordless-declaration.ts';
import { type StartDependencies, start } from './passwordless-start.ts';
import { subjectOf } from './passwordless-strategy.ts';
import { codeChoices, codeConnection, codeStep, proveSession } from './session-code.ts';
import { asPasswordless, beginSession, RESEND_SECONDS } from './session-routes.ts';
import { redeem } from './verify.ts';

export interface PasswordlessPagesDependencies
  extends AddressDependencies,
    StartDependencies,
    ProofDependencies {
  rateLimits: RateLimits;
  random: Random;
}

/** Returns the declaration of a route that first opens the request and its connection. */
const pageRoute = (
  handle: (deps: PasswordlessPagesDependencies, ctx: Context, codePage: CodePage) => Promise<void>,
) => ({
  ...PAGE,
  handle: async (deps: PasswordlessPagesDependencies, ctx: Context): Promise<void> => {
    const codePage = await openCodePage(deps, ctx);
    if (codePage === undefined) return;
    if (ctx.method === 'POST') deps.csrf.verify(ctx);
    await handle(deps, ctx, codePage);
  },
});

/** The routes of the hosted passwordless pages. */
export const passwordlessPages: RouteDeclarations<PasswordlessPagesDependencies> = {
  'GET /u/:uid/passwordless/:connection': pageRoute((deps, ctx, codePage) =>
    showAddressForm(deps, ctx, codePage),
  ),
  'POST /u/:uid/passwordless/:connection': pageRoute(sendCode),
  'POST /u/:uid/passwordless/:connection/code': pageRoute(handleCode),
  'GET /u/:uid/code/:connection/:channel': pageRoute((deps, ctx, codePage) =>
    showAddressForm(deps, ctx, codePage),
  ),
  'POST /u/:uid/code/:connection/:channel': pageRoute(sendCode),
  'POST /u/:uid/code/:connection/:channel/code': pageRoute(handleCode),
};

function showAddressForm(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  codePage: CodePage,
): Promise<void> {
  const { waiting } = codePage.page;
  return showAddress(deps, ctx, codePage, {
    address: identifierOf(codePage.page) ?? waiting.params.login_hint ?? '',
  });
}

/** @returns undefined if the browser was redirected because the request does not wait for this page. */
async function openCodePage(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
): Promise<CodePage | undefined> {
  const page = await openRequestPage(deps, ctx);
  if (!waitsForLogin(page.waiting)) {
    ctx.redirect(`/u/${page.waiting.uid}`);
    return undefined;
  }
  const name = String(ctx.params.connection);
  if (!acceptsConnection(page.waiting, { name })) {
    ctx.redirect(`/u/${page.waiting.uid}`);
    return undefined;
  }
  const { client_id: clientId } = page.client;
  const { channel } = ctx.params;
  if (channel === undefined)
    return { page, connection: await passwordlessConnection(deps.config, clientId, name) };
  const kind = channel === 'sms' ? 'phone_number' : 'email';
  const record = await codeConnection(deps.config, clientId, { realm: name, kind });
  return { page, connection: asPasswordless(record, kind, false), kind };
}

async function sendCode(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  codePage: CodePage,
): Promise<void> {
  const { page, connection } = codePage;
  const { address: typedAddress } = formFields(ctx, 'address');
  const address = connection.strategy.normalize(typedAddress);
  const showError = (alert: string, status: number) =>
    showAddress(deps, ctx, codePage, { address: typedAddress, alert }, status);
  if (address === undefined) return showError(`passwordless.${connection.strategy.name}.invalid`, 400);
  const caller = { ip: ctx.ip, ...nameBrowser(ctx, deps.random) };
  const subject = subjectOf(page.client.client_id, connection.record, address);
  const tooSoon = await refusalOf(
    deps.rateLimits.take(ctx, flowLimits.passwordlessResend, `${subject}\n${addressKey(ctx.ip)}`),
  );
  // A code was sent a moment ago, so the page shows where to type it.
  if (tooSoon !== undefined)
    return showCode(deps, ctx, codePage, { address, alert: 'passwordless.tooSoon' }, tooSoon.status);
  try {
    await deps.rateLimits.takeFrom(ctx, passwordlessLimits.passwordlessStart);
    const languages = requestLanguages(ctx, page);
    await requestCode(deps, ctx, codePage, { address, languages, caller });
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? alertOf(thrown, connection) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    return showError(alert, thrown.status);
  }
  await showCode(deps, ctx, codePage, { address });
}

async function requestCode(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  { page, connection, kind }: CodePage,
  request: { address: string; languages: Languages; caller: Caller },
): Promise<void> {
  const { client, waiting } = page;
  if (kind === undefined) return void (await start(deps, ctx, { client, connection, ...request }));
  const { record } = connection;
  const session = await beginSession(deps, ctx, { client, record, kind, allowsSignUp: false, ...request });
  await deps.waitingRequests.remember(ctx, { ...waiting.remembered, codeSession: session });
}

async function refusalOf(limit: Promise<void>): Promise<AuthError | undefined> {
  try {
    await limit;
    return undefined;
  } catch (thrown) {
    if (thrown instanceof AuthError) return thrown;
    throw thrown;
  }
}

async function handleCode(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  codePage: CodePage,
): Promise<void> {
  const { page, connection } = codePage;
  const { address: typedAddress, code } = formFields(ctx, 'address', 'code');
  const address = connection.strategy.normalize(typedAddress);
  // Codes may be typed with spaces or a dash.
  const secret = code.replace(/[\s-]/g, '');
  const showError = (alert: string, status: number, said?: string) =>
    showCode(deps, ctx, codePage, { address: address ?? typedAddress, alert, said }, status);
  if (secret === '') return showError('passwordless.missing', 400);
  try {
    const clientId = page.client.client_id;
    const caller = { ip: ctx.ip, ...nameBrowser(ctx, deps.random) };
    const visitor = anonymousSessionPart(page.waiting.params);
    const asker = { ...requestContextOf(ctx, clientId), visitor };
    const { codeSession } = page.waiting.remembered;
    const session = typeof codeSession === 'string' ? codeSession : '';
    const by = {
      clientId,
      caller,
      organization: page.organization,
      invitedEmail: page.waiting.invitedEmail,
    };
    const login =
      codePage.kind === undefined
        ? await redeem(deps, { ...by, connection, address, secret, asker })
        : await proveSession(deps, { ...by, session, code: secret, askerFor: () => asker });
    await deps.finish.login(ctx, page.waiting, login);
  } catch (thrown) {
    if (thrown instanceof RegistrationRefused) return showError('signup.refused', 400, thrown.userMessage);
    if (thrown instanceof AuthError && thrown.error === 'access_denied')
      return deps.waitingRequests.answer(ctx, { error: thrown.error, description: thrown.error_description });
    const alert = thrown instanceof AuthError ? alertOf(thrown, connection) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await showError(alert, thrown.status === 403 ? 400 : thrown.status);
  }
}

/** Message keys of errors that the user can correct. */
function alertOf(thrown: AuthError, { strategy }: PasswordlessConnection): string | undefined {
  const alerts: Record<string, string> = {
    invalid_grant: 'passwordless.wrong',
    sms_provider_error: `passwordless.${strategy.name}.invalid`,
    temporarily_unavailable: 'passwordless.notSent',
  };
  return tooManyAlert(thrown) ?? alerts[thrown.error];
}

// The pages at which a user types an address, and then the code that was sent to it.

interface CodePage {
  page: RequestPage;
  connection: PasswordlessConnection;
  /** For a database connection: the kind of address that its codes are sent to. */
  kind?: CodeKind;
}

/** What the page for the address needs; that of a database offers passkeys beside the code. */
type AddressDependencies = HostedDependencies & OfferDependencies;

interface PasswordlessAddressModel extends PageModel, Partial<PasskeyOffer> {
  address: string;
  channel: string;
  others: LoginChoice[];
}

export const PASSWORDLESS_ADDRESS_PAGE = declarePage<PasswordlessAddressModel>('passwordless/address');

/** Answers with the page for the address. @param input the address as typed, and the message key of an error. */
async function showAddress(
  deps: AddressDependencies,
  ctx: Context,
  codePage: CodePage,
  input: { address: string; alert?: string },
  status = 200,
): Promise<void> {
  const { page, connection } = codePage;
  const choices = await loginChoices(deps.config, page);
  const ownUrl = stepPath(page.waiting, stepOf(codePage));
  const codes = codePage.kind === undefined ? [] : codeChoices(page, connection.record);
  const password = (await mayUsePassword(deps.config, page)) ? [passwordChoice(page)] : [];
  const passkey =
    codePage.kind === undefined ? undefined : await offerPasskey(deps, ctx, page, connection.record);
  await renderPage(
    deps,
    ctx,
    page,
    PASSWORDLESS_ADDRESS_PAGE,
    {
      ...pageModel(page, stepOf(codePage)),
      channel: connection.strategy.name,
      ...input,
      ...passkey,
      others: [...password, ...codes, ...choices].filter(({ url }) => url !== ownUrl),
    },
    status,
  );
}

/** Answers with the page for the address that a code of a database is sent to. */
export function showCodeForm(
  deps: AddressDependencies,
  ctx: Context,
  page: RequestPage,
  { record, kind }: { record: Connection; kind: CodeKind },
  alert: string,
): Promise<void> {
  const codePage = { page, connection: asPasswordless(record, kind, false), kind };
  return showAddress(deps, ctx, codePage, { address: '', alert }, 400);
}

interface PasswordlessCodeModel extends PageModel {
  /** Where the code was sent to. */
  address: string;
  channel: string;
  digits: number;
  /** How long the code is valid. */
  minutes: number;
  resendUrl: string;
  resendSeconds: number;
  backUrl: string;
}

export const PASSWORDLESS_CODE_PAGE = declarePage<PasswordlessCodeModel>('passwordless/code');

/** Answers with the page for the code. @param input the address, and an error (`alert`) or a notice (`said`). */
async function showCode(
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
    PASSWORDLESS_CODE_PAGE,
    {
      ...pageModel(page, `${step}/code`),
      ...input,
      channel: connection.strategy.name,
      digits: connection.digits,
      minutes: Math.ceil(connection.ttlSeconds / 60),
      resendUrl: stepPath(page.waiting, step),
      resendSeconds: RESEND_SECONDS,
      backUrl: stepPath(page.waiting, step),
    },
    status,
  );
}

function stepOf({ connection: { record, strategy }, kind }: CodePage): string {
  return kind === undefined ? strategy.step(record) : codeStep(record, kind);
}
