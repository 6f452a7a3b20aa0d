// Folding: the changes of closed journal segments become part of the JSON snapshots, and the segments go.
// Killed at any point it can be done again: a snapshot says through which segment it is complete, and a
// segment is deleted only when all snapshots that it changes are.
import { openSnapshot } from './lowdb-snapshot.ts';
import { isExpired, parseRecord } from './record.ts';
import { deleteSegment, type Entry, readSegment } from './segment.ts';

export interface FoldTask {
  directory: string;
  /** Closed segments, oldest first, with none left out between them. */
  segments: number[];
  /** Epoch milliseconds: what has expired by then is dropped. */
  now: number;
}

/** Folds segments into the snapshots. @throws Error when a file cannot be read or written. */
export async function fold({ directory, segments, now }: FoldTask): Promise<void> {
  const through = Math.max(...segments);
  for (const [collection, changes] of await readChanges(directory, segments)) {
    const low = await openSnapshot(directory, collection);
    // A fold that was cut short has done this one, with as many segments or more.
    if (low.data.through >= through) continue;
    const { records } = low.data;
    for (const { segment, entry } of changes) {
      if (segment > low.data.through) replay(records, entry);
    }
    for (const [id, json] of records) {
      // Looking at the text first spares parsing the many that never expire.
      if (json.includes('"expiresAt"') && isExpired(parseRecord(json), now)) records.delete(id);
    }
    low.data.through = through;
    await low.write();
  }
  for (const segment of segments) await deleteSegment(directory, segment);
}

/** Makes a change again to records read from disk; made twice, it comes to the same. */
export function replay(records: Map<string, string>, { deleted, put }: Entry): void {
  for (const id of deleted) records.delete(id);
  if (put !== undefined) records.set(put.record.id, put.json);
}

async function readChanges(directory: string, segments: number[]) {
  const changes = new Map<string, { segment: number; entry: Entry }[]>();
  for (const segment of segments) {
    await readSegment(directory, segment, (entry) => {
      const known = changes.get(entry.collection);
      if (known === undefined) changes.set(entry.collection, [{ segment, entry }]);
      else known.push({ segment, entry });
    });
  }
  return changes;
}
