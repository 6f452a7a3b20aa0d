// The request that the current work is done for: who asks, and the id by which the log ties its events together. Everything that
// is scarce asks here, so that no caller has to pass it on, and none can forget to.
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Origin, OWN } from './shares.ts';

export interface Requester {
  origin: Origin;
  /**
   * `stranger`: anybody. `known`: has logged in to the account before, from this browser or address. `trusted`: an
   * administrator or an authenticated program of theirs, or the server itself.
   */
  standing: 'stranger' | 'known' | 'trusted';
}

/** Correlation of log events: the events of all requests of one login have the id of the login. */
export interface Correlation {
  /** Gives the current work the id of something that began earlier. @param id no secret. */
  setId(id: string): void;
  /** Returns the id of the request, which what it starts in the background has too; undefined outside of requests. */
  id(): string | undefined;
}

interface Current {
  id: string;
  origin(): Origin;
  standing: Requester['standing'];
}

/** A key, not a state: what it leads to belongs to each request. */
const current = new AsyncLocalStorage<Current>();

/** @param id no secret. @param origin called when it matters: an address may be found out late. */
export function askedBy<T>({ id, origin }: Pick<Current, 'id' | 'origin'>, work: () => T): T {
  return current.run({ id, origin, standing: 'stranger' }, work);
}

export const correlation: Correlation = {
  setId: (id) => {
    const now = current.getStore();
    if (now !== undefined) now.id = id;
  },
  id: () => current.getStore()?.id,
};

/** Raises the standing of the current requester, once it has shown what it is. */
export function raiseStanding(standing: 'known' | 'trusted'): void {
  const now = current.getStore();
  if (now !== undefined && now.standing !== 'trusted') now.standing = standing;
}

/** Returns who asks for the current work: the server itself outside of requests. */
export function requester(): Requester {
  const now = current.getStore();
  return now === undefined
    ? { origin: OWN, standing: 'trusted' }
    : { origin: now.origin(), standing: now.standing };
}
