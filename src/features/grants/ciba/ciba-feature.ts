// Logins that a user approves on another device or page than the application's (OpenID Connect Client-Initiated
// Backchannel Authentication Core 1.0), in poll mode.

import type { Context } from 'koa';
import { z } from 'zod';
import { declarePage, type ShownClient, shownClient, type Views } from '../../../capabilities/pages/views.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { completedRequest } from '../../../engine/admission/second-factor.ts';
import { requestExpired } from '../../../engine/authorize/waiting-requests.ts';
import {
  answerBackchannelRequest,
  type BackchannelPollResult,
  pollBackchannelRequest,
  type WaitingBackchannelRequest,
  waitingBackchannelRequests,
} from '../../../engine/base/backchannel-requests.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { isOidcScope, toResource } from '../../../engine/base/request-extensions.ts';
import { feature } from '../../../engine/provider/feature.ts';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { loginOfCode } from '../../../engine/token/server-login-codes.ts';
import type { GrantDeclaration } from '../../../engine/token/tokens.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { formFields, requiredField } from '../../../http/server/body.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { asksEachTime, scopeValues } from '../../../records/clients/apis.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import { profileOf } from '../../../records/clients/compliance-levels.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Login } from '../../../users/login.ts';
import { type ShownDetail, type ShownScope, shownDetails, shownScopes } from '../../flow/flow-pages.ts';
import type { ServerLogins } from '../../flow/server-logins.ts';
import {
  type AuthorizationDependencies,
  authorizationAnswer,
  authorizationBody,
  authorizeBackchannel,
} from './authorization.ts';
import { APPROVAL_PATH, CIBA_GRANT } from './ciba-callbacks.ts';
import { cibaEvents, cibaLimits } from './ciba-declaration.ts';
import { readRequestId } from './request-id.ts';

// /approval: the page where a user who got an e-mail logs in and approves what an application asks for.

interface ApprovalPageDependencies {
  approvalLogins: ServerLogins;
  challenges: Challenges;
  config: Config;
  csrf: Csrf;
  events: Events;
  sessions: Pick<Sessions, 'isOpen'>;
  views: Views;
}

/** The purpose of the ticket in the form, which stands for the login, and how long the form is valid, seconds. */
const PURPOSE = 'approval';
const FORM_SECONDS = 600;

/** The login of the user who answers, and the application. */
interface Approver {
  clientId: string;
  login: Login;
  /** The id of the session of that login, with which the form ends. */
  sid: string;
}

const approvalPageRoutes: RouteDeclarations<ApprovalPageDependencies> = {
  [`GET ${APPROVAL_PATH}`]: { ...PAGE, handle: startLogin },
  [`POST ${APPROVAL_PATH}`]: { ...PAGE, handle: acceptAnswer },
  [`GET ${APPROVAL_PATH}/callback/:client`]: { ...PAGE, handle: finishLogin },
};

async function startLogin({ approvalLogins, config }: ApprovalPageDependencies, ctx: Context): Promise<void> {
  const { client_id: clientId = '' } = ctx.query;
  const client = typeof clientId === 'string' ? await config.client(clientId) : undefined;
  if (client?.grant_types?.includes(CIBA_GRANT) !== true)
    throw new AuthError(400, 'invalid_request', 'There is no such application.');
  ctx.redirect(await approvalLogins.start(ctx, { clientId: client.client_id, params: {}, data: {} }));
}

async function finishLogin(deps: ApprovalPageDependencies, ctx: Context): Promise<void> {
  const { clientId, login, data } = await deps.approvalLogins.finish(ctx, String(ctx.params.client));
  if ('error' in login) throw new AuthError(403, login.error, login.description);
  const { acr } = login;
  const approver = { clientId, login: loginOfCode(login, ctx.ip), sid: login.sessionUid };
  const [waiting] = await waitingFor(deps, approver);
  if (waiting === undefined) return deps.views.page(ctx, APPROVAL_NONE_PAGE, {});
  const { acrValues = [] } = waiting;
  const isReached = acrValues.length === 0 || acrValues.some((one) => one === acr);
  // The user is only known after the login, and with the user the context classes that their requests ask for. The
  // user is asked for them once, because `acr_values` is voluntary (CIBA Core §7.1).
  if (isReached || data.hasAsked === true) return askForAnswer(deps, ctx, approver, waiting);
  const params = { acr_values: acrValues.join(' ') };
  ctx.redirect(await deps.approvalLogins.start(ctx, { clientId, params, data: { hasAsked: true } }));
}

