// Parameters as a schema and a sentence for people: what the document of the API says of them.
import { z } from 'zod';

/** A text that must be there. */
export function required(description: string) {
  return z.string().describe(description);
}

/** A text that may be left out. */
export function optional(description: string) {
  return z.string().optional().describe(description);
}
