// What became of runs of actions.
import type { Stored } from './record.ts';

/** One run of the actions of a trigger, as the Management API gives it. */
export interface ActionExecutionRecord extends Stored {
  trigger_id: string;
  /** `suspended`: its user was sent elsewhere, or is asked for a second factor. */
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