export const APPROVAL_NONE_PAGE = declarePage('approval/none');
export const APPROVAL_ALLOWED_PAGE = declarePage('approval/allowed');
export const APPROVAL_DENIED_PAGE = declarePage('approval/denied');

interface ApprovalAskModel {
  action: string;
  csrf: string;
  ticket: string;
  request: string;
  message: string | undefined;
  scopes: ShownScope[];
  details: ShownDetail[];
  client: ShownClient;
}

export const APPROVAL_ASK_PAGE = declarePage<ApprovalAskModel>('approval/ask');

/** Shows the newest request that waits for the user. */
async function askForAnswer(
  deps: ApprovalPageDependencies,
  ctx: Context,
  approver: Approver,
  waiting: WaitingBackchannelRequest,
): Promise<void> {
  const { clientId, login, sid } = approver;
  const client = await deps.config.client(clientId);
  const shown = client === undefined ? { name: clientId } : shownClient(client);
  const { audience, authorizationDetails: all = [] } = waiting;
  const { secret: ticket } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: waiting.id,
    userId: login.userId,
    session: sid,
    ttlSeconds: FORM_SECONDS,
    data: { ...approver },
  });
  // A session that ended meanwhile could not end the form.
  if (!(await deps.sessions.isOpen(sid))) throw requestExpired();
  await deps.views.page(ctx, APPROVAL_ASK_PAGE, {
    action: APPROVAL_PATH,
    csrf: deps.csrf.token(ctx),
    ticket,
    request: waiting.id,
    message: waiting.bindingMessage,
    scopes: await scopesOf(deps, waiting),
    details: await shownDetails({ client: shown }, deps, { audience, all }),
    client: shown,
  });
}

/** What an API's users are asked for each time. */
async function scopesOf(
  { config }: Pick<ApprovalPageDependencies, 'config'>,
  { asksEachTime, audience, scope }: WaitingBackchannelRequest,
) {
  if (asksEachTime !== true || audience === undefined) return [];
  const all = scopeValues(scope);
  const known = (await config.resourceServer(audience))?.scopes.map(({ value }) => value) ?? [];
  return shownScopes(config, all.filter(isOidcScope), {
    [audience]: all.filter((one) => known.includes(one)),
  });
}

async function waitingFor(
  deps: ApprovalPageDependencies,
  { clientId, login }: Approver,
): Promise<WaitingBackchannelRequest[]> {
  return (await waitingBackchannelRequests(deps, login.userId)).filter((one) => one.clientId === clientId);
}

async function acceptAnswer(deps: ApprovalPageDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, request, decision } = formFields(ctx, 'ticket', 'request', 'decision');
  const challenge = await deps.challenges.spendTicket<Approver>(PURPOSE, ticket);
  if (challenge === undefined) throw requestExpired();
  const approver = challenge.data;
  const found = (await waitingFor(deps, approver)).find(({ id }) => id === request);
  const isAllowed = decision === 'accept';
  const approvingLogin = isAllowed ? approver.login : undefined;
  if (found === undefined || !(await answerBackchannelRequest(deps, found, approvingLogin, true)))
    return deps.views.page(ctx, APPROVAL_NONE_PAGE, {});
  const { clientId, login } = approver;
  if (!isAllowed)
    deps.events.record({
      type: engineEvents.gd_auth_rejected,
      client_id: clientId,
      user_id: login.userId,
      ip: ctx.ip,
    });
  await deps.views.page(ctx, isAllowed ? APPROVAL_ALLOWED_PAGE : APPROVAL_DENIED_PAGE, {});
}

// The CIBA grant, for a request that its user has approved (OpenID Connect CIBA Core 1.0 §10.1, §11).

interface CibaGrantDependencies {
  challenges: Challenges;
  /** The steady clock. */
  clock: Clock;
  config: Config;
}

/** The interval that a client gets when it polls too often, seconds. */
const SLOW_DOWN_SECONDS = 10;

