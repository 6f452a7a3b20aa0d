// Starts a passwordless login: creates and sends a code or link.
import type { Context } from 'koa';
import { deliveryEvents } from '../../../capabilities/delivery/delivery-declaration.ts';
import type {
  MessageKind,
  Messages,
  Notice,
  PreparedMessage,
} from '../../../capabilities/delivery/delivery-messages.ts';
import type {
  Challenges,
  NewChallenge,
  PreparedChallenge,
} from '../../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { askersOf, type Caller, type KnownCallers } from '../../../capabilities/protection/rate-limit.ts';
import { addressKey } from '../../../http/addresses.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Languages } from '../../../http/languages.ts';
import { DeliveryError } from '../../../records/base/message-transport.ts';
import type { Client, Organization } from '../../../records/collections.ts';
import { smsProviderOf } from '../../../records/connections/passwordless.ts';
import type { Events } from '../../../tenant/events.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import type { PasswordlessConnection } from './connection.ts';
import { passwordlessLimits } from './passwordless-declaration.ts';
import { PURPOSE, subjectOf } from './passwordless-strategy.ts';

export interface StartDependencies {
  users: Users;
  challenges: Challenges;
  callers: KnownCallers;
  messages: Messages;
  rateLimits: RateLimits;
  events: Events;
}

interface StartOptions {
  client: Client;
  connection: PasswordlessConnection;
  /** Normalized. */
  address: string;
  /** Returns the link of a secret; if absent, a code is sent. */
  link?: (secret: string) => string;
  /**
   * For codes of a database: the code is valid only with a ticket, which {@link start} returns. `isFor` says whether a code is
   * sent to an existing user.
   */
  session?: { purpose: string; data: Record<string, unknown>; mayReceive(user: User): boolean };
  caller: Caller;
  organization?: Organization | undefined;
  languages: Languages;
}

type StartWithUserAgent = StartOptions & { userAgent: string };

/**
 * Creates and sends a code or link, which replaces the same caller's earlier one. Nothing is sent to an unknown address on a
 * connection without sign-up, to a user whom `session.isFor` excludes, or after strangers have used up their messages to the
 * address; the caller cannot see that.
 * @returns the ticket if there is a {@link StartOptions.session}, even if nothing was sent.
 * @throws AuthError 429 if this caller has requested too many; 400 if the provider rejects the address, 503 if it cannot be
 *   reached. The code is not valid then.
 */
export async function start(
  deps: StartDependencies,
  ctx: Context,
  start: StartOptions,
): Promise<string | undefined> {
  const request: StartWithUserAgent = { ...start, userAgent: ctx.get('User-Agent') };
  const { client, connection, address, caller, session } = request;
  const { record, strategy, digits, ttlSeconds, disableSignup } = connection;
  const { kind } = strategy;
  const destination = `${strategy.name}\n${address}`;
  const user = await deps.users.findByAddress({ connection: record.name, kind, address });
  const knownCaller = await deps.callers.recognize(user?.id, caller);
  // Strangers are counted by IP address, because they can send a new browser cookie each time.
  const callerKey = knownCaller?.by === 'browser' ? knownCaller.key : addressKey(caller.ip);
  await deps.rateLimits.take(ctx, passwordlessLimits.passwordlessDestination, `${destination}\n${callerKey}`);
  const hasCapacity = await deps.rateLimits.spend(passwordlessLimits.passwordlessDestination, destination);
  const isRefused = !hasCapacity && knownCaller === undefined;
  const subject = subjectOf(client.client_id, record, address);
  const challenge: NewChallenge = {
    purpose: session?.purpose ?? PURPOSE,
    // If too many were requested, another subject is used, so that earlier codes stay valid.
    subject: isRefused ? `${subject}\nrefused` : subject,
    askers: askersOf(caller),
    // Requests of servers and forms of other sites have no browser; see startingBrowser.
    data: session?.data ?? { byPage: caller.browser !== undefined },
    ttlSeconds,
    userId: user?.id,
  };
  const prepared = prepareSecret(deps, request, { ...challenge, digits });
  const maySend = user === undefined ? !disableSignup : session?.mayReceive(user) !== false;
  if (isRefused) recordRefusal(deps, request);
  if (isRefused || !maySend) await sendNothing(deps, request, challenge, prepared);
  else {
    const outgoing = deps.messages.prepare(...message(request, prepared.secretToSend, user), {
      ref: prepared.ref,
      ttlSeconds,
    });
    await prepared.save([outgoing.write]);
    // In the background if waiting for the provider would reveal whether there is an account, or a known caller.
    if (disableSignup || session !== undefined || !hasCapacity) outgoing.post();
    else await sendNow(outgoing);
  }
  return prepared.ticket;
}

