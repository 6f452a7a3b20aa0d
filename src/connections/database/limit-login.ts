// The limit of passwords that are tried, whatever way they come in.
import type { Context } from 'koa';
import type { Connection } from '../../records/collections.ts';

/** Counts a try of a password. @throws AuthError 429 when a user is tried too often from one address. */
export type LimitLogin = (ctx: Context, connection: Connection, identifier: string) => Promise<void>;
