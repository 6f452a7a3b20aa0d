// /activate: the page where a user types the code of a device, sees what it asks for, and logs in for it (RFC 8628
// §3.3).
import type { Context } from 'koa';
import { qrCode } from '../../../capabilities/pages/qr-code.ts';
import type { Views } from '../../../capabilities/pages/views.ts';
import { addressKey, networkKey } from '../../../capabilities/protection/addresses.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { toResource } from '../../../engine/audience.ts';
import { loginOfCode } from '../../../engine/own-codes.ts';
import { formFields } from '../../../http/body-fields.ts';
import type { Csrf } from '../../../http/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../../http/routes.ts';
import { scopeValues } from '../../../records/scope.ts';
import type { Events } from '../../../tenant/events.ts';
import type { DelegatedLogins, DelegatedOutcome } from '../../flow/delegated-login.ts';
import { ACTIVATION_PATH } from './callbacks.ts';
import {
  type CodeDependencies,
  decideRequest,
  findWaiting,
  needsConsent,
  type WaitingDevice,
} from './codes.ts';

export interface DevicePageDependencies extends CodeDependencies {
  /** Our public origin. */
  baseUrl: string;
  csrf: Csrf;
  deviceLogins: DelegatedLogins;
  events: Events;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  views: Views;
}

/** The most characters of a typed code that are read. */
const MAX_CODE_LENGTH = 50;

/** The routes of the pages. */
export const devicePageRoutes: RouteDeclarations<DevicePageDependencies> = {
  [`GET ${ACTIVATION_PATH}`]: { ...PAGE, handle: showActivation },
  [`POST ${ACTIVATION_PATH}`]: { ...PAGE, handle: acceptCode },
  [`POST ${ACTIVATION_PATH}/confirm`]: { ...PAGE, handle: acceptDecision },
  [`GET ${ACTIVATION_PATH}/callback/:client`]: { ...PAGE, handle: finishLogin },
};

async function showActivation(deps: DevicePageDependencies, ctx: Context): Promise<void> {
  const { user_code: typed } = ctx.query;
  if (typeof typed !== 'string' || typed === '') return askForCode(deps, ctx);
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, typed, found);
  const { clientId, userCode, ip } = found;
  const client = await deps.config.client(clientId);
  await deps.views.page(
    ctx,
    'device/confirm',
    {
      action: `${ACTIVATION_PATH}/confirm`,
      csrf: deps.csrf.token(ctx),
      userCode,
      // For users who open the page on a computer and are logged in on their phone.
      qr: await qrCode(`${deps.baseUrl}${ACTIVATION_PATH}?user_code=${encodeURIComponent(userCode)}`),
      ip: ip === ctx.ip ? undefined : ip,
      client: { name: client?.name ?? clientId, logo: client?.logo_uri },
    },
    // The login that follows may be at a provider.
    { formsLeave: true },
  );
}

async function acceptCode(deps: DevicePageDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { user_code: typed } = formFields(ctx, 'user_code');
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, typed, found);
  ctx.status = 303;
  ctx.redirect(`${ACTIVATION_PATH}?user_code=${encodeURIComponent(found.userCode)}`);
}

async function acceptDecision(deps: DevicePageDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { user_code: typed, decision } = formFields(ctx, 'user_code', 'decision');
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, typed, found);
  const { clientId, scope, audience, organization, id, userCode } = found;
  if (decision !== 'accept') return refuse(deps, ctx, found, undefined);
  ctx.redirect(
    await deps.deviceLogins.start(ctx, {
      clientId,
      params: {
        scope: [...new Set(['openid', ...scopeValues(scope)])].join(' '),
        audience,
        organization,
      },
      data: { device: { id, userCode } satisfies Pick<WaitingDevice, 'id' | 'userCode'> },
    }),
  );
}

