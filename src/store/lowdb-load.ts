// Opening: snapshots, then the journal on top of them, into tables; what a crash left half done is cleared.
import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { syncDirectory } from './files.ts';
import { collectionSpecs } from './keys.ts';
import { replay } from './lowdb-fold.ts';
import { openSnapshot, type Snapshot, temporarySuffix } from './lowdb-snapshot.ts';
import { deleteSegment, listSegments, readSegment, segmentPath, truncateSegment } from './segment.ts';
import { createTable, fill, type Table } from './table.ts';

export interface Loaded {
  tables: Map<string, Table>;
  /** Segments that are not folded yet, oldest first. */
  segments: number[];
  /** The number for the next segment. */
  nextSegment: number;
}

/**
 * Reads a store's directory.
 * @throws Error naming the file, and the line, that is damaged, missing or of an unknown format.
 */
export async function load(
  directory: string,
  clock: Clock,
  log: Pick<Logger, 'warn'> | undefined,
): Promise<Loaded> {
  await deleteTemporaries(directory);
  const snapshots = new Map<string, Snapshot>();
  for (const [name] of collectionSpecs()) snapshots.set(name, (await openSnapshot(directory, name)).data);
  const folded = Math.max(...[...snapshots.values()].map((snapshot) => snapshot.through));
  const segments = await replaySegments(directory, folded, snapshots, log);
  const tables = new Map<string, Table>();
  for (const [name, spec] of collectionSpecs()) {
    const table = createTable(name, spec, clock);
    if (spec.volatile !== true) {
      for (const json of snapshots.get(name)?.records.values() ?? []) fill(table, json);
    }
    tables.set(name, table);
  }
  return { tables, segments, nextSegment: Math.max(folded, ...segments) + 1 };
}

async function deleteTemporaries(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.endsWith(temporarySuffix)) await unlink(join(directory, name));
  }
}

async function replaySegments(
  directory: string,
  folded: number,
  snapshots: Map<string, Snapshot>,
  log: Pick<Logger, 'warn'> | undefined,
): Promise<number[]> {
  const segments = await listSegments(directory);
  checkNoneMissing(directory, folded, segments);
  const read = [];
  for (const segment of segments) {
    const path = segmentPath(directory, segment);
    const result = await readSegment(directory, segment, (entry) => {
      const snapshot = snapshots.get(entry.collection);
      if (snapshot === undefined) throw new Error(`there is no collection "${entry.collection}"`);
      if (segment > snapshot.through) replay(snapshot.records, entry);
    });
    read.push({ segment, path, ...result });
  }
  return clearEnd(directory, read, log);
}

/** Segments are numbered without gaps, and those up to the last fold alone may have been deleted. */
function checkNoneMissing(directory: string, folded: number, segments: number[]): void {
  for (let segment = folded + 1; segment < (segments.at(-1) ?? 0); segment++) {
    if (!segments.includes(segment)) throw new Error(`${segmentPath(directory, segment)} is missing`);
  }
}

interface ReadSegment {
  segment: number;
  path: string;
  bytes: number;
  torn: number;
  changes: number;
}

/**
 * A process killed while it wrote leaves a line without its newline at the very end of the journal: a
 * change that was never acknowledged. It is cut off; segments at the end without a change are deleted.
 */
async function clearEnd(
  directory: string,
  read: ReadSegment[],
  log: Pick<Logger, 'warn'> | undefined,
): Promise<number[]> {
  const last = read.findLastIndex(({ changes }) => changes > 0);
  for (const [index, { segment, path, bytes, torn, changes }] of read.entries()) {
    if (torn > 0) {
      if (index < last) throw new Error(`${path} line ${changes + 2}: the line is cut off`);
      log?.warn({ path, bytes: torn }, 'dropped the unfinished last line of the journal');
      if (index === last) await truncateSegment(directory, segment, bytes);
    }
    if (index > last) await deleteSegment(directory, segment);
  }
  await syncDirectory(directory);
  return read.slice(0, last + 1).map(({ segment }) => segment);
}
