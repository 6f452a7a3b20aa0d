// What is counted and awaited: challenges, failed proofs, known callers, limits.
import type { Stored } from './record.ts';

/**
 * Something that was sent to a person and proves by coming back that it reached them: a code or a link's
 * ticket. `id` is of its purpose, its subject and, where several may ask for it, who asked, so that a new one
 * replaces the old; where it waits for an approval, it is `secretHash`. Only a hash is kept.
 */
export interface ChallengeRecord extends Stored {
  purpose: string;
  /** Purpose and a hash of the subject, where there may be several. */
  subject?: string;
  /** Hashes of who asked: a browser, an address, or both of one caller. */
  askers?: string[];
  /** Epoch milliseconds, where there may be several of a subject. */
  issuedAt?: number;
  /** SHA-256 of a ticket, HMAC under `salt` of a code, which is short enough to be guessed from a bare hash. */
  secretHash: string;
  salt?: string;
  /** Wrong tries that are left: of all together, or, where several may ask for it, of each room. */
  triesLeft: number;
  /** Wrong tries by room: of who asked, of each caller that is known, of all strangers together. */
  wrong?: Record<string, number>;
  spent: boolean;
  /** Of a ticket that does not do alone: HMAC and salt of the code that comes with it. */
  boundCode?: { hash: string; salt: string };
  /**
   * Of a ticket that somebody has to approve. `askedAt`: epoch milliseconds of the last question whether they have.
   * `pause`: milliseconds that have to be between two.
   */
  approval?: { state: 'pending' | 'accepted' | 'rejected'; askedAt?: number; pause?: number };
  user_id?: string;
  /** The id of the user's session in which it was asked for, where it ends with that. */
  session?: string;
  data: Record<string, unknown>;
}

/**
 * Failed proofs: of an account (from one address, or from all), or from an address across accounts. `id` is a
 * hash of which. Written at failures alone; outlives a restart.
 */
export interface FailureRecord extends Stored {
  /** The account it is about, hashed; none for an address across accounts. */
  account?: string;
  /** Of an account: from where the latest came. */
  ip?: string;
  failures: number;
  /** Epoch milliseconds of the latest. */
  at: number;
}

/** A browser or address by which an account was proved; `id` is a hash of it and of the user. */
export interface KnownCallerRecord extends Stored {
  user_id: string;
}

/** A counter of the protection layer: a bucket's level at a time. */
export interface LimitRecord extends Stored {
  tokens: number;
  /** Epoch milliseconds when `tokens` was computed. */
  at: number;
}
