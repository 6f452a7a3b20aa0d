// Who asks for the current work: the origin of the request that it is done for. Everything that is scarce asks here, so
// that no caller has to pass it on, and none can forget to.
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Origin, OWN } from './shares.ts';

/** Who asks. */
export interface Requester {
  origin: Origin;
  /**
   * `stranger`: anybody. `known`: has logged in to the account before, from this browser or address. `trusted`: an
   * administrator or an authenticated program of theirs, or the server itself.
   */
  standing: 'stranger' | 'known' | 'trusted';
}

interface Asking {
  origin(): Origin;
  standing: Requester['standing'];
}

/** A key, not a state: what it leads to belongs to each request. */
const asking = new AsyncLocalStorage<Asking>();

/** Runs the work of a request. @param origin called when it matters: an address may be found out late. */
export function askedBy<T>(origin: () => Origin, work: () => T): T {
  return asking.run({ origin, standing: 'stranger' }, work);
}

/** Raises the standing of the current requester, once it has shown what it is. */
export function raiseStanding(standing: 'known' | 'trusted'): void {
  const now = asking.getStore();
  if (now !== undefined && now.standing !== 'trusted') now.standing = standing;
}

/** Returns who asks for the current work: the server itself outside of requests. */
export function requester(): Requester {
  const now = asking.getStore();
  return now === undefined
    ? { origin: OWN, standing: 'trusted' }
    : { origin: now.origin(), standing: now.standing };
}
