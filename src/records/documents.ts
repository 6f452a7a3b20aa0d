// What management tools set and read back, and which has no record of its own: log streams, actions, custom domains …
import type { Stored } from './record.ts';

export interface DocumentRecord extends Stored {
  /** Which resource it is of. */
  kind: string;
  /** Where the resource has names that no two share. */
  name?: string;
  /** As it is answered, but for the id. */
  body: Record<string, unknown>;
  /** ISO 8601. */
  created_at: string;
  /** ISO 8601. */
  updated_at: string;
}
