// An attempt to authenticate, and what happens when too many fail.
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Caller, KnownCallers } from './rate-limit.ts';

export interface Attempt extends Caller {
  /** The connection's name. */
  connection: string;
  /** E-mail address, phone number or username, as typed. */
  identifier: string;
  /**
   * The user that the identifier names, if there is one. It is used for {@link AttemptsDependencies.onLocked} and
   * to find known callers.
   */
  userId?: string | undefined;
  // docs/understand/decisions/passwords-protection.md#wrong-passwords-are-counted-under-what-was-typed-and-under-the-account-it-reaches
  /**
   * The account that the identifier reached, under every name that does not depend on what was typed: failures are
   * counted under each of them, in addition to the typed identifier. Otherwise each spelling that a directory or
   * database compares as equal, and each other identifier of the account, would allow as many guesses again. Empty if
   * there is no such account, or none is looked up.
   */
  accounts?: readonly string[];
  /** What is guessed. A short code takes fewer guesses than a password, so it has its own limit. */
  proof: 'password' | 'code';
  /**
   * The step of the login after the first factor, such as `mfa`; undefined for the first factor. Each step has its
   * own count. Otherwise an attacker who has the password could reset the count of wrong codes by logging in again.
   */
  step?: string;
  /**
   * Set for an attempt that is not a login to an account, named as in the settings. Only the failures of the address
   * are counted, separately from those of logins.
   */
  stage?: 'pre-custom-token-exchange';
  /** The connection's `brute_force_protection`; undefined means true. */
  locksAccount?: boolean;
}

/** Describes a lock that has just begun. */
export interface Lock {
  /** Whether the tenant wants the owner to be notified. */
  notify: boolean;
  /**
   * Whom the account is locked for: `known`, one known caller; `address`, the strangers of one address (or all, with
   * the mode `count_per_identifier`); `strangers`, all strangers, after guesses from many addresses.
   */
  lockedFor: 'known' | 'address' | 'strangers';
}

export interface AttemptsDependencies {
  store: Store;
  config: Config;
  callers: KnownCallers;
  clock: Clock;
  /** Called when an account gets locked; resolves once the notice is stored. */
  onLocked(attempt: Attempt, lock: Lock): Promise<void>;
  onThrottled(attempt: Attempt): void;
}
