// What each part of the house says of itself, so that no table beside it has to: the limits it counts by, the log
// events it writes, the collections it keeps, the pages it shows.
import type { CollectionName } from './collections.ts';

/** What a part declares. The lists are put together from all of them (src/features.ts). */
export interface Declaration {
  /** Unique. */
  name: string;
  /** The collections that it alone writes. */
  collections?: readonly CollectionName[];
  /** The templates of its pages, below `views/pages`. */
  pages?: readonly string[];
}
