// What tokens of a token exchange (RFC 8693) have beyond those of other grants. Kept with the request while the
// tokens are made.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { EventType } from '../records/log-events.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Transfer } from '../users/login.ts';
import { delegationEnd, transferOf } from './handed-over.ts';

/** Of the tokens of an exchange. */
export interface Exchanged {
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
}

/** The log events of an exchange that are not those of its grant. */
interface ExchangeEvents {
  success: EventType;
  failure: EventType;
}

/** Keeps which events tell of a request. */
export function keepExchangeEvents(ctx: Context, exchangeEvents: ExchangeEvents): void {
  Object.assign(ctx.state, { exchangeEvents });
}

/** Undefined where the log events of the grant apply. */
export function exchangeEventsOf(ctx: Context | KoaContextWithOIDC): ExchangeEvents | undefined {
  return (ctx.state as { exchangeEvents?: ExchangeEvents }).exchangeEvents;
}

/** Keeps it. */
export function keepExchanged(ctx: Context | KoaContextWithOIDC, exchanged: Exchanged): void {
  Object.assign(ctx.state, { exchanged });
}

/** Keeps who acts for the user of a login that an action of the tenant's has judged. */
export function keepActor(ctx: Context, actor: Readonly<Record<string, unknown>>): void {
  Object.assign(ctx.state, { actor });
}

/** Who acts for the user of a request (RFC 8693 §4.1), if anybody does. */
export function actorOf(ctx: KoaContextWithOIDC | undefined): Readonly<Record<string, unknown>> | undefined {
  const { actor } = (ctx?.state ?? {}) as { actor?: Readonly<Record<string, unknown>> };
  return actor ?? exchangedOf(ctx)?.act ?? delegationOf(ctx)?.act;
}

/** The session transfer behind a request's tokens, where they are issued in a transferred session. */
function delegationOf(ctx: KoaContextWithOIDC | undefined): Transfer | undefined {
  const { entities, session } = ctx?.oidc ?? {};
  return transferOf(entities?.Grant) ?? transferOf(session);
}

/** What a request exchanges; undefined for every other request. */
export function exchangedOf(ctx: KoaContextWithOIDC | undefined): Exchanged | undefined {
  return (ctx?.state as { exchanged?: Exchanged } | undefined)?.exchanged;
}

/**
 * A lifetime of a token that is made now, within what an exchange leaves.
 * @param clock the wall clock, by which tokens are dated.
 * @param seconds its own.
 */
export function withinExchanged(ctx: KoaContextWithOIDC | undefined, clock: Clock, seconds: number): number {
  const endsAt = exchangedOf(ctx)?.endsAt ?? delegationEnd(delegationOf(ctx));
  if (endsAt === undefined) return seconds;
  // Rounded down: the engine dates the token a moment later, which may be another second. It takes no lifetime of none.
  return Math.max(1, Math.min(seconds, endsAt - Math.ceil(clock() / 1000)));
}
