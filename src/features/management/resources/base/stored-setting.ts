// The declaration of a kind of settings that is stored for deploy tools.
import type { z } from 'zod';
import type { DocumentResource } from '../../document-resource.ts';

/** A kind, with its required and optional members. */
export interface StoredSetting
  extends Pick<
    DocumentResource,
    | 'path'
    | 'name'
    | 'noun'
    | 'unpaged'
    | 'omittedFromList'
    | 'hasDates'
    | 'hasPut'
    | 'omitsEmpty'
    | 'afterRemoval'
    | 'generated'
    | 'hidden'
    | 'uniqueMember'
    | 'defaults'
    | 'filters'
    | 'change'
    | 'validate'
    | 'warnings'
  > {
  prefix: string;
  key: string;
  /** Whether the list is read by cursor alone. */
  isCursorOnly?: boolean;
  required: z.ZodRawShape;
  optional?: z.ZodRawShape;
  /** Members that are set at creation and cannot be changed. */
  fixed?: z.ZodRawShape;
  missing?: string;
}
