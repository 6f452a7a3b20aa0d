// What the tokens of a token exchange (RFC 8693) have beyond those of other grants. It is kept in the request's
// context while the tokens are made.
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { requestValue } from '../../http/server/request-target.ts';
import type { EventType } from '../../records/base/log-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Login, Transfer } from '../../users/login.ts';
import { lackFor } from '../../users/login.ts';
import type { User } from '../../users/user.ts';

/** One error for every token that cannot be exchanged, so that it does not tell which check failed. */
export const invalidTokenError = (which = 'subject_token') =>
  new AuthError(400, 'invalid_request', `The ${which} is not good for this client.`);

/** Limits and claims of the tokens of an exchange. */
export interface ExchangeLimits {
  /**
   * When the exchanged token expires, epoch seconds. The new ones expire then, too: otherwise exchanging again and
   * again would never end.
   */
  endsAt: number;
  /**
   * The `sid` of the session of the exchanged token, where it has one. The new tokens end with that session, too.
   */
  sessionId?: string | undefined;
  /** Who acts for the user (RFC 8693 §4.1). */
  act?: Readonly<Record<string, unknown>> | undefined;
  /** The grant of the exchanged token, with which the new tokens end, too (`grant_id`). */
  grantId?: string | undefined;
  /** Whether the exchanged token is bound to a key: the new ones have to be, too. */
  isBound?: boolean;
  /** Whether the exchanged token has ended meanwhile: asked again once the new ones are stored, which would outlive it. */
  hasEnded(): Promise<boolean>;
}

/** The log events of an exchange that are not those of its grant. */
interface ExchangeEvents {
  success: EventType;
  failure: EventType;
}

/** The log events of a request; undefined when those of the grant apply. */
export const exchangeEvents = requestValue<ExchangeEvents>('exchange events');

/** The limits and claims of a request's tokens; undefined when it is no exchange. */
export const exchangeLimits = requestValue<ExchangeLimits>('exchange limits');

/** The actor that an action of the tenant has set for a login. */
export const actionActor = requestValue<Readonly<Record<string, unknown>>>('actor of an action');

// docs/understand/decisions/actions-scripts.md#an-actor-that-an-action-sets-is-in-every-token-of-its-exchange
/** Returns the actor of a request (RFC 8693 §4.1), if there is one. */
export function actorOf(ctx: KoaContextWithOIDC | undefined): Readonly<Record<string, unknown>> | undefined {
  const actor = ctx && (actionActor.of(ctx) ?? exchangeLimits.of(ctx)?.act);
  return actor ?? delegationOf(ctx)?.act;
}

/** Returns the session transfer of the session in which a request's tokens are issued, if there is one. */
function delegationOf(ctx: KoaContextWithOIDC | undefined): Transfer | undefined {
  const { entities, session } = ctx?.oidc ?? {};
  return transferOf(entities?.Grant) ?? transferOf(session);
}

/**
 * Limits the lifetime of a new token to that of the exchanged one.
 * @param clock the wall clock, by which tokens are dated.
 * @param seconds the lifetime without a limit.
 * @returns seconds.
 */
export function limitedLifetime(ctx: KoaContextWithOIDC | undefined, clock: Clock, seconds: number): number {
  const endsAt = (ctx && exchangeLimits.of(ctx))?.endsAt ?? delegationEnd(delegationOf(ctx));
  if (endsAt === undefined) return seconds;
  // Rounded down, because the engine dates the token a moment later, which may be the next second. It accepts no
  // lifetime of 0.
  return Math.max(1, Math.min(seconds, endsAt - Math.ceil(clock() / 1000)));
}

// Sessions that were transferred to a browser (session_transfer_token), and among them those in which somebody acts
// for the user (delegation). Delegated sessions are short and never ask the user for anything, because the user is
// not there.

/** Lifetime of a session in which somebody acts for the user, seconds. */
const DELEGATED_SECONDS = 2 * 3600;

/**
 * The transfer that a session, or the session of a grant, began with; undefined for one that began with a login.
 */
export function transferOf(artifact: object | undefined): Transfer | undefined {
  return (artifact as { transfer?: Transfer } | undefined)?.transfer;
}

/**
 * Returns when a session ends in which somebody acts for the user, epoch seconds; undefined for any other session.
 */
function delegationEnd(transfer: Transfer | undefined): number | undefined {
  return transfer?.act === undefined ? undefined : transfer.at + DELEGATED_SECONDS;
}

/** Returns the members by which a session records its transfer. They replace those of an earlier one. */
export function transferMembers(session: object, transfer: Transfer | undefined): object {
  const expiresAt = delegationEnd(transfer);
  if (expiresAt !== undefined) return { transfer, bounds: { expiresAt }, transient: true };
  const wasDelegated = transferOf(session)?.act !== undefined;
  return { transfer, ...(wasDelegated && { bounds: undefined, transient: undefined }) };
}

/**
 * Whether a login in which nobody was there would have to enroll a second factor because its user has none. The user has
 * to log in first.
 * @param secondFactor returns the second factors that a user has.
 */
export async function wouldEnroll(
  secondFactor: { enrolledFactors(user: User): Promise<readonly object[]> },
  login: Pick<Login, 'presence'>,
  user: User | undefined,
): Promise<boolean> {
  return (
    lackFor('first_factor', login, 0) !== undefined &&
    (user === undefined || (await secondFactor.enrolledFactors(user)).length === 0)
  );
}
