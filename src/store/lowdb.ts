// The embedded store engine, for one process. All records are in memory; on disk, under
// `<dataDir>/store`, are a JSON snapshot of each collection (lowdb) and a journal of the changes since.
//
// A write is checked and made in memory in one step, appended to the journal and acknowledged once that
// is on disk; so a process killed at any moment loses nothing that it acknowledged, and a write costs the
// same whatever the store holds. A thread folds closed journal segments into the snapshots meanwhile.
//
// When the disk refuses a write, that write and all others under way reject, memory goes back to what is
// on disk, and the store is read-only (`ready` rejects with the reason) until it is opened again.
// What is damaged on disk is refused at opening with the file and line; only an unfinished last line of
// the journal, a change that was never acknowledged, is dropped.
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { CollectionName, Records } from '../records/collections.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Collection, Store } from './contract.ts';
import { directoryMode, syncDirectory } from './files.ts';
import { type Journal, openJournal } from './journal.ts';
import { lockDirectory } from './lock.ts';
import { type Commit, createCollection } from './lowdb-collection.ts';
import { createFolder, type Folder } from './lowdb-folder.ts';
import { load } from './lowdb-load.ts';
import { purgeRegularly } from './lowdb-purge.ts';
import { encodeChange } from './segment.ts';
import type { Table } from './table.ts';

export interface LowdbOptions {
  /** The directory of all that the server keeps; the store's files are in `store` below it. */
  dataDir: string;
  /** What expiry goes by. */
  clock: Clock;
  log?: Pick<Logger, 'warn' | 'error'>;
  /**
   * The least size in bytes of a journal segment to fold (8 MiB unless said otherwise). It is also half of
   * what the snapshots take, so that the work of folding stays in proportion to what is written.
   */
  foldBytes?: number;
}

const defaultFoldBytes = 8 << 20;

/**
 * Opens the embedded store, creating it where there is none.
 * @throws Error when another process has it open, or a file in it is damaged or of a newer format.
 */
export async function openLowdbStore(options: LowdbOptions): Promise<Store> {
  const directory = join(options.dataDir, 'store');
  await mkdir(directory, { recursive: true, mode: directoryMode });
  await chmod(directory, directoryMode);
  await syncDirectory(options.dataDir);
  const unlock = lockDirectory(directory);
  try {
    return await openLocked(directory, unlock, options);
  } catch (error) {
    unlock();
    throw error;
  }
}

async function openLocked(directory: string, unlock: () => void, options: LowdbOptions): Promise<Store> {
  const { clock, log, foldBytes = defaultFoldBytes } = options;
  const { tables, segments, nextSegment } = await load(directory, clock, log);
  const folder = await createFolder({
    directory,
    clock,
    log,
    firstBytes: foldBytes,
    inPlaceBytes: foldBytes / 16,
  });
  const journal = await openJournal({
    directory,
    segment: nextSegment,
    segmentBytes: () => Math.max(foldBytes, folder.snapshotBytes() / 2),
    onClosed: (segment) => folder.add(segment),
    onDelayed: (err) =>
      log?.warn({ err }, "the journal's next segment cannot be begun yet: it goes on in the one it has"),
    onFailed: (err) => log?.error({ err }, 'the store is read-only: a write to disk failed'),
  });
  folder.add(...segments);
  return createStore({ tables, journal, folder, unlock, log });
}

interface Parts {
  tables: Map<string, Table>;
  journal: Journal;
  folder: Folder;
  unlock: () => void;
  log: LowdbOptions['log'];
}

function createStore({ tables, journal, folder, unlock, log }: Parts): Store {
  let closing: Promise<void> | undefined;
  const check = () => {
    if (closing !== undefined) throw new Error('the store is closed');
  };
  const toJournal: Commit = (change) => journal.append(encodeChange(change), change.undo);
  const inMemory: Commit = () => undefined;
  const committed = [...tables.values()].map((table) => ({
    table,
    commit: table.spec.volatile === true ? inMemory : toJournal,
  }));
  const opened = new Map(
    committed.map(({ table, commit }) => [table.name, createCollection(table, commit, check)]),
  );
  const isActive = () => closing === undefined && journal.failure() === undefined;
  const stopPurging = purgeRegularly(committed, isActive, log);
  const close = async () => {
    stopPurging();
    await journal.close();
    await folder.finish();
    unlock();
  };
  return {
    collection: <N extends CollectionName>(name: N) => {
      // Below the contract all records are alike; a table holds only what came in as its collection's.
      return opened.get(name) as unknown as Collection<Records[N]>;
    },
    ready: async () => {
      check();
      const failure = journal.failure();
      if (failure !== undefined) throw failure;
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
