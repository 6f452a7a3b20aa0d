// The bounds of what strangers can make the server keep (collection-spec.ts).
import type { Bound } from './collection-spec.ts';

/** The bound of all records of a collection. */
export function wholeCollection(bound: Omit<Bound<unknown>, 'kind'>): Bound<unknown> {
  return { ...bound, kind: () => 'all' };
}

/** Returns the first bound that is for a record, and the record's kind. */
export function boundOf<T>(
  bounds: readonly Bound<T>[],
  record: T,
): { bound: Bound<T>; kind: string } | undefined {
  for (const bound of bounds) {
    const kind = bound.kind(record);
    if (kind !== undefined) return { bound, kind };
  }
  return undefined;
}
