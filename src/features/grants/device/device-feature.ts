// The device flow (RFC 8628): a device without a keyboard or browser shows a code, and its user logs in elsewhere.

import type { Context } from 'koa';
import { z } from 'zod';
import { qrCode } from '../../../capabilities/pages/qr-code.ts';
import { declarePage, type ShownClient, shownClient, type Views } from '../../../capabilities/pages/views.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { completedRequest } from '../../../engine/admission/second-factor.ts';
import { requestedApi, toResource } from '../../../engine/base/request-extensions.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { loginOfCode } from '../../../engine/token/server-login-codes.ts';
import type { GrantAnswer, GrantDeclaration, GrantRequest } from '../../../engine/token/tokens.ts';
import { addressKey, networkKey } from '../../../http/addresses.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { limitsOf } from '../../../http/limits.ts';
import { CLIENT_FIELDS, optional, required } from '../../../http/parameter-schemas.ts';
import { bodyFields, formFields, requiredField } from '../../../http/server/body.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';
import { scopeValues } from '../../../records/clients/apis.ts';
import type { Client } from '../../../records/collections.ts';
import type { Events } from '../../../tenant/events.ts';
import type { ServerLoginOutcome, ServerLogins } from '../../flow/server-logins.ts';
import {
  type AdministratorApproval,
  CODE_SECONDS,
  type CodeDependencies,
  decideRequest,
  findWaiting,
  INTERVAL,
  issueCodes,
  needsConsent,
  type PollResult,
  pollDeviceCode,
  type WaitingDevice,
} from './codes.ts';
import { ACTIVATION_PATH, DEVICE_GRANT } from './device-callbacks.ts';

// /activate: the page where a user types the code of a device, sees what it asks for, and logs in for it (RFC 8628
// §3.3).

interface DevicePageDependencies extends CodeDependencies {
  administratorTokens: AdministratorTokens;
  baseUrl: string;
  csrf: Csrf;
  deviceLogins: ServerLogins;
  events: Events;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  views: Views;
}

/** The most characters of a typed code that are read. */
const MAX_CODE_LENGTH = 50;

const devicePageRoutes: RouteDeclarations<DevicePageDependencies> = {
  [`GET ${ACTIVATION_PATH}`]: { ...PAGE, handle: showActivation },
  [`POST ${ACTIVATION_PATH}`]: { ...PAGE, handle: acceptCode },
  [`POST ${ACTIVATION_PATH}/confirm`]: { ...PAGE, handle: acceptDecision },
  [`GET ${ACTIVATION_PATH}/callback/:client`]: { ...PAGE, handle: finishLogin },
};

export const DEVICE_ALLOWED_PAGE = declarePage('device/allowed');
export const DEVICE_DENIED_PAGE = declarePage('device/denied');

interface DeviceConfirmModel {
  action: string;
  csrf: string;
  userCode: string;
  qr: string;
  ip: string | undefined;
  client: ShownClient;
}

export const DEVICE_CONFIRM_PAGE = declarePage<DeviceConfirmModel>('device/confirm');

