// The tenant's log.
import type { Stored } from './record.ts';

/** A tenant log event; `type` is the hosted service's code, such as `s`, `f`, `ss`. Never holds a secret. */
export interface LogEventRecord extends Stored {
  type: string;
  /** ISO 8601. */
  date: string;
  description?: string;
  client_id?: string;
  connection?: string;
  user_id?: string;
  user_name?: string;
  ip?: string;
  details?: Record<string, unknown>;
}
