// POST /bc-authorize (OpenID Connect CIBA Core 1.0 §7): an application asks a user to approve a login, without a browser.
import type { Context } from 'koa';
import { z } from 'zod';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import type { Views } from '../../../capabilities/pages/views.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { admissionError, requestedOrganization } from '../../../engine/admission/admission.ts';
import {
  type BackchannelParameters,
  backchannelParameters,
} from '../../../engine/authorize/backchannel-parameters.ts';
import { requestedDetails } from '../../../engine/base/authorization-details.ts';
import { BACKCHANNEL_INTERVAL, issueBackchannelRequest } from '../../../engine/base/backchannel-requests.ts';
import { requestedApi } from '../../../engine/base/request-extensions.ts';
import { AuthError } from '../../../http/errors.ts';
import { CLIENT_FIELDS, optional, required } from '../../../http/parameter-schemas.ts';
import { bodyFields, requiredField } from '../../../http/server/body.ts';
import { asksEachTime } from '../../../records/clients/apis.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import type { Client } from '../../../records/collections.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import { jsonOf } from '../../../runtime/json.ts';
import type { Config } from '../../../tenant/config.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { type ShownDetail, shownDetails } from '../../flow/flow-pages.ts';
import { APPROVAL_PATH, CIBA_GRANT } from './ciba-callbacks.ts';
import { cibaLimits } from './ciba-declaration.ts';
import { requestId } from './request-id.ts';

export interface AuthorizationDependencies extends HintDependencies, MailDependencies, BackchannelParameters {
  authenticateClient(ctx: Context): Promise<string>;
  challenges: Challenges;
  /** The steady clock. */
  clock: Clock;
  config: Config;
  /** The authentication context classes that the server supports. */
  acrValues: readonly string[];
  /**
   * @param hasDetails whether they have to show `authorization_details`.
   * @returns a function that notifies them; undefined when there are none.
   */
  devicesOf(userId: string, hasDetails: boolean): Promise<(() => Promise<void>) | undefined>;
  rateLimits: Pick<RateLimits, 'spend'>;
  views: Pick<Views, 'liquid'>;
}

const PARAMETERS = {
  login_hint: required('The user: `{"format":"iss_sub","iss":"<issuer>","sub":"<user_id>"}`.'),
  scope: required('The requested scopes, separated by spaces; `openid` must be one of them.'),
  binding_message: optional(
    'A message that the user sees and can compare with the one that the application shows.',
  ),
  audience: optional('The identifier of the API that the access token is for.'),
  resource: optional('The same (RFC 8707).'),
  organization: optional('The organization that the login is for, by id or name.'),
  requested_expiry: optional(
    'Seconds until the request expires; values above 300 apply only to an approval by e-mail.',
  ),
  acr_values: optional(
    'Context classes, separated by spaces; they are met if the user approves on the page and has a second factor.',
  ),
  authorization_details: optional(
    'JSON (RFC 9396), shown on a device that can, or in an e-mail and on the approval page.',
  ),
  id_token_hint: optional('Not supported.'),
  login_hint_token: optional('Not supported.'),
  request: optional('All other parameters, as a JWT signed by the application.'),
};

export const authorizationBody = z.object({ ...CLIENT_FIELDS, ...PARAMETERS });

export const authorizationAnswer = z.object({
  auth_req_id: z.string().describe('For the token endpoint.'),
  expires_in: z.number().int().describe('Seconds.'),
  interval: z
    .number()
    .int()
    .describe('The minimum number of seconds between two requests to the token endpoint.'),
});

const FIELDS = Object.keys(PARAMETERS);
const UNSUPPORTED = ['id_token_hint', 'login_hint_token'];

/**
 * How long a request waits for a device, and the longest time that it waits for an answer to an e-mail; seconds.
 */
const DEVICE_SECONDS = 300;
const MAX_EXPIRY_SECONDS = 259_200;
/** The most characters of a scope, which is stored while the request waits. */
const MAX_SCOPE_LENGTH = 2_000;

