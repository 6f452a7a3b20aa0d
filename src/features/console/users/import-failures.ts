// Lists the failures of an import.
import type { Locale } from '../../../capabilities/pages/locales.ts';
import type { JobFaultRecord } from '../../../records/job-faults.ts';
import { jobWords } from './job-words.ts';

/** A user that was not imported, as reported by the Management API. */
export interface ImportFailure {
  user: Readonly<Record<string, unknown>>;
  errors: readonly { code: string; message: string; path?: string; fault?: JobFaultRecord }[];
  /**
   * The position in the file: the number of the user, and the line if each user has a line of its own. Older jobs
   * lack it.
   */
  place?: { number: number; line?: number };
}

/** The maximum number of users listed; the Management API returns all of them. */
const MAX_LISTED = 200;

/** Members by which a user can be found in the file, the best first. */
const NAMES = ['email', 'username', 'phone_number', 'user_id', 'name'] as const;

/** Returns a line for each user up to the maximum, and the number of further users. */
export function failuresOf(
  failed: readonly ImportFailure[],
  locale: Locale,
): {
  lines: {
    user: string | undefined;
    place: ImportFailure['place'];
    errors: { message: string; path?: string }[];
  }[];
  more: number;
} {
  const lines = failed.slice(0, MAX_LISTED).map(({ user, errors, place }) => ({
    place,
    user: NAMES.map((name) => user[name]).find((one) => typeof one === 'string' && one !== '') as
      | string
      | undefined,
    errors: errors.map(({ message, path, fault }) => ({
      message: jobWords(locale, message, fault),
      ...(path !== undefined && { path }),
    })),
  }));
  return { lines, more: Math.max(0, failed.length - MAX_LISTED) };
}
