// What of an import failed, as a page lists it.
import type { Locale } from '../../pages/locales.ts';
import type { JobFaultRecord } from '../../records/job-faults.ts';
import { jobWords } from './job-words.ts';

/** A user that was not imported, as the Management API tells it. */
export interface ImportFailure {
  user: Readonly<Record<string, unknown>>;
  errors: readonly { code: string; message: string; path?: string; fault?: JobFaultRecord }[];
  /** Where the file has them: which of its users, and in which line where each has one. Older jobs do not tell. */
  place?: { number: number; line?: number };
}

/** Users that are listed: all of them are in the answer of the Management API. */
const MOST = 200;

/** By what somebody is found in their file, the best first. */
const NAMES = ['email', 'username', 'phone_number', 'user_id', 'name'] as const;

/** A line for each user, and how many more there are. */
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
  const lines = failed.slice(0, MOST).map(({ user, errors, place }) => ({
    place,
    user: NAMES.map((name) => user[name]).find((one) => typeof one === 'string' && one !== '') as
      | string
      | undefined,
    errors: errors.map(({ message, path, fault }) => ({
      message: jobWords(locale, message, fault),
      ...(path !== undefined && { path }),
    })),
  }));
  return { lines, more: Math.max(0, failed.length - MOST) };
}
