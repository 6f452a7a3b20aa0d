// Words the faults of a job in the reader's language.
import type { Locale } from '../../../capabilities/pages/locales.ts';
import type { JobFaultRecord } from '../../../records/job-faults.ts';

/** Returns the message of a fault. @param message the English message, for a fault that has no words here. */
export function jobWords(
  { text }: Pick<Locale, 'text'>,
  message: string,
  fault: JobFaultRecord | undefined,
): string {
  return fault === undefined ? message : text(`console.users.job.fault.${fault.name}`, fault.values);
}
