// /approval: the page where a user who got an e-mail logs in and approves what an application asks for.
import type { Context } from 'koa';
import type { Views } from '../../../capabilities/pages/views.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import {
  answerBackchannelRequest,
  type WaitingBackchannelRequest,
  waitingBackchannelRequests,
} from '../../../engine/backchannel-requests.ts';
import { isOidcScope } from '../../../engine/claims.ts';
import { loginOfCode } from '../../../engine/own-codes.ts';
import { requestExpired } from '../../../engine/pending-interaction.ts';
import type { Sessions } from '../../../engine/sessions.ts';
import { formFields } from '../../../http/body-fields.ts';
import type { Csrf } from '../../../http/csrf.ts';
import { AuthError } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/routes.ts';
import { scopeValues } from '../../../records/scope.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Login } from '../../../users/login.ts';
import type { DelegatedLogins } from '../../flow/delegated-login.ts';
import { shownDetails, shownScopes } from '../../flow/pages.ts';
import { APPROVAL_PATH, CIBA_GRANT } from './callbacks.ts';

export interface ApprovalPageDependencies {
  approvalLogins: DelegatedLogins;
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

/** The routes of the pages. */
export const approvalPageRoutes: RouteDeclarations<ApprovalPageDependencies> = {
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
  if (waiting === undefined) return deps.views.page(ctx, 'approval/none', {});
  const { acrValues = [] } = waiting;
  const isReached = acrValues.length === 0 || acrValues.some((one) => one === acr);
  // The user is only known after the login, and with the user the context classes that their requests ask for. The
  // user is asked for them once, because `acr_values` is voluntary (CIBA Core §7.1).
  if (isReached || data.hasAsked === true) return askForAnswer(deps, ctx, approver, waiting);
  const params = { acr_values: acrValues.join(' ') };
  ctx.redirect(await deps.approvalLogins.start(ctx, { clientId, params, data: { hasAsked: true } }));
}

/** Shows the newest request that waits for the user. */
async function askForAnswer(
  deps: ApprovalPageDependencies,
  ctx: Context,
  approver: Approver,
  waiting: WaitingBackchannelRequest,
): Promise<void> {
  const { clientId, login, sid } = approver;
  const client = await deps.config.client(clientId);
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
  await deps.views.page(ctx, 'approval/ask', {
    action: APPROVAL_PATH,
    csrf: deps.csrf.token(ctx),
    ticket,
    request: waiting.id,
    message: waiting.bindingMessage,
    scopes: await scopesOf(deps, waiting),
    details: await shownDetails({ client: { name: client?.name ?? clientId } }, deps, { audience, all }),
    client: { name: client?.name ?? clientId, logo: client?.logo_uri },
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
    return deps.views.page(ctx, 'approval/none', {});
  const { clientId, login } = approver;
  if (!isAllowed)
    deps.events.record({ type: 'gd_auth_rejected', client_id: clientId, user_id: login.userId, ip: ctx.ip });
  await deps.views.page(ctx, isAllowed ? 'approval/allowed' : 'approval/denied', {});
}
