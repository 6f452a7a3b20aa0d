// Jobs: imports, exports and e-mails that the Management API starts and that outlast the request.

import type { Stored } from '../base/record.ts';
import type { JobFaultRecord } from './job-faults.ts';

type JobStatus = 'pending' | 'processing' | 'completed' | 'failed';

export interface JobRecord extends Stored {
  type: 'users_import' | 'users_export' | 'verification_email';
  status: JobStatus;
  /** ISO 8601. */
  created_at: string;
  /** When work on the job first began, in epoch milliseconds. */
  startedAt?: number;
  connection_id?: string;
  /** The connection's name. */
  connection?: string;
  external_id?: string;
  /** Why the job failed, in words. */
  status_details?: string;
  /** Why the job failed, in a form that can be translated. */
  fault?: JobFaultRecord;
  /** For an import. */
  upsert?: boolean;
  /** Number of users that were processed, successfully or not. */
  processed: number;
  /** Number of all users, if it is known. */
  total?: number;
  summary?: { inserted: number; updated: number; failed: number };
  export?: {
    format: 'json' | 'csv';
    limit?: number;
    fields?: { name: string; export_as?: string }[];
    /** The id of the last exported user. */
    after?: string;
  };
  /** For an export: the key that signs its download links. */
  linkKey?: string;
}

/**
 * A part of the input or output of a job. `id` consists of the job's id, the kind and a number, by which parts are
 * sorted.
 */
export interface JobPartRecord extends Stored {
  job: string;
  kind: 'input' | 'errors' | 'output';
  /** Text; compressed data is in base64. */
  text: string;
}
