// Work that the Management API begins and that outlives the request: imports, exports, mails.
import type { JobFaultRecord } from './job-faults.ts';
import type { Stored } from './record.ts';

type JobStatus = 'pending' | 'processing' | 'completed' | 'failed';

export interface JobRecord extends Stored {
  type: 'users_import' | 'users_export' | 'verification_email';
  status: JobStatus;
  /** ISO 8601. */
  created_at: string;
  /** Epoch milliseconds at which the work began for the first time. */
  startedAt?: number;
  connection_id?: string;
  /** The connection's name. */
  connection?: string;
  external_id?: string;
  /** Why it failed, for people. */
  status_details?: string;
  /** The same, for whoever words it. */
  fault?: JobFaultRecord;
  /** Of an import. */
  upsert?: boolean;
  /** Users that were looked at, whatever came of them. */
  processed: number;
  /** Users in all, where that is known. */
  total?: number;
  summary?: { inserted: number; updated: number; failed: number };
  /** Of an export. */
  export?: {
    format: 'json' | 'csv';
    limit?: number;
    fields?: { name: string; export_as?: string }[];
    /** The last user who is in it. */
    after?: string;
  };
  /** Of an export: the key that the links to it are signed with. */
  linkKey?: string;
}

/** A piece of what a job reads or makes; `id` is the job's, what it is and its number, in their order. */
export interface JobPartRecord extends Stored {
  job: string;
  kind: 'input' | 'errors' | 'output';
  /** Text; base64 of what is compressed. */
  text: string;
}
