// Custom token exchange (RFC 8693): an action of the tenant verifies a subject token of another issuer and names its user. The
// result is a login like any other.
import type { Actions } from '../../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../../capabilities/actions/commands.ts';
import type { Actor } from '../../../capabilities/actions/exchange-methods.ts';
import { clientOf, userOf as factsOf, identityOf } from '../../../capabilities/actions/facts.ts';
import { type Attempts, tryProof } from '../../../capabilities/protection/attempts.ts';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { findOrganization } from '../../../engine/admission/admission.ts';
import { actionActor, exchangeEvents } from '../../../engine/admission/exchange-context.ts';
import type { SecondFactor } from '../../../engine/admission/second-factor.ts';
import { requestedAudience } from '../../../engine/base/request-extensions.ts';
import { storeMetadata } from '../../../engine/login/action-effects.ts';
import { apiOf, engineRequestOf, organizationEvent } from '../../../engine/login/login-event.ts';
import {
  issueTransferToken,
  refuseTransfer,
  transferAudience,
  transferFrom,
} from '../../../engine/session/session-transfer.ts';
import { ACCESS_TOKEN, type ExchangeToken, ID_TOKEN } from '../../../engine/token/token-exchange.ts';
import type { GrantAnswer, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { requiredField } from '../../../http/server/body.ts';
import { scopeValues } from '../../../records/clients/apis.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import type { Client } from '../../../records/collections.ts';
import { CUSTOM_AUTHENTICATION } from '../../../records/tenant/exchange-profile-schema.ts';
import type { ExchangeProfile } from '../../../records/tenant/exchange-profiles.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Login } from '../../../users/login.ts';
import type { User } from '../../../users/user.ts';
import { upstreamEvents } from '../upstream/upstream-declaration.ts';
import { type ExchangedUserDependencies, type NamedUser, namedUser } from './exchange-user.ts';

interface CustomExchangeDependencies extends ExchangedUserDependencies {
  /** Returns the user of an actor's ID token; undefined if the token is not valid. */
  actorOfIdToken(token: string): Promise<User | undefined>;
  /** Returns the second factors that a user has enrolled. */
  enrolledFactors: SecondFactor['enrolledFactors'];
  actions: Pick<Actions, 'run' | 'recordRefusal'>;
  attempts: Attempts;
  /** The time of day, for the time of a login. */
  wallClock: Clock;
  challenges: Pick<Challenges, 'issueTicket'>;
  random: Random;
}

const TRIGGER = 'custom-token-exchange';

/**
 * Returns the exchange of tokens that an action verifies ({@link ExchangeToken}). It handles the subject token types for
 * which the tenant has a profile, and returns undefined for others.
 */
export function customExchange(deps: CustomExchangeDependencies): ExchangeToken {
  return async (request) => {
    const { clientId, params, ip, ctx } = request;
    const profile = deps.config.exchangeProfile(params.subject_token_type ?? '');
    if (profile === undefined) return undefined;
    exchangeEvents.set(ctx, { success: upstreamEvents.secte, failure: upstreamEvents.fecte });
    const client = checkClient(await deps.config.client(clientId), request);
    const outcome = await runAction(deps, request, { client, profile });
    const { user, connection } = await userOf(deps, request, outcome);
    const { actor, organization } = outcome.exchange;
    const login: Login = {
      userId: user.id,
      connection,
      amr: [],
      // The token identifies the user, who need not be there.
      presence: 'absent',
      authTime: epochSeconds(deps.wallClock),
      ip,
      credentialVersion: await deps.users.credentialVersion(user.id),
    };
    if (transferAudience.of(ctx) !== undefined)
      return transferAnswer(deps, request, { login, actor, organization });
    if (actor !== undefined) actionActor.set(ctx, actor);
    return { login, organization, extra: { issued_token_type: ACCESS_TOKEN } };
  };
}

/** @throws AuthError 400 if the action named no actor, or one who in turn acts for another. */
async function transferAnswer(
  deps: CustomExchangeDependencies,
  { clientId, params, ctx }: GrantRequest,
  {
    login,
    actor,
    organization: actionOrganization,
  }: { login: Login; actor: Actor | undefined; organization: string | undefined },
): Promise<GrantAnswer> {
  if (actor === undefined)
    throw new AuthError(400, 'invalid_request', 'setActor is required for a session transfer token.');
  if (actor.act !== undefined)
    throw new AuthError(400, 'invalid_request', 'A session has one actor, who acts for themselves.');
  const organizationName = actionOrganization ?? params.organization;
  const organization = organizationName
    ? (await findOrganization(deps.config, organizationName)).id
    : undefined;
  const transfer = { ...transferFrom(ctx, { clientId, scope: params.scope }, deps.wallClock), act: actor };
  const answer = await issueTransferToken(deps, { login: { ...login, transfer }, organization });
  return { answer, userId: login.userId, connection: login.connection };
}

/** Rejects applications that may not use the exchange, and unsupported token types. @throws AuthError. */
function checkClient(client: Client | undefined, { params, ctx }: GrantRequest): Client {
  const { requested_token_type: requested } = params;
  const types = client?.token_exchange?.allow_any_profile_of_type ?? [];
  if (client === undefined || !types.includes(CUSTOM_AUTHENTICATION))
    throw new AuthError(403, 'unauthorized_client', 'Token exchange is not enabled for this client.');
  // Checked before the action runs: a third-party application needs the user's consent, which only a page can ask for.
  if (client.is_first_party === false)
    throw new AuthError(
      403,
      'unauthorized_client',
      'Third-party applications must send the user to /authorize.',
    );
  if (requested !== undefined && requested !== ACCESS_TOKEN)
    throw new AuthError(400, 'invalid_request', 'The requested_token_type is not supported.');
  if (transferAudience.of(ctx) === undefined) return client;
  refuseTransfer(client);
  // A session transfer token gives a session of any user, so the client has to authenticate.
  if (authenticationMethod(client) === 'none')
    throw new AuthError(403, 'unauthorized_client', 'Session transfer takes a client that authenticates.');
  return client;
}

/**
 * Runs the action that verifies the subject token. Tokens that it reports as invalid are counted by IP address.
 * @throws AuthError when it rejects the token, or fails; 429 after too many invalid tokens from that address.
 */
async function runAction(
  deps: CustomExchangeDependencies,
  { clientId, params, ip, ctx }: GrantRequest,
  { client, profile }: { client: Client; profile: ExchangeProfile },
): Promise<ActionOutcome> {
  const { actions, attempts, config } = deps;
  const token = requiredField(params, 'subject_token');
  const { action } = profile;
  if (action === undefined)
    throw new AuthError(400, 'invalid_request', 'The action for this subject_token_type is not deployed.');
  const event = {
    client: clientOf(client, clientId),
    ...apiOf(transferAudience.of(ctx) ?? requestedAudience(params)),
    ...(await organizationEvent(config, params.organization)),
    request: engineRequestOf(ctx),
    transaction: { ...transactionOf(params), ...(await actorPart(deps, params)) },
  };
  const hidden = [token, ...(params.actor_token ? [params.actor_token] : [])];
  let outcome: ActionOutcome | undefined;
  const attempt = {
    ip,
    connection: '',
    identifier: '',
    proof: 'code',
    stage: 'pre-custom-token-exchange',
  } as const;
  await tryProof(attempts, attempt, async () => {
    outcome = await actions.run(TRIGGER, event, { client_id: clientId, ip }, { bound: [action], hidden });
    return outcome.exchange.isInvalid === true ? undefined : outcome;
  });
  if (outcome === undefined) throw new TypeError('the action was not run');
  const { denied } = outcome;
  if (denied === undefined) return outcome;
  const code = denied.code ?? 'invalid_request';
  throw new AuthError(code === 'server_error' ? 500 : 400, code, denied.reason);
}

function transactionOf(params: GrantRequest['params']): Record<string, unknown> {
  const { subject_token, subject_token_type, actor_token, actor_token_type, requested_token_type } = params;
  const requested_scopes = scopeValues(params.scope);
  return {
    protocol: 'oauth2-token-exchange',
    requested_scopes,
    requested_token_type: requested_token_type ?? ACCESS_TOKEN,
    subject_token,
    subject_token_type,
    ...(actor_token !== undefined && { actor_token, actor_token_type }),
  };
}

// docs/understand/decisions/actions-scripts.md#actor_token_user-may-be-missing
/** Returns `event.transaction.actor_token_user`: the user of the actor token, if that is a valid ID token of this server. */
async function actorPart(
  { actorOfIdToken, enrolledFactors: factorsOf, users }: CustomExchangeDependencies,
  { actor_token: token, actor_token_type: type }: GrantRequest['params'],
): Promise<Record<string, unknown>> {
  const user = token !== undefined && type === ID_TOKEN ? await actorOfIdToken(token) : undefined;
  if (user === undefined) return {};
  const [enrolledFactors, identities] = await Promise.all([factorsOf(user), users.identitiesOf(user.id)]);
  return { actor_token_user: { ...factsOf(user), enrolledFactors, identities: identities.map(identityOf) } };
}

/**
 * Returns the user that the action named, after storing the metadata that it set.
 * @throws AuthError if it did not name exactly one, or that user does not exist or is blocked.
 */
async function userOf(
  deps: CustomExchangeDependencies,
  request: GrantRequest,
  outcome: ActionOutcome,
): Promise<NamedUser> {
  const { exchange } = outcome;
  const details = { client_id: request.clientId, ip: request.ip };
  const [reference, ...others] = exchange.users;
  if (reference === undefined || others.length > 0) {
    deps.actions.recordRefusal(TRIGGER, 'an exchange for other than one user', details);
    throw new AuthError(400, 'invalid_request', 'The subject_token is not of one user.');
  }
  const found = await namedUser(deps, request, reference);
  const target = {
    trigger: TRIGGER,
    userId: found.user.id,
    about: { ...details, user_id: found.user.id },
  } as const;
  await storeMetadata(deps, target, outcome);
  return found;
}
