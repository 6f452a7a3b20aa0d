// Why a job fails, and why a user of a file is not imported, for whoever puts it in words of another language.

/** What can be wrong, of a job as a whole and of one user. */
export const JOB_FAULTS = [
  ...(['empty', 'place', 'line', 'refused', 'connection', 'long', 'unexpected'] as const),
  ...(['there', 'twice', 'same', 'factors', 'username', 'missing', 'noAddress', 'type', 'minimum'] as const),
  ...(['maximum', 'format', 'choice', 'unknown', 'reserved', 'twoHashes', 'hash'] as const),
] as const;

/** One of them, and what its words name: a member of the user, a line of the file. */
export interface JobFaultRecord {
  name: (typeof JOB_FAULTS)[number];
  values?: Readonly<Record<string, string | number>>;
}
