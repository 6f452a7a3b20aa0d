// What each part of the server declares about itself: its limits, log events and collections, so that no central
// table has to list them.
// docs/understand/decisions/code-tests.md#what-a-part-declares-is-a-plain-value-and-the-lists-are-made-of-those-values
import type { Limits } from '../http/limits.ts';
import type { EventTypes } from './base/log-events.ts';
import type { CollectionName } from './collections.ts';

/** The declarations of one part. They are collected in src/server/features.ts. */
export interface Declaration {
  /** Unique. */
  name: string;
  limits?: Limits;
  /** The log events that it writes; an event of several parts is declared by the lowest one. */
  events?: EventTypes;
  collections?: readonly CollectionName[];
}
