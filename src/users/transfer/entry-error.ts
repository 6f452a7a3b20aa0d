// Errors of users in an import file.
import type { z } from 'zod';
import { JOB_FAULTS, type JobFaultRecord } from '../../records/state/job-faults.ts';

/** Why a user is not imported; the codes are those of the hosted service. */
export interface EntryError {
  code: string;
  message: string;
  path?: string;
  /** The fault, from which the console makes its text; several faults share a code. */
  fault?: JobFaultRecord;
}

/** Returns the error of a schema issue, with the hosted service's code. */
export function errorOf(issue: z.core.$ZodIssue): EntryError {
  const path = issue.path.map(String).join('.');
  const fault = faultOf(issue);
  return {
    code: codeOf(issue),
    message: issue.message,
    ...(path === '' ? {} : { path }),
    ...(fault && { fault }),
  };
}

/** Returns the fault of an issue, without the refused value, which may be a hash. */
function faultOf(issue: z.core.$ZodIssue): JobFaultRecord | undefined {
  if (issue.code === 'invalid_type') {
    if (issue.input !== undefined) return { name: 'type', values: { expected: issue.expected } };
    return { name: 'missing', values: { path: String(issue.path.at(-1) ?? '') } };
  }
  if (issue.code === 'too_small') return { name: 'minimum', values: { minimum: Number(issue.minimum) } };
  if (issue.code === 'too_big') return { name: 'maximum', values: { maximum: Number(issue.maximum) } };
  if (issue.code === 'invalid_value')
    return { name: 'choice', values: { values: issue.values.map(String).join(', ') } };
  if (issue.code === 'unrecognized_keys')
    return { name: 'unknown', values: { names: issue.keys.join(', ') } };
  if (issue.code !== 'custom') return { name: 'format' };
  const name = JOB_FAULTS.find((one) => one === issue.params?.fault);
  return name && { name };
}

function codeOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return issue.input === undefined ? 'OBJECT_REQUIRED' : 'INVALID_TYPE';
  if (issue.code === 'too_small') return SIZES[issue.origin]?.small ?? 'MINIMUM';
  if (issue.code === 'too_big') return SIZES[issue.origin]?.big ?? 'MAXIMUM';
  if (issue.code === 'invalid_format') return issue.format === 'regex' ? 'PATTERN' : 'FORMAT';
  if (issue.code === 'invalid_value') return 'ENUM_MISMATCH';
  if (issue.code === 'invalid_union') return 'ANY_OF_MISSING';
  return issue.code === 'custom' && issue.params?.code === 'FORMAT' ? 'FORMAT' : 'NOT_PASSED';
}

const SIZES: Readonly<Record<string, { small: string; big: string }>> = {
  string: { small: 'MIN_LENGTH', big: 'MAX_LENGTH' },
  array: { small: 'ARRAY_LENGTH_SHORT', big: 'ARRAY_LENGTH_LONG' },
};