/**
 * The errors for a client that has to poll again, or will not get tokens. `isHeld`: whether a compliance level
 * applies to the application.
 */
const REFUSALS: Readonly<
  Record<Exclude<BackchannelPollResult['is'], 'approved'> | 'expired', (hasProfile: boolean) => AuthError>
> = {
  pending: () => new AuthError(400, 'authorization_pending', 'The end-user authorization is pending'),
  // The standard's status (RFC 6749 §5.2) for applications with a compliance level; the hosted service's for
  // others.
  'too-fast': (hasProfile) =>
    new AuthError(
      hasProfile ? 400 : 429,
      'slow_down',
      `You are polling faster than allowed. Try again in ${SLOW_DOWN_SECONDS} seconds.`,
      {
        extra: { interval: SLOW_DOWN_SECONDS },
      },
    ),
  rejected: () =>
    new AuthError(
      400,
      'access_denied',
      'The end-user denied the authorization request or it has been expired',
    ),
  unknown: () => new AuthError(400, 'invalid_grant', 'Invalid or expired auth_req_id'),
  expired: () => new AuthError(400, 'expired_token', 'The auth_req_id has expired'),
};

const cibaGrant: GrantDeclaration<CibaGrantDependencies> = {
  grantType: CIBA_GRANT,
  summary: 'A login that the user approved without a browser of the application',
  parameters: z.object({ auth_req_id: required('The value from `/bc-authorize`.') }),
  gty: CIBA_GRANT,
  events: { success: cibaEvents.seciba, failure: cibaEvents.feciba },
  isFromPages: true,
  begin: async (deps, { clientId, params, ctx }) => {
    const client = await deps.config.client(clientId);
    // The user was not asked for consent: the application may have become a third party's while the request waited.
    if (client?.is_first_party !== true || authenticationMethod(client) === 'none')
      throw new AuthError(
        403,
        'unauthorized_client',
        `Grant type '${CIBA_GRANT}' not allowed for the client.`,
      );
    const { ticket, expiresAt } = readRequestId(client, requiredField(params, 'auth_req_id'));
    const polled = await pollBackchannelRequest(deps, ticket, clientId);
    const isExpired = polled.is === 'unknown' && epochSeconds(deps.clock) >= expiresAt;
    if (polled.is === 'too-fast') ctx.set('retry-after', String(SLOW_DOWN_SECONDS));
    const hasProfile = profileOf(client) !== undefined;
    if (polled.is !== 'approved') throw REFUSALS[isExpired ? 'expired' : polled.is](hasProfile);
    const { scope, audience, organization, authorizationDetails } = polled.request;
    const { login, isRecorded } = polled;
    const api = audience === undefined ? undefined : await deps.config.resourceServer(audience);
    // The API has come to require consent each time only after this user approved, who was not shown what for.
    if (asksEachTime(api) && polled.request.asksEachTime !== true) throw REFUSALS.unknown(hasProfile);
    return {
      authenticate: async () => ({ login, isRecorded }),
      completes: completedRequest(CIBA_GRANT, login, {
        scope,
        resource: audience === undefined ? undefined : toResource(audience),
        organization,
        authorizationDetails,
      }),
    };
  },
};

type CibaDependencies = AuthorizationDependencies & ApprovalPageDependencies;

const authenticationRoute = {
  summary: 'Ask a user to approve a login (CIBA)',
  security: ['client'],
  uncheckedBody: authorizationBody,
  answers: { 200: { description: 'The `auth_req_id` for the token endpoint', body: authorizationAnswer } },
  limit: cibaLimits.bcAuthorize,
  cors: 'none',
  errors: oauthShape,
  handle: async (deps: CibaDependencies, ctx: Parameters<typeof authorizeBackchannel>[1]) => {
    const answer = await authorizeBackchannel(deps, ctx);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = answer;
  },
} as const;

export const ciba = feature<CibaDependencies, CibaGrantDependencies>({
  name: 'ciba',
  limits: cibaLimits,
  events: cibaEvents,
  grants: [cibaGrant],
  routes: {
    'POST /bc-authorize': authenticationRoute,
    'POST /oauth/bc-authorize': authenticationRoute,
    ...approvalPageRoutes,
  },
});
