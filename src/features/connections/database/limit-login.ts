// The rate limit of passwords, at every endpoint that takes one.
import type { Context } from 'koa';
import type { Connection } from '../../../records/collections.ts';

/** Counts a password that is tried. @throws AuthError 429 if there were too many for a user from one IP address. */
export type LimitLogin = (ctx: Context, connection: Connection, identifier: string) => Promise<void>;
