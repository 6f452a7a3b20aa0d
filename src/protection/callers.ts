// Browsers and addresses by which an account was proved before. Whatever strangers use up of an account's room, by
// guessing or by having messages sent, these have room of their own.
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import { addressKey } from './addresses.ts';

/** Who sends a request, as far as it says. */
export interface Caller {
  ip: string;
  /** The browser's fingerprint, where it is certain that no page of another site made the request. */
  browser?: string | undefined;
  /** Whether the browser has just got the name that it goes by, and may not keep it. */
  isNewBrowser?: boolean;
}

/** A caller by whom an account was proved before. */
export interface KnownCaller {
  /** The name of the room that is its own, a hash. */
  room: string;
  by: 'browser' | 'address';
}

export interface KnownCallers {
  /**
   * Whether an account was proved from here in the last ninety days.
   * @param userId undefined where there is no such account: nobody is known to it, found out in the same time.
   * @returns undefined for a stranger.
   */
  recognize(userId: string | undefined, caller: Caller): Promise<KnownCaller | undefined>;
  /** Notes that the account was proved from here. */
  note(userId: string, caller: Caller): Promise<void>;
  /** Makes strangers of all: the account may have been somebody else's so far. */
  forgetAllOf(userId: string): Promise<void>;
}

const KNOWN_SECONDS = 90 * 86_400;
/** It is not written anew at every login. */
const RENEW_SECONDS = 86_400;
/** Of one account; those that were not seen for longest go first. */
const MOST = 50;

/** What a caller can be told by, the surest first. */
export function callerKeys({ ip, browser, isNewBrowser = false }: Caller): string[] {
  const keys = [...(browser === undefined ? [] : [`browser:${browser}`]), `address:${addressKey(ip)}`];
  return isNewBrowser ? keys.reverse() : keys;
}

/**
 * As whom a caller asks for something: by the browser that others at its address do not have, or, where there is
 * none yet, by the address and by the name that the browser may keep.
 */
export function askersOf(caller: Caller): string[] {
  const keys = callerKeys(caller);
  return caller.isNewBrowser === true ? keys : keys.slice(0, 1);
}

/** The callers in a store; its keys show no address. */
export function createKnownCallers(store: Store, clock: Clock): KnownCallers {
  const callers = store.collection('knownCallers');
  const idOf = (userId: string, key: string) => sha256(`${userId}\n${key}`);
  const noteOne = async (userId: string, key: string): Promise<void> => {
    const id = idOf(userId, key);
    const expiresAt = epochSeconds(clock) + KNOWN_SECONDS;
    const known = await callers.get(id);
    if (known?.expiresAt !== undefined && known.expiresAt > expiresAt - RENEW_SECONDS) return;
    await callers.put({ id, user_id: userId, expiresAt });
    const all = await callers.findBy('user', userId);
    if (all.length <= MOST) return;
    const oldest = [...all]
      .sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0))
      .slice(0, all.length - MOST);
    await Promise.all(oldest.map((one) => callers.delete(one.id)));
  };
  return {
    recognize: async (userId, caller) => {
      const keys = callerKeys(caller);
      const known = await Promise.all(keys.map((key) => callers.get(idOf(userId ?? '', key))));
      const index = known.findIndex((one) => one !== undefined);
      const room = known[index]?.id;
      if (room === undefined) return undefined;
      return { room, by: keys[index]?.startsWith('browser:') === true ? 'browser' : 'address' };
    },
    note: async (userId, caller) => {
      await Promise.all(callerKeys(caller).map((key) => noteOne(userId, key)));
    },
    forgetAllOf: async (userId) => {
      await callers.deleteBy('user', userId);
    },
  };
}
