// Selects among several open codes or links for one subject that different callers have requested.
import type { ChallengeRecord } from '../../records/protection-state.ts';
import type { Frozen } from '../../records/record.ts';
import { sha256 } from '../../runtime/secrets.ts';

type Challenge = Frozen<ChallengeRecord>;

/**
 * Returns the id of a challenge. It contains hashes, because subjects are addresses and numbers of people, and
 * askers are network addresses.
 */
export function idOf(purpose: string, subject: string, asker?: string): string {
  return [purpose, sha256(subject), ...(asker === undefined ? [] : [sha256(asker)])].join(':');
}

/** Returns the challenges that a caller with this key requested. */
export function requestedBy(all: readonly Challenge[], asker: string): Challenge[] {
  return all.filter(({ askers }) => askers?.includes(sha256(asker)) === true);
}

/**
 * Returns the challenge to compare a caller's code with: the newest that the caller requested, by its most specific
 * key, or else the newest of all.
 */
export function challengeFor(
  all: readonly Challenge[],
  keys: readonly string[],
): { challenge: Challenge | undefined; isOwn: boolean } {
  for (const key of keys) {
    const challenge = newest(requestedBy(all, key));
    if (challenge !== undefined) return { challenge, isOwn: true };
  }
  return { challenge: newest(all), isOwn: false };
}

function newest(all: readonly Challenge[]): Challenge | undefined {
  return [...all].sort((a, b) => (b.issuedAt ?? 0) - (a.issuedAt ?? 0))[0];
}
