// The declaration of a kind of settings that is stored for deploy tools.
import type { z } from 'zod';
import type { Kept } from '../kept.ts';

/** A kind, with its required and optional members. */
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
  /** Members that are set at creation and cannot be changed. */
  fixed?: z.ZodRawShape;
  missing?: string;
}
