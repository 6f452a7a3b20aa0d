// One kind of what is kept for deploy tools, as it is declared.
import type { z } from 'zod';
import type { Kept } from '../kept.ts';

/** A kind, with the members that a new one needs and those that it may have. */
export interface Settings
  extends Pick<
    Kept,
    | 'path'
    | 'name'
    | 'noun'
    | 'whole'
    | 'unlisted'
    | 'isByCursorAlone'
    | 'hasDates'
    | 'isPutToo'
    | 'removed'
    | 'made'
    | 'hidden'
    | 'uniqueMember'
    | 'usual'
    | 'filters'
    | 'change'
  > {
  prefix: string;
  key: string;
  needed: z.ZodRawShape;
  more?: z.ZodRawShape;
  /** Members that are there from the beginning and stay as they are. */
  fixed?: z.ZodRawShape;
  missing?: string;
}