async function showActivation(deps: DevicePageDependencies, ctx: Context): Promise<void> {
  const { user_code: typed } = ctx.query;
  if (typeof typed !== 'string' || typed === '') return askForCode(deps, ctx);
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, typed, found);
  const { clientId, userCode, ip } = found;
  // Nothing is shown of it here: what it asks for is for administrators to see.
  if (found.asksAdministrator !== undefined) return ctx.redirect(deps.administratorTokens.pageOf(userCode));
  const client = await deps.config.client(clientId);
  await deps.views.page(
    ctx,
    DEVICE_CONFIRM_PAGE,
    {
      action: `${ACTIVATION_PATH}/confirm`,
      csrf: deps.csrf.token(ctx),
      userCode,
      // For users who open the page on a computer and are logged in on their phone.
      qr: await qrCode(`${deps.baseUrl}${ACTIVATION_PATH}?user_code=${encodeURIComponent(userCode)}`),
      ip: ip === ctx.ip ? undefined : ip,
      client: client === undefined ? { name: clientId } : shownClient(client),
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
  if (found.asksAdministrator !== undefined) return askForCode(deps, ctx, typed, WRONG_CODE);
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
  if (waiting?.id !== id || waiting.clientId !== clientId || waiting.asksAdministrator !== undefined)
    return askForCode(deps, ctx, '', WRONG_CODE);
  if ('error' in login) return refuse(deps, ctx, waiting, login);
  if (!(await matchesRequest(deps, waiting, login))) return refuse(deps, ctx, waiting, undefined);
  const { organization, sessionUid } = login;
  const hasConsent = await needsConsent(deps, waiting);
  const allowed = {
    login: loginOfCode(login, ctx.ip),
    sessionUid,
    hasConsent,
    ...(organization !== undefined && { organization }),
  };
  if (!(await decideRequest(deps, waiting, { allowed }))) return askForCode(deps, ctx, '', WRONG_CODE);
  await deps.views.page(ctx, DEVICE_ALLOWED_PAGE, {});
}

// docs/understand/decisions/tokens.md#a-login-for-a-device-is-a-login-at-authorize
/**
 * Whether a login was for the API and the organization that the device asks for. The login request passed through
 * the browser, where it can be changed, and a login for another API or organization may have required less.
 */
async function matchesRequest(
  { config }: DevicePageDependencies,
  { audience, organization }: WaitingDevice,
  login: Exclude<ServerLoginOutcome['login'], { error: string }>,
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
  const type = fault === undefined ? logEvents.fdecc : logEvents.fdeac;
  deps.events.record({ type, client_id: clientId, ip: ctx.ip, description: fault?.description ?? '' });
  await deps.views.page(ctx, DEVICE_DENIED_PAGE, {});
}

/** The error for a typed code: a message key, and the status of the answer. */
export interface CodeError {
  alert: string;
  status: number;
}

export const WRONG_CODE: CodeError = { alert: 'device.wrong', status: 400 };

// docs/understand/decisions/tokens.md#wrong-user-codes-of-devices-are-limited
/**
 * Returns the request of a typed code, here and at the console. Wrong codes are counted by address, by network and overall, because codes
 * are short enough to be guessed (RFC 8628 §5.1).
 */
export async function findRequest(
  { rateLimits, ...deps }: CodeDependencies & Pick<DevicePageDependencies, 'rateLimits'>,
  ctx: Context,
  typed: string,
): Promise<WaitingDevice | CodeError> {
  if (typed.trim() === '') return { alert: 'device.missing', status: 400 };
  // The narrowest limit first, so that a refused try takes nothing from limits that others share.
  const budgets = [
    [limits.userCode, addressKey(ctx.ip)],
    [limits.userCodeNetwork, networkKey(ctx.ip)],
    [limits.userCodes, ''],
  ] as const;
  for (const [limit, key] of budgets)
    if (!(await rateLimits.spend(limit, key))) return { alert: 'device.tooMany', status: 429 };
  const found = typed.length > MAX_CODE_LENGTH ? undefined : await findWaiting(deps, typed);
  if (found === undefined) return WRONG_CODE;
  await Promise.all(budgets.map(([limit, key]) => rateLimits.giveBack(limit, key)));
  return found;
}

interface DeviceCodeModel {
  action: string;
  csrf: string;
  typed: string;
  shape: string;
  isDigits: boolean;
  alert?: string;
}

export const DEVICE_CODE_PAGE = declarePage<DeviceCodeModel>('device/code');

async function askForCode(
  { administratorTokens, config, csrf, views }: DevicePageDependencies,
  ctx: Context,
  typed = '',
  { alert, status }: { alert?: string; status: number } = { status: 200 },
): Promise<void> {
  const { charset, mask } = config.settings().tenant.device_flow;
  await views.page(
    ctx,
    DEVICE_CODE_PAGE,
    {
      action: ACTIVATION_PATH,
      csrf: csrf.token(ctx),
      typed: typed.slice(0, MAX_CODE_LENGTH),
      shape: mask.replaceAll('*', charset === 'digits' ? '0' : 'X'),
      isDigits: charset === 'digits',
      ...(alert !== undefined && { alert }),
    },
    // A code for administrators leads to the console, which may have a host of its own.
    { status, formsLeave: !administratorTokens.pageOf('').startsWith('/') },
  );
}

// POST /oauth/device/code (RFC 8628 §3.1, §3.2).

interface AuthorizationDependencies extends CodeDependencies {
  administratorTokens: AdministratorTokens;
  authenticateClient(ctx: Context): Promise<string>;
  baseUrl: string;
}

const authorizationBody = z.object({
  ...CLIENT_FIELDS,
  scope: optional('The requested scopes, separated by spaces.'),
  audience: optional('The identifier of the API that the access token is for.'),
  resource: optional('The same (RFC 8707).'),
  organization: optional('The organization that the login is for, by id or name.'),
});

const authorizationAnswer = z.object({
  device_code: z.string().describe('For the token endpoint.'),
  user_code: z.string().describe('For the user, who types it.'),
  verification_uri: z.url(),
  verification_uri_complete: z.url().describe('With the code, for a QR code.'),
  expires_in: z.number().int().describe('Seconds.'),
  interval: z
    .number()
    .int()
    .describe('The minimum number of seconds between two requests to the token endpoint.'),
});

const FIELDS = Object.keys(authorizationBody.shape);

/** The most characters of a scope or an identifier, which are stored while the code waits. */
const MAX_LENGTH = 2_000;

/** The tokens of programs that administrators approve. */
export interface AdministratorTokens {
  /**
   * Returns what a request asks an administrator for; undefined for a request that is for a user to allow.
   * @throws AuthError 400 `invalid_scope` when it asks for nothing that the application may have.
   */
  requestOf(request: {
    client: Client;
    audience: string | undefined;
    scope: string;
    organization: string | undefined;
  }): Promise<{ scopes: readonly string[] } | undefined>;
  /** Returns where an administrator sees a request: a path, or an address on the console's own host. */
  pageOf(userCode: string): string;
  /**
   * Issues the token of an approved request.
   * @throws AuthError 403 `access_denied` when the administrator, the application or its client grant do not allow it any
   *   more.
   */
  issue(
    approval: AdministratorApproval & { clientId: string },
    request: { gty: string } & Pick<GrantRequest, 'confirmationFor'>,
  ): Promise<GrantAnswer>;
}

/**
 * Handles a request: issues the codes for a device.
 * @throws AuthError 401 `invalid_client`, 403 `unauthorized_client` for a client without the grant, 403
 *   `access_denied` for an API that does not exist.
 */
async function authorizeDevice(
  deps: AuthorizationDependencies,
  ctx: Context,
): Promise<z.output<typeof authorizationAnswer>> {
  const clientId = await deps.authenticateClient(ctx);
  const { scope = '', organization, ...target } = bodyFields(ctx, FIELDS);
  const { config, baseUrl } = deps;
  const client = await config.client(clientId);
  if (client?.grant_types?.includes(DEVICE_GRANT) !== true)
    throw new AuthError(
      403,
      'unauthorized_client',
      `Grant type '${DEVICE_GRANT}' not allowed for the client.`,
    );
  const api = await requestedApi(config, target);
  if ('fault' in api) throw new AuthError(400, 'invalid_target', api.fault);
  const audience = api.identifier ?? config.settings().tenant.default_audience;
  const ofAdministrator = await deps.administratorTokens.requestOf({ client, audience, scope, organization });
  if (ofAdministrator === undefined) {
    if ([scope, audience, organization].some((text) => (text?.length ?? 0) > MAX_LENGTH))
      throw new AuthError(400, 'invalid_request', 'The request is too long.');
    if (audience !== undefined && (await config.resourceServer(audience)) === undefined)
      throw new AuthError(403, 'access_denied', `Service not found: ${audience}`);
  }
  const { deviceCode, userCode } = await issueCodes(deps, {
    clientId,
    ip: ctx.ip,
    ...(ofAdministrator === undefined
      ? {
          scope,
          ...(audience !== undefined && { audience }),
          ...(organization && { organization }),
        }
      : { scope: '', asksAdministrator: ofAdministrator.scopes }),
  });
  const page = `${baseUrl}${ACTIVATION_PATH}`;
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${encodeURIComponent(userCode)}`,
    expires_in: CODE_SECONDS,
    interval: INTERVAL,
  };
}

// The device code grant (RFC 8628 §3.4, §3.5), for a login that was made at our pages.

/** The errors for a device that has to poll again, or will not get tokens. */
const REFUSALS: Readonly<Record<Exclude<PollResult['is'], 'allowed' | 'approved'>, () => AuthError>> = {
  pending: () => new AuthError(403, 'authorization_pending', 'User has yet to authorize device code.'),
  'too-fast': () =>
    new AuthError(
      429,
      'slow_down',
      `You are polling faster than the specified interval of ${INTERVAL} seconds.`,
    ),
  expired: () => new AuthError(403, 'expired_token', 'The device code has expired.'),
  rejected: () => new AuthError(403, 'access_denied', 'User cancelled the confirmation prompt.'),
  unknown: () => new AuthError(403, 'invalid_grant', 'Invalid or expired device code.'),
};

interface DeviceGrantDependencies extends CodeDependencies {
  administratorTokens: Pick<AdministratorTokens, 'issue'>;
  /** @see Sessions.isOpen */
  isOpen(sessionUid: string): Promise<boolean>;
}

const limits = limitsOf({
  deviceCode: { capacity: 50, perMinute: 300, per: 'address', where: '`/oauth/device/code`' },
  userCode: { capacity: 10, perMinute: 2, per: 'address', where: 'wrong codes at `/activate`' },
  userCodeNetwork: {
    capacity: 60,
    perMinute: 10,
    per: 'network (IPv4 /24, IPv6 /48)',
    where: 'wrong codes at `/activate`',
  },
  userCodes: {
    capacity: 600,
    perMinute: 300,
    per: 'tenant',
    where: 'wrong codes at `/activate`, from all addresses',
  },
});

const logEvents = eventTypesOf({
  sede: 'A device got tokens for its code.',
  fede: 'A device got no tokens for its code.',
  fdeac: 'A login for a device failed; the description says why.',
  fdecc: 'A user refused the login of a device.',
});

const deviceGrant: GrantDeclaration<DeviceGrantDependencies> = {
  grantType: DEVICE_GRANT,
  summary: 'A login for a device, made in a browser',
  parameters: z.object({ device_code: required('The value from `/oauth/device/code`.') }),
  gty: DEVICE_GRANT,
  events: { success: logEvents.sede, failure: logEvents.fede },
  isFromPages: true,
  begin: async (deps, { clientId, params, confirmationFor }) => {
    const polled = await pollDeviceCode(deps, requiredField(params, 'device_code'), clientId);
    if (polled.is === 'approved') {
      const { approved } = polled;
      return {
        authenticate: () =>
          deps.administratorTokens.issue({ clientId, ...approved }, { gty: DEVICE_GRANT, confirmationFor }),
      };
    }
    if (polled.is !== 'allowed') throw REFUSALS[polled.is]();
    const { scope, audience } = polled.request;
    const { login, organization, hasConsent, sessionUid } = polled.allowed;
    if (!(await deps.isOpen(sessionUid))) throw REFUSALS.unknown();
    // The application may have become a third party's after its user was not asked for consent.
    if (!hasConsent && (await needsConsent(deps, { clientId, audience }))) throw REFUSALS.unknown();
    return {
      authenticate: async () => ({ login, isRecorded: true }),
      completes: completedRequest(DEVICE_GRANT, login, {
        scope,
        resource: audience === undefined ? undefined : toResource(audience),
        organization,
      }),
    };
  },
};

interface DeviceDependencies extends AuthorizationDependencies, DevicePageDependencies {}

export const device = feature<DeviceDependencies, DeviceGrantDependencies>({
  name: 'device',
  limits,
  events: logEvents,
  grants: [deviceGrant],
  routes: {
    'POST /oauth/device/code': {
      limit: limits.deviceCode,
      cors: 'applications',
      errors: oauthShape,
      summary: 'Begin a login for a device (RFC 8628)',
      security: ['client'],
      uncheckedBody: authorizationBody,
      answers: { 200: { description: 'The codes', body: authorizationAnswer } },
      handle: async (deps, ctx) => {
        const codes = await authorizeDevice(deps, ctx);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = codes;
      },
    },
    ...devicePageRoutes,
  },
});
