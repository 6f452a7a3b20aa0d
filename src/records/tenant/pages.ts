// The section `pages` of the tenant file, as the deploy tool writes it.
import { z } from 'zod';

export const pageSchema = z.looseObject({
  /** `login` is used; others are only stored. */
  name: z.string().min(1),
  /** HTML, or the path of an HTML file. */
  html: z.string().default(''),
  /** Default: true. */
  enabled: z.boolean().optional(),
});
