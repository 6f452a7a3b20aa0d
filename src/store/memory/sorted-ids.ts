// The ids of a collection in order, so that a page of `list` costs in proportion to the page and not to the collection.
// They are kept in sorted chunks of bounded length: adding or deleting moves at most one chunk.

export interface SortedIds {
  add(id: string): void;
  delete(id: string): void;
  /** Yields the ids greater than `id`, or all of them, in order. Must not be continued after a change. */
  after(id: string | undefined): Generator<string>;
}

const maxChunk = 1024;

/** Returns an empty set of ids, sorted by `<`. */
export function createSortedIds(): SortedIds {
  const chunks: string[][] = [];
  const chunkFor = (id: string) => firstIndex(chunks.length, (i) => (chunks[i]?.at(-1) ?? '') >= id);

  return {
    add(id) {
      const index = Math.min(chunkFor(id), Math.max(chunks.length - 1, 0));
      const chunk = chunks[index];
      if (chunk === undefined) {
        chunks.push([id]);
        return;
      }
      const position = positionIn(chunk, id);
      if (chunk[position] === id) return;
      chunk.splice(position, 0, id);
      if (chunk.length > maxChunk) chunks.splice(index + 1, 0, chunk.splice(maxChunk / 2));
    },
    delete(id) {
      const index = chunkFor(id);
      const chunk = chunks[index];
      if (chunk === undefined) return;
      const position = positionIn(chunk, id);
      if (chunk[position] !== id) return;
      chunk.splice(position, 1);
      if (chunk.length === 0) chunks.splice(index, 1);
    },
    *after(id) {
      for (let index = id === undefined ? 0 : chunkFor(id); index < chunks.length; index++) {
        for (const candidate of chunks[index] ?? []) {
          if (id === undefined || candidate > id) yield candidate;
        }
      }
    },
  };
}

/** Returns the position of an id in a sorted chunk, or where it would be inserted. */
function positionIn(chunk: string[], id: string): number {
  return firstIndex(chunk.length, (i) => (chunk[i] ?? '') >= id);
}

/**
 * Returns the first index below `length` for which `reached` is true, given that it is true for all indexes after it.
 */
function firstIndex(length: number, reached: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