// docs/understand/decisions/passwordless-messages.md#a-link-carries-a-secret-of-256-bits-instead-of-a-six-digit-code
/** Prepares the code or the link's secret (`secretToSend`), and the ticket of a {@link StartOptions.session}. */
function prepareSecret(
  { challenges }: StartDependencies,
  { session, link }: StartOptions,
  challenge: NewChallenge & { digits: number },
): Omit<PreparedChallenge, 'secret'> & { secretToSend: string; ticket?: string } {
  if (session !== undefined) {
    const { secret, code, ...rest } = challenges.prepareWithCode(challenge);
    return { ...rest, secretToSend: code, ticket: secret };
  }
  const { secret, ...rest } =
    link === undefined ? challenges.prepareCode(challenge) : challenges.prepareTicket(challenge);
  return { ...rest, secretToSend: secret };
}

/** Waits until the provider has accepted a message. @throws AuthError 400 or 503, as {@link start}. */
async function sendNow(outgoing: PreparedMessage): Promise<void> {
  try {
    await outgoing.send();
  } catch (thrown) {
    throw thrown instanceof DeliveryError ? refusalOf(thrown) : thrown;
  }
}

// docs/understand/decisions/passwordless-messages.md#on-a-connection-with-disable_signup-no-response-says-who-has-an-account
/** Sends nothing, but writes as much as if something were sent, so that neither time nor response reveals it. */
async function sendNothing(
  { challenges, messages }: StartDependencies,
  request: StartWithUserAgent,
  challenge: NewChallenge,
  { ticket, save }: ReturnType<typeof prepareSecret>,
): Promise<void> {
  const outgoing = messages.decoy(...message(request, '', undefined));
  // The ticket is stored, because its absence would show in the time and the counting of a later try.
  await (ticket === undefined ? challenges.issueDecoy(challenge, [outgoing.write]) : save([outgoing.write]));
  outgoing.post();
}

/** Records that nothing was sent because too many messages were requested. */
function recordRefusal(
  { events }: StartDependencies,
  { client, connection, address, caller }: StartOptions,
): void {
  events.record({
    type: deliveryEvents.fn,
    client_id: client.client_id,
    connection: connection.record.name,
    user_name: address,
    ip: caller.ip,
    description: 'too many messages were asked for',
  });
}

/** Characters of the `User-Agent` that an SMS gateway is sent. */
const MAX_USER_AGENT_LENGTH = 512;

function message(
  { client, connection, address, link, organization, languages, caller, userAgent }: StartWithUserAgent,
  secret: string,
  user: User | undefined,
): [MessageKind, Notice] {
  const provider = smsProviderOf(connection.record.options);
  const forwardsUserAgent = provider?.forwardsRequest === true;
  const notice = {
    to: address,
    application: client,
    connection: connection.record,
    organization,
    user,
    languages,
    ip: caller.ip,
    ...(forwardsUserAgent && { userAgent: userAgent.slice(0, MAX_USER_AGENT_LENGTH) }),
    ...(link === undefined ? { code: secret } : { url: link(secret) }),
  };
  return [connection.strategy.message, notice];
}

function refusalOf(error: DeliveryError): AuthError {
  const { code, providerCode, message: text } = error;
  if (code === 'invalid-number') {
    const suffix = providerCode === undefined ? '' : ` (Code: ${providerCode})`;
    return new AuthError(400, 'sms_provider_error', `${text}${suffix}`, { cause: error });
  }
  return new AuthError(
    503,
    'temporarily_unavailable',
    'The message could not be sent. Try again in a few minutes.',
    { cause: error },
  );
}
