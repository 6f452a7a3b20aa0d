// The section `pages` of the tenant file, in the deploy tool's vocabulary.
import { z } from 'zod';

export const pageSchema = z.looseObject({
  /** `login` is built in; the others are kept. */
  name: z.string().min(1),
  /** HTML, or the path of a file of it. */
  html: z.string().default(''),
  /** It is, where nothing is said. */
  enabled: z.boolean().optional(),
});
