// A try to prove who somebody is, and what is done when one of many fails.
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Caller, KnownCallers } from './callers.ts';

/** Whose proof is tried, and from where. */
export interface Attempt extends Caller {
  /** The connection's name. */
  connection: string;
  /** E-mail address, phone number or username, as typed. */
  identifier: string;
  /**
   * The user whom that names, if there is one: for {@link AttemptsDependencies.onLocked}, and for who is known;
   * counted is what was typed.
   */
  userId?: string | undefined;
  /** What is guessed: of a short code the right one is found sooner than a password. */
  what: 'password' | 'code';
  /**
   * What is tried after the first proof, such as `mfa`: counted by itself, or whoever has the password could
   * have wrong codes forgiven by logging in again.
   */
  step?: string;
  /** What only the address is counted for, by itself: there is no account. */
  stage?: 'pre-custom-token-exchange';
  /** Whether the connection's users have several names: wrong tries by all of them are one account's, too. */
  hasSeveralNames?: boolean;
  /** The connection's `brute_force_protection`; true where it says nothing. */
  locks?: boolean;
}

/** An account that has just been locked. */
export interface Lock {
  notify: boolean;
  lockedFor: 'known' | 'address' | 'strangers';
}

export interface AttemptsDependencies {
  store: Store;
  config: Config;
  callers: KnownCallers;
  clock: Clock;
  /**
   * Called when an account gets locked. `notify`: whether the tenant wants its owner told. `lockedFor`: a caller by
   * whom it was proved before, the strangers of one address, or all strangers. Once it resolves, what is to be told is kept.
   */
  onLocked(attempt: Attempt, lock: Lock): Promise<void>;
  /** How many counts of failures are kept at most. */
  mostCounts?: number;
  /** Called when an address gets throttled. */
  onThrottled(attempt: Attempt): void;
}
