// Bounds the memory that long request bodies take: a few are read and handled at once, shared among networks.
import type { Context, Middleware } from 'koa';
import { requester } from '../runtime/requester.ts';
import { createShares } from '../runtime/shares.ts';
import { serverBusy } from './errors.ts';

/**
 * Limits how many requests have a long body at once, from the time it is read until the request is answered.
 * @param max how many.
 * @param usualBytes the length that counts as long; a body that does not say its length counts as long, too.
 * @returns a function that limits a reader of bodies. Where the requester has its share, that throws AuthError 503
 * `temporarily_unavailable`.
 */
export function limitLongBodies(max: number, usualBytes: number): (read: Middleware) => Middleware {
  const held = createShares<Context>();
  return (read) => (ctx, next) => {
    const { 'transfer-encoding': coding, 'content-length': length } = ctx.req.headers;
    if (coding === undefined && Number(length ?? 0) <= usualBytes) return read(ctx, next);
    const { origin } = requester();
    if (!held.mayHold(origin, max)) throw serverBusy();
    held.add(ctx, origin);
    ctx.res.once('close', () => held.delete(ctx));
    return read(ctx, next);
  };
}
