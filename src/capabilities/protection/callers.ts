// Known callers: browsers and addresses that have logged in to an account before. They have limits of their own, so
// that guesses and messages of strangers cannot lock the owner out.

import { addressKey, addressList, networkKey } from '../../http/addresses.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';

/** The sender of a request. */
export interface Caller {
  ip: string;
  /** The browser's identifier (a cookie's hash), unless a page of another site made the request. */
  browser?: string | undefined;
  /** Whether this response sets the cookie. The browser may not keep it. */
  isNewBrowser?: boolean;
}

/** A caller that has logged in to the account before. */
interface KnownCaller {
  /** The key that limits of this caller are counted under, a hash. */
  key: string;
  by: 'browser' | 'address';
}

/** What the store knows of a caller. */
export interface CallerLookup {
  /** Undefined for a stranger. */
  known: KnownCaller | undefined;
  /** The keys of the caller to be written after a login, and whether any of them is new. */
  keysToWrite: readonly string[];
  isNew: boolean;
}

export interface KnownCallers {
  // docs/decisions/passwords-protection.md#known-callers-of-an-account-have-limits-of-their-own
  /**
   * Returns the caller if it logged in to the account in the last ninety days.
   * @param userId undefined when there is no such account; the lookup then takes the same time, so that timing does
   *   not reveal it.
   * @returns undefined for a stranger.
   */
  recognize(userId: string | undefined, caller: Caller): Promise<KnownCaller | undefined>;
  /** As {@link recognize}, with what {@link remember} would otherwise read again. */
  lookUp(userId: string | undefined, caller: Caller): Promise<CallerLookup>;
  /**
   * Remembers a caller that has logged in.
   * @param lookup the result of {@link lookUp} in this login.
   */
  remember(userId: string, caller: Caller, lookup?: CallerLookup): Promise<void>;
  /** Forgets all callers of an account, for example after a password reset. */
  forgetAllOf(userId: string): Promise<void>;
}

const KNOWN_SECONDS = 90 * 86_400;
/** A record is not written again within this time. */
const RENEW_SECONDS = 86_400;
/** How many callers of an account are kept. The least recently seen are deleted first. */
const MAX_CALLERS = 50;

/** Returns a caller's keys, the most specific first. */
export function callerKeys({ ip, browser, isNewBrowser = false }: Caller): string[] {
  const keys = [...(browser === undefined ? [] : [`browser:${browser}`]), `address:${addressKey(ip)}`];
  return isNewBrowser ? keys.reverse() : keys;
}

/**
 * Returns the keys that a challenge is requested under: the browser alone, because others may share its address. A
 * new browser also has the address, because it may not keep the cookie.
 */
export function askersOf(caller: Caller): string[] {
  const keys = callerKeys(caller);
  return caller.isNewBrowser === true ? keys : keys.slice(0, 1);
}

/** Returns the known callers of a store. Their keys are hashed. */
export function createKnownCallers(store: Store, clock: Clock): KnownCallers {
  const callers = store.collection('knownCallers');
  const idOf = (userId: string, key: string) => sha256(`${userId}\n${key}`);
  const lookUp = async (userId: string | undefined, caller: Caller): Promise<CallerLookup> => {
    const keys = callerKeys(caller);
    const found = await Promise.all(keys.map((key) => callers.get(idOf(userId ?? '', key))));
    const until = epochSeconds(clock) + KNOWN_SECONDS;
    const index = found.findIndex((one) => one !== undefined);
    const id = found[index]?.id;
    if (id !== undefined) raiseStanding('known');
    const by = keys[index]?.startsWith('browser:') === true ? 'browser' : 'address';
    return {
      known: id === undefined ? undefined : { key: id, by },
      keysToWrite: keys.filter((_key, at) => (found[at]?.expiresAt ?? 0) <= until - RENEW_SECONDS),
      isNew: found.includes(undefined),
    };
  };
  /** Deletes the least recently seen callers when there are too many. */
  const makeRoom = async (userId: string, added: number): Promise<void> => {
    const all = await callers.findBy('user', userId);
    const oldest = [...all]
      .sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0))
      .slice(0, Math.max(0, all.length + added - MAX_CALLERS));
    await Promise.all(oldest.map((one) => callers.delete(one.id)));
  };
  return {
    recognize: async (userId, caller) => (await lookUp(userId, caller)).known,
    lookUp,
    remember: async (userId, caller, lookup) => {
      const { keysToWrite, isNew } = lookup ?? (await lookUp(userId, caller));
      const expiresAt = epochSeconds(clock) + KNOWN_SECONDS;
      await Promise.all([
        ...keysToWrite.map((key) => callers.put({ id: idOf(userId, key), user_id: userId, expiresAt })),
        isNew && makeRoom(userId, keysToWrite.length),
      ]);
    },
    forgetAllOf: async (userId) => {
      await callers.deleteBy('user', userId);
    },
  };
}

// Lists of client addresses in the tenant's protection settings.

export { addressKey, networkKey };

/**
 * Each list is compiled once, because every login checks three of them. A change of the settings brings new arrays.
 */
const compiled = new WeakMap<readonly string[], (ip: string) => boolean>();

/** Returns whether a list of IP addresses and CIDR ranges contains an address. The list must not be mutated. */
export function isListed(list: readonly string[], ip: string): boolean {
  const known = compiled.get(list) ?? addressList(list);
  compiled.set(list, known);
  return known(ip);
}
