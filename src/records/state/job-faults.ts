// Reasons why a job fails or a user of a file is not imported, in a form that can be translated.

/** The reasons, for whole jobs and for single users. */
export const JOB_FAULTS = [
  ...(['empty', 'place', 'line', 'refused', 'connection', 'long', 'unexpected'] as const),
  ...(['there', 'twice', 'same', 'factors', 'username', 'missing', 'noAddress', 'type', 'minimum'] as const),
  ...(['maximum', 'format', 'choice', 'unknown', 'reserved', 'twoHashes', 'hash', 'deceptive'] as const),
] as const;

/** A reason with the values for its message: a member of the user, a line of the file. */
export interface JobFaultRecord {
  name: (typeof JOB_FAULTS)[number];
  values?: Readonly<Record<string, string | number>>;
}
