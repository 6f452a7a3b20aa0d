// What is wrong with a job, or a user of its file, in the reader's language.
import type { Locale } from '../../pages/locales.ts';
import type { JobFaultRecord } from '../../records/job-faults.ts';

/** @param said the same in English: jobs of older releases have nothing else. */
export function jobWords(
  { text }: Pick<Locale, 'text'>,
  said: string,
  fault: JobFaultRecord | undefined,
): string {
  return fault === undefined ? said : text(`console.users.job.fault.${fault.name}`, fault.values);
}
