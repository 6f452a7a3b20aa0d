// The outcomes of runs of actions.
import type { Stored } from '../base/record.ts';

/** One run of the actions of a trigger, in the form of the Management API. */
export interface ActionExecutionRecord extends Stored {
  trigger_id: string;
  /** `suspended`: the user was redirected to another site, or is asked for a second factor. */
  status: 'final' | 'suspended';
  results: {
    action_name: string;
    error?: { id: string; msg: string };
    /** ISO 8601. */
    started_at: string;
    ended_at?: string;
  }[];
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
}
