// What each part of the house says of itself, so that no table beside it has to: the limits it counts by, the log
// events it writes, the collections it keeps, the pages it shows.
import type { CollectionName } from './collections.ts';
import type { Limits } from './limits.ts';

/** By the event's type, what it means: a sentence. */
export type EventMeanings = Readonly<Record<string, string>>;

/** What a part declares. The lists are put together from all of them (src/features.ts). */
export interface Declaration {
  /** Unique. */
  name: string;
  limits?: Limits;
  /** The log events that it writes; one that several write is declared by the lowest of them. */
  events?: EventMeanings;
  /** The collections that it keeps. */
  collections?: readonly CollectionName[];
  /** The templates of its pages, below `views/pages`. */
  pages?: readonly string[];
}
