// The routes of the passwordless pages: address, then code.
import type { Context } from 'koa';
import { askerOf } from '../../engine/action-event.ts';
import { anonymousSessionPart } from '../../engine/anonymous-transfer.ts';
import { waitsForLogin } from '../../flow/next.ts';
import {
  acceptsConnection,
  type HostedDependencies,
  openRequestPage,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { nameBrowser } from '../../http/browser.ts';
import { AuthError } from '../../http/errors.ts';
import type { Languages } from '../../http/languages.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import { addressKey } from '../../protection/addresses.ts';
import type { Caller } from '../../protection/callers.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import type { CodeKind } from '../../records/database-options.ts';
import type { Random } from '../../runtime/random.ts';
import { RegistrationRefused } from '../../users/registration.ts';
import { identifierOf, loginChoices, mayUsePassword, passwordChoice } from '../request-connections.ts';
import type { ProofDependencies } from '../strategy.ts';
import { type PasswordlessConnection, passwordlessConnection } from './connection.ts';
import { codeChoices, codeConnection, codeStep, proveSession } from './session-code.ts';
import { beginSession, codesOf, RESEND_SECONDS } from './session-routes.ts';
import { type StartDependencies, start } from './start.ts';
import { subjectOf } from './strategy.ts';
import { redeem } from './verify.ts';

export interface PasswordlessPagesDependencies
  extends HostedDependencies,
    StartDependencies,
    ProofDependencies {
  rateLimits: RateLimits;
  random: Random;
}

/** Returns the declaration of a route that first opens the request and its connection. */
const opened = (
  handle: (deps: PasswordlessPagesDependencies, ctx: Context, at: OpenPage) => Promise<void>,
) => ({
  ...PAGE,
  handle: async (deps: PasswordlessPagesDependencies, ctx: Context): Promise<void> => {
    const at = await open(deps, ctx);
    if (at === undefined) return;
    if (ctx.method === 'POST') deps.csrf.verify(ctx);
    await handle(deps, ctx, at);
  },
});

/** The routes of the hosted passwordless pages. */
export const passwordlessPages: RouteDeclarations<PasswordlessPagesDependencies> = {
  'GET /u/:uid/passwordless/:connection': opened((deps, ctx, at) => showFirst(deps, ctx, at)),
  'POST /u/:uid/passwordless/:connection': opened(sendCode),
  'POST /u/:uid/passwordless/:connection/code': opened(useCode),
  'GET /u/:uid/code/:connection/:channel': opened((deps, ctx, at) => showFirst(deps, ctx, at)),
  'POST /u/:uid/code/:connection/:channel': opened(sendCode),
  'POST /u/:uid/code/:connection/:channel/code': opened(useCode),
};

/** The request and the connection of a page. */
interface OpenPage {
  page: RequestPage;
  connection: PasswordlessConnection;
  /** For a database connection: the kind of address that its codes are sent to. */
  kind?: CodeKind;
}

function showFirst(deps: PasswordlessPagesDependencies, ctx: Context, at: OpenPage): Promise<void> {
  const { pending } = at.page;
  return showAddress(deps, ctx, at, { address: identifierOf(at.page) ?? pending.params.login_hint ?? '' });
}

/** Opens a page. @returns undefined if the browser was redirected because the request does not wait for this page. */
async function open(deps: PasswordlessPagesDependencies, ctx: Context): Promise<OpenPage | undefined> {
  const page = await openRequestPage(deps, ctx);
  if (!waitsForLogin(page.pending)) {
    ctx.redirect(`/u/${page.pending.uid}`);
    return undefined;
  }
  const name = String(ctx.params.connection);
  if (!acceptsConnection(page.pending, { name })) {
    ctx.redirect(`/u/${page.pending.uid}`);
    return undefined;
  }
  const { client_id: clientId } = page.client;
  const { channel } = ctx.params;
  if (channel === undefined)
    return { page, connection: await passwordlessConnection(deps.config, clientId, name) };
  const kind = channel === 'sms' ? 'phone_number' : 'email';
  const record = await codeConnection(deps.config, clientId, { realm: name, kind });
  return { page, connection: codesOf(record, kind, false), kind };
}

async function sendCode(deps: PasswordlessPagesDependencies, ctx: Context, at: OpenPage): Promise<void> {
  const { page, connection } = at;
  const { address: given } = formFields(ctx, 'address');
  const address = connection.strategy.normalize(given);
  const again = (alert: string, status: number) =>
    showAddress(deps, ctx, at, { address: given, alert }, status);
  if (address === undefined) return again(`passwordless.${connection.strategy.name}.invalid`, 400);
  const caller = { ip: ctx.ip, ...nameBrowser(ctx, deps.random) };
  const subject = subjectOf(page.client.client_id, connection.record, address);
  const cooling = await refusalOf(
    deps.rateLimits.take(ctx, 'passwordlessResend', `${subject}\n${addressKey(ctx.ip)}`),
  );
  // A code was sent a moment ago, so the page shows where to type it.
  if (cooling !== undefined)
    return showCode(deps, ctx, at, { address, alert: 'passwordless.tooSoon' }, cooling.status);
  try {
    await deps.rateLimits.takeFrom(ctx, 'passwordlessStart');
    const languages = requestLanguages(ctx, page);
    await begin(deps, ctx, at, { address, languages, caller });
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? alertOf(thrown, connection) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    return again(alert, thrown.status);
  }
  await showCode(deps, ctx, at, { address });
}

async function begin(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  { page, connection, kind }: OpenPage,
  asked: { address: string; languages: Languages; caller: Caller },
): Promise<void> {
  const { client, pending } = page;
  if (kind === undefined) return void (await start(deps, ctx, { client, connection, ...asked }));
  const { record } = connection;
  const session = await beginSession(deps, ctx, { client, record, kind, isAllowed: false, ...asked });
  await deps.interactions.remember(ctx, { ...pending.remembered, codeSession: session });
}

async function refusalOf(taken: Promise<void>): Promise<AuthError | undefined> {
  try {
    await taken;
    return undefined;
  } catch (thrown) {
    if (thrown instanceof AuthError) return thrown;
    throw thrown;
  }
}

async function useCode(deps: PasswordlessPagesDependencies, ctx: Context, at: OpenPage): Promise<void> {
  const { page, connection } = at;
  const { address: given, code } = formFields(ctx, 'address', 'code');
  const address = connection.strategy.normalize(given);
  // Codes may be typed with spaces or a dash.
  const secret = code.replace(/[\s-]/g, '');
  const again = (alert: string, status: number, said?: string) =>
    showCode(deps, ctx, at, { address: address ?? given, alert, said }, status);
  if (secret === '') return again('passwordless.missing', 400);
  try {
    const clientId = page.client.client_id;
    const caller = { ip: ctx.ip, ...nameBrowser(ctx, deps.random) };
    const visitor = anonymousSessionPart(page.pending.params);
    const asker = { ...askerOf(ctx, clientId), visitor };
    const { codeSession } = page.pending.remembered;
    const session = typeof codeSession === 'string' ? codeSession : '';
    const login =
      at.kind === undefined
        ? await redeem(deps, { clientId, connection, address, secret, caller, asker })
        : await proveSession(deps, { clientId, session, code: secret, caller, askedBy: () => asker });
    await deps.finish.login(ctx, page.pending, login);
  } catch (thrown) {
    if (thrown instanceof RegistrationRefused) return again('signup.refused', 400, thrown.userMessage);
    const alert = thrown instanceof AuthError ? alertOf(thrown, connection) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await again(alert, thrown.status === 403 ? 400 : thrown.status);
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

async function showAddress(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  at: OpenPage,
  shown: { address: string; alert?: string },
  status = 200,
): Promise<void> {
  const { page, connection } = at;
  const choices = await loginChoices(deps.config, page);
  const own = stepPath(page.pending, stepOf(at));
  const codes = at.kind === undefined ? [] : codeChoices(page, connection.record);
  const password = (await mayUsePassword(deps.config, page)) ? [passwordChoice(page)] : [];
  await renderPage(
    deps,
    ctx,
    page,
    'passwordless/address',
    {
      ...pageModel(page, stepOf(at)),
      channel: connection.strategy.name,
      ...shown,
      others: [...password, ...codes, ...choices].filter(({ url }) => url !== own),
    },
    status,
  );
}

async function showCode(
  deps: PasswordlessPagesDependencies,
  ctx: Context,
  at: OpenPage,
  shown: { address: string; alert?: string; said?: string | undefined },
  status = 200,
): Promise<void> {
  const { page, connection } = at;
  const step = stepOf(at);
  await renderPage(
    deps,
    ctx,
    page,
    'passwordless/code',
    {
      ...pageModel(page, `${step}/code`),
      ...shown,
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

function stepOf({ connection: { record, strategy }, kind }: OpenPage): string {
  return kind === undefined ? strategy.step(record) : codeStep(record, kind);
}
