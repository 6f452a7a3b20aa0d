// The rate limit of passwords, at every endpoint that takes one.
import type { Context } from 'koa';
import { nameKey } from './attempts.ts';
import { protectionLimits } from './declaration.ts';
import type { RateLimits } from './rate-limit.ts';

/** Counts a password that is tried. @throws AuthError 429 if there were too many for a user from one IP address. */
export type LimitLogin = (ctx: Context, connection: { name: string }, identifier: string) => Promise<void>;

export function limitLogins(rateLimits: Pick<RateLimits, 'takeFrom'>): LimitLogin {
  return (ctx, connection, identifier) =>
    rateLimits.takeFrom(ctx, protectionLimits.login, `${connection.name}\n${nameKey(identifier)}`);
}
