// Several codes or links may be under way for one subject, asked for by different callers: which is whose.
import type { ChallengeRecord } from '../records/protection-state.ts';
import type { Frozen } from '../records/record.ts';
import { sha256 } from '../runtime/secrets.ts';

type Challenge = Frozen<ChallengeRecord>;

/**
 * The id of a challenge. Subjects are addresses and numbers of people, askers are addresses of machines: the store's
 * keys need not show them.
 */
export function idOf(purpose: string, subject: string, asker?: string): string {
  return [purpose, sha256(subject), ...(asker === undefined ? [] : [sha256(asker)])].join(':');
}

/** Those that a caller with this key asked for. */
export function askedBy(all: readonly Challenge[], asker: string): Challenge[] {
  return all.filter(({ askers }) => askers?.includes(sha256(asker)) === true);
}

/** The one that is compared with what a caller tries: its own, by the surest of its keys, or the newest of all. */
export function chosenFor(
  all: readonly Challenge[],
  keys: readonly string[],
): { challenge: Challenge | undefined; isOwn: boolean } {
  for (const key of keys) {
    const challenge = newest(askedBy(all, key));
    if (challenge !== undefined) return { challenge, isOwn: true };
  }
  return { challenge: newest(all), isOwn: false };
}

function newest(all: readonly Challenge[]): Challenge | undefined {
  return [...all].sort((a, b) => (b.issuedAt ?? 0) - (a.issuedAt ?? 0))[0];
}