/** Plain characters only, none of them invisible, which cannot disguise what the message says (CIBA Core 1.0 §7.1). */
const BINDING_MESSAGE = /^[[\p{L}\p{N} +_.,:#\-]--\p{Default_Ignorable_Code_Point}]{1,64}$/v;

/**
 * Handles a request: stores it and notifies its user.
 * @throws AuthError 401 `invalid_client`, 403 `unauthorized_client` for a client that may not use CIBA, 400 when
 *   the request is invalid, 429 when the user was asked too often.
 */
export async function authorizeBackchannel(
  deps: AuthorizationDependencies,
  ctx: Context,
): Promise<z.output<typeof authorizationAnswer>> {
  const client = await allowedClient(deps, await deps.authenticateClient(ctx));
  const fields = await backchannelParameters(deps, client, bodyFields(ctx, FIELDS));
  const { scope, expiry, bindingMessage } = checkParameters(fields);
  const audience = await audienceOf(deps, fields);
  const organization = await organizationOf(deps, client, fields.organization);
  const authorizationDetails =
    fields.authorization_details &&
    (await requestedDetails(deps.config, audience, fields.authorization_details));
  const acrValues = deps.acrValues.filter((one) => fields.acr_values?.split(' ').includes(one));
  const { user, connection } = await hintedUser(deps, client.client_id, requiredField(fields, 'login_hint'));
  // One limit for each user, whichever application asks: users who are asked again and again agree in the end.
  // docs/understand/decisions/tokens.md#a-user-is-asked-for-approval-at-most-ten-times-then-twice-a-minute
  if (!(await deps.rateLimits.spend(cibaLimits.approvals, user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many requests to this user. Try again later.');
  const requiresConsent = audience !== undefined && asksEachTime(await deps.config.resourceServer(audience));
  const pageApproval = {
    isRequired: requiresConsent,
    isPreferred: acrValues.length > 0,
    hasDetails: Boolean(authorizationDetails),
  };
  const notifyDevices = await devicesFor(deps, client, user, { expiry, pageApproval });
  const ttlSeconds = notifyDevices === undefined ? expiry : Math.min(expiry, DEVICE_SECONDS);
  const request = {
    clientId: client.client_id,
    scope,
    connection,
    ip: ctx.ip,
    ...(audience !== undefined && { audience }),
    ...(organization !== undefined && { organization }),
    ...(bindingMessage !== undefined && { bindingMessage }),
    ...(authorizationDetails && { authorizationDetails }),
    ...(requiresConsent && { asksEachTime: true }),
    ...(acrValues.length > 0 && { acrValues }),
  };
  const ticket = await issueBackchannelRequest(deps, user.id, request, ttlSeconds);
  const expiresAt = epochSeconds(deps.clock) + ttlSeconds;
  if (notifyDevices !== undefined) await notifyDevices();
  else {
    const all = authorizationDetails || [];
    const details = await shownDetails({ client }, deps, { audience, all });
    await mailApproval(deps, { client, user, ip: ctx.ip, ttlSeconds, details });
  }
  return {
    auth_req_id: requestId(client, ticket, expiresAt),
    expires_in: ttlSeconds,
    interval: BACKCHANNEL_INTERVAL,
  };
}

/**
 * Returns the client, which has to be a confidential first-party application with the grant: without a page no user
 * can be asked for consent.
 */
async function allowedClient({ config }: AuthorizationDependencies, clientId: string): Promise<Client> {
  const client = await config.client(clientId);
  const isAllowed = client?.grant_types?.includes(CIBA_GRANT) === true;
  if (client === undefined || !isAllowed || authenticationMethod(client) === 'none')
    throw refusal('unauthorized_client', `Grant type '${CIBA_GRANT}' not allowed for the client.`, 403);
  if (!client.is_first_party)
    throw refusal('unauthorized_client', 'Third-party applications must send the user to /authorize.', 403);
  return client;
}

function checkParameters(fields: Record<string, string>) {
  const { scope = '', binding_message: bindingMessage, requested_expiry: requested } = fields;
  for (const name of UNSUPPORTED)
    if (fields[name]) throw refusal('invalid_request', `${name} is not supported`);
  if (!scope.split(' ').includes('openid'))
    throw refusal('invalid_request', 'openid scope must be requested');
  if (scope.length > MAX_SCOPE_LENGTH) throw refusal('invalid_scope', 'The scope is too long');
  if (bindingMessage !== undefined && !BINDING_MESSAGE.test(bindingMessage))
    throw refusal(
      'invalid_binding_message',
      'binding_message must have 1 to 64 letters, digits, spaces, and + - _ . , : #',
    );
  const expiry = requested === undefined ? DEVICE_SECONDS : Number(requested);
  if (!/^\d+$/.test(requested ?? '300') || expiry < 1 || expiry > MAX_EXPIRY_SECONDS)
    throw refusal('invalid_request', `requested_expiry must be from 1 to ${MAX_EXPIRY_SECONDS}`);
  return { scope, expiry, bindingMessage };
}

async function audienceOf(
  { config }: AuthorizationDependencies,
  parameters: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const api = await requestedApi(config, parameters);
  if ('fault' in api) throw refusal('invalid_target', api.fault);
  const audience = api.identifier ?? config.settings().tenant.default_audience;
  if (audience === undefined || (await config.resourceServer(audience)) !== undefined) return audience;
  throw refusal('access_denied', `Service not found: ${audience}`, 403);
}

async function organizationOf(
  { config }: AuthorizationDependencies,
  { organization_usage: usage = 'deny' }: Client,
  parameter: string | undefined,
): Promise<string | undefined> {
  if (!parameter) {
    if (usage === 'require') throw refusal('invalid_request', 'parameter organization is required');
    return undefined;
  }
  const organization = await requestedOrganization(config, usage, parameter);
  if ('fault' in organization) throw refusal('invalid_request', organization.fault);
  return organization.id;
}

/**
 * Decides how a user is notified: on their devices if they have some and the request does not wait too long, or
 * else by e-mail.
 * @param pageApproval whether the request needs the page that the e-mail leads to, or is better answered there; and
 *   whether it has details, which not every device shows.
 * @returns a function that notifies the devices; undefined for e-mail.
 */
async function devicesFor(
  deps: AuthorizationDependencies,
  { async_approval_notification_channels: channels }: Client,
  { id, email, email_verified: isVerified }: User,
  {
    expiry,
    pageApproval,
  }: { expiry: number; pageApproval: { isRequired: boolean; isPreferred: boolean; hasDetails: boolean } },
): Promise<(() => Promise<void>) | undefined> {
  const allowed = channels ?? ['guardian-push'];
  const byMail = allowed.includes('email') && email !== undefined && isVerified === true;
  const prefersMail = byMail && (expiry > DEVICE_SECONDS || pageApproval.isPreferred);
  const isForDevices = allowed.includes('guardian-push') && !pageApproval.isRequired && !prefersMail;
  const notifyDevices = isForDevices ? await deps.devicesOf(id, pageApproval.hasDetails) : undefined;
  if (notifyDevices !== undefined || byMail) return notifyDevices;
  throw refusal(
    'invalid_request',
    'The user has no way to approve: no device, and no verified e-mail address.',
  );
}

function refusal(error: string, description: string, status = 400): AuthError {
  return new AuthError(status, error, description);
}

// The e-mail that asks a user to approve. Its link is no secret: whoever opens it has to log in, and sees what
// waits for them.

interface MailDependencies {
  baseUrl: string;
  messages: Pick<Messages, 'post'>;
}

/**
 * Queues the e-mail. It is stored when the promise resolves, and sent in the background.
 * @param about.ttlSeconds how long the request waits.
 */
async function mailApproval(
  { baseUrl, messages }: MailDependencies,
  about: { client: Client; user: User; ip: string; ttlSeconds: number; details: ShownDetail[] },
): Promise<void> {
  const { client, user, ip, ttlSeconds, details } = about;
  const url = `${baseUrl}${APPROVAL_PATH}?client_id=${encodeURIComponent(client.client_id)}`;
  const lifetimeInSeconds = ttlSeconds;
  const notice = { to: user.email ?? '', application: client, user, url, ip, lifetimeInSeconds, details };
  await messages.post('async_approval', notice, { ttlSeconds });
}

// Finds the user of a CIBA request by its `login_hint`: a subject identifier (RFC 9493 §3.2.3).

const subject = z.object({
  format: z.literal('iss_sub'),
  iss: z.string(),
  sub: z.string().min(1).max(300),
});

interface HintDependencies {
  issuer: string;
  users: Users;
  /** Whether a connection is enabled for an application. */
  hasRealm(clientId: string, realm: string): Promise<boolean>;
}

/**
 * Returns the user of a hint, and that connection of the user which is enabled for the application. A user of other
 * connections, and one who may not log in, counts as unknown: nobody asks their devices.
 * @throws AuthError 400 `unknown_user_id`
 */
async function hintedUser(
  { issuer, users, hasRealm }: HintDependencies,
  clientId: string,
  hint: string,
): Promise<{ user: User; connection: string }> {
  const parsed = subject.safeParse(jsonOf(hint));
  const isOurs = parsed.success && parsed.data.iss.replace(/\/$/, '') === issuer.replace(/\/$/, '');
  const user = isOurs ? await users.get(parsed.data.sub) : undefined;
  const isAdmitted = user !== undefined && admissionError(user) === undefined;
  for (const { connection } of isAdmitted ? await users.identitiesOf(user.id) : []) {
    if (isAdmitted && (await hasRealm(clientId, connection))) return { user, connection };
  }
  throw new AuthError(400, 'unknown_user_id', 'User ID is malformed or unknown');
}
