// State of the protections: challenges, failed attempts, known callers, limits.
import type { Stored } from '../base/record.ts';

/**
 * A secret that was sent to a person, who returns it as proof that it arrived: a code, or the ticket in a link. `id`
 * depends on purpose and subject and, if several callers may ask for it, on the caller, so that a new one replaces
 * the old. For a ticket that awaits approval, it is `secretHash`. Only a hash of the secret is stored.
 */
export interface ChallengeRecord extends Stored {
  purpose: string;
  /** Purpose and a hash of the subject, if a subject may have several challenges. */
  subject?: string;
  /** Hashes of the browser, the address, or both, that asked for it. */
  askers?: string[];
  /** When it was issued, in epoch milliseconds, if a subject may have several. */
  issuedAt?: number;
  /** SHA-256 of a ticket, or HMAC of a code with `salt`: a code is short enough to be guessed from a plain hash. */
  secretHash: string;
  salt?: string;
  /**
   * Number of wrong attempts left: in total or, if several callers may ask for a challenge, for each key of `wrong`.
   */
  triesLeft: number;
  /** Wrong attempts of the caller who asked, of each known caller, and of all others together. */
  wrong?: Record<string, number>;
  spent: boolean;
  /** For a ticket that needs a code as well: HMAC and salt of the code. */
  boundCode?: { hash: string; salt: string };
  /**
   * For a ticket that somebody has to approve. `askedAt`: time of the last poll, in epoch milliseconds. `pause`:
   * shortest interval between two polls, in milliseconds.
   */
  approval?: { state: 'pending' | 'accepted' | 'rejected'; askedAt?: number; pause?: number };
  user_id?: string;
  /** Whether it stands for a login that waits for its user, of which an address may have fewer. */
  isWaiting?: true;
  /** The id of the session in which it was requested, if it ends with the session. */
  session?: string;
  data: Record<string, unknown>;
}

/**
 * Failed attempts at an account (from one address, or from all), or from an address at all accounts. `id` is a hash
 * of these. Written only after failures.
 */
export interface FailureRecord extends Stored {
  /** A hash of the account; not set for an address at all accounts. */
  account?: string;
  /** For an account that was reached by what was typed: hashes of the latest texts. */
  typed?: string[];
  /** For an account: the address of the latest attempt. */
  ip?: string;
  failures: number;
  /** Time of the latest attempt, in epoch milliseconds. */
  at: number;
}

/** A browser or address from which a user has logged in; `id` is a hash of it and of the user. */
export interface KnownCallerRecord extends Stored {
  user_id: string;
}

export interface LimitRecord extends Stored {
  tokens: number;
  /** Time at which `tokens` was computed, in epoch milliseconds. */
  at: number;
}
