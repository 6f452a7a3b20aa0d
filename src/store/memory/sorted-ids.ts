// The ids of a collection in order, so that a page of `list` costs the page and not a sort of everything.
// Sorted chunks of bounded length: adding or deleting moves at most one chunk, whatever the total.

export interface SortedIds {
  add(id: string): void;
  delete(id: string): void;
  /** The ids greater than `id`, or all of them, in order; not to be advanced after a change. */
  after(id: string | undefined): Generator<string>;
}

const maxChunk = 1024;

/** An empty set of ids, kept in the order of `<`. */
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

/** Where an id is, or would be, in a sorted chunk. */
function positionIn(chunk: string[], id: string): number {
  return firstIndex(chunk.length, (i) => (chunk[i] ?? '') >= id);
}

/** The first index below `length` that `reached` holds for, given that it holds for all that follow. */
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