/** Handles the end of the login: the device gets its tokens or an error. */
async function finishLogin(deps: DevicePageDependencies, ctx: Context): Promise<void> {
  const { clientId, data, login } = await deps.deviceLogins.finish(ctx, String(ctx.params.client));
  const { id, userCode } = data.device as Pick<WaitingDevice, 'id' | 'userCode'>;
  const waiting = await findWaiting(deps, userCode);
  if (waiting?.id !== id || waiting.clientId !== clientId) return askForCode(deps, ctx, '', WRONG_CODE);
  if ('error' in login) return refuse(deps, ctx, waiting, login);
  if (!(await matchesRequest(deps, waiting, login))) return refuse(deps, ctx, waiting, undefined);
  const { organization, sessionUid } = login;
  const hasConsent = await needsConsent(deps, waiting);
  const approval = {
    login: loginOfCode(login, ctx.ip),
    sessionUid,
    hasConsent,
    ...(organization !== undefined && { organization }),
  };
  if (!(await decideRequest(deps, waiting, approval))) return askForCode(deps, ctx, '', WRONG_CODE);
  await deps.views.page(ctx, 'device/allowed', {});
}

/**
 * Whether a login was for the API and the organization that the device asks for. The login request passed through
 * the browser, where it can be changed, and a login for another API or organization may have required less.
 */
async function matchesRequest(
  { config }: DevicePageDependencies,
  { audience, organization }: WaitingDevice,
  login: Exclude<DelegatedOutcome['login'], { error: string }>,
): Promise<boolean> {
  if (login.resource !== (audience === undefined ? undefined : toResource(audience))) return false;
  return organization === undefined || (await config.organization(organization))?.id === login.organization;
}

async function refuse(
  deps: DevicePageDependencies,
  ctx: Context,
  waiting: WaitingDevice,
  fault: { error: string; description: string } | undefined,
): Promise<void> {
  if (!(await decideRequest(deps, waiting, undefined))) return askForCode(deps, ctx, '', WRONG_CODE);
  const { clientId } = waiting;
  const type = fault === undefined ? 'fdecc' : 'fdeac';
  deps.events.record({ type, client_id: clientId, ip: ctx.ip, description: fault?.description ?? '' });
  await deps.views.page(ctx, 'device/denied', {});
}

/** The error for a typed code: a message key, and the status of the answer. */
interface CodeError {
  alert: string;
  status: number;
}

const WRONG_CODE: CodeError = { alert: 'device.wrong', status: 400 };

/**
 * Returns the request of a typed code. Wrong codes are counted by address, by network and overall, because codes
 * are short enough to be guessed (RFC 8628 §5.1).
 */
async function findRequest(
  { rateLimits, ...deps }: DevicePageDependencies,
  ctx: Context,
  typed: string,
): Promise<WaitingDevice | CodeError> {
  if (typed.trim() === '') return { alert: 'device.missing', status: 400 };
  // The narrowest limit first, so that a refused try takes nothing from limits that others share.
  const budgets = [
    ['userCode', addressKey(ctx.ip)],
    ['userCodeNetwork', networkKey(ctx.ip)],
    ['userCodes', ''],
  ] as const;
  for (const [name, key] of budgets)
    if (!(await rateLimits.spend(name, key))) return { alert: 'device.tooMany', status: 429 };
  const found = typed.length > MAX_CODE_LENGTH ? undefined : await findWaiting(deps, typed);
  if (found === undefined) return WRONG_CODE;
  await Promise.all(budgets.map(([name, key]) => rateLimits.giveBack(name, key)));
  return found;
}

async function askForCode(
  { config, csrf, views }: DevicePageDependencies,
  ctx: Context,
  typed = '',
  { alert, status }: { alert?: string; status: number } = { status: 200 },
): Promise<void> {
  const { charset, mask } = config.settings().tenant.device_flow;
  await views.page(
    ctx,
    'device/code',
    {
      action: ACTIVATION_PATH,
      csrf: csrf.token(ctx),
      typed: typed.slice(0, MAX_CODE_LENGTH),
      shape: mask.replaceAll('*', charset === 'digits' ? '0' : 'X'),
      isDigits: charset === 'digits',
      ...(alert !== undefined && { alert }),
    },
    { status },
  );
}
