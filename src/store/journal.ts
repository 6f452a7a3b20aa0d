// The append-only journal. Changes that arrive while a write is under way wait and share the next one
// (group commit): one write and one fdatasync for all of them, and only then are they acknowledged.
//
// When the disk refuses (full, failing) the journal fails for good: every change that is not durable is
// undone in memory, newest first, its writer gets the error, and the segment is cut back to its last
// durable byte, so that memory and disk agree. Going on is not safe: after a failed fsync nobody knows
// what the disk holds. Reads go on; a restart, once the cause is removed, starts from what is durable.
//
// A next segment that cannot be begun (no descriptor is left, say) is no such case: nothing was written that
// might be lost. The journal goes on in the one it has, and tries again with the next write.
import type { FileHandle } from 'node:fs/promises';
import { naming, writeAll } from './files.ts';
import { createSegment, deleteSegment, segmentPath } from './segment.ts';

export interface JournalOptions {
  directory: string;
  /** The number of the first segment to create. */
  segment: number;
  /** The size in bytes from which a segment is closed and the next one begun. */
  segmentBytes: () => number;
  /** Called with each segment that was closed and may be folded. */
  onClosed: (segment: number) => void;
  /** Called when the next segment cannot be begun yet, once until it can. */
  onDelayed: (error: unknown) => void;
  /** Called once when the journal has failed. */
  onFailed: (error: Error) => void;
}

export interface Journal {
  /**
   * Appends a line; resolves when it is durable. When it cannot be, `undo` is called before this rejects.
   * @throws Error when the journal has failed.
   */
  append(line: string, undo: () => void): Promise<void>;
  /** Why the journal takes no more changes, if so. */
  failure(): Error | undefined;
  /** Waits for what was appended and closes the last segment, to be folded if it has changes. */
  close(): Promise<void>;
}

interface Group {
  lines: string[];
  undos: (() => void)[];
  durable: PromiseWithResolvers<void>;
}

interface Segment {
  number: number;
  handle: FileHandle;
  /** Bytes that are durable. */
  bytes: number;
  headerBytes: number;
}

interface State extends JournalOptions {
  current: Segment;
  /** What is being written. */
  writing: Group | undefined;
  /** What shares the next write. */
  waiting: Group | undefined;
  /** The flushing that is under way. */
  flushing: Promise<void> | undefined;
  /** Whether the next segment could not be begun. */
  delayed: boolean;
  failed: Error | undefined;
}

/** Begins a journal with a new segment. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const state: State = {
    ...options,
    current: await begin(options.directory, options.segment),
    writing: undefined,
    waiting: undefined,
    flushing: undefined,
    delayed: false,
    failed: undefined,
  };
  return {
    append: (line, undo) => append(state, line, undo),
    failure: () => state.failed,
    close: () => close(state),
  };
}

async function begin(directory: string, number: number): Promise<Segment> {
  const { handle, headerBytes } = await createSegment(directory, number);
  return { number, handle, headerBytes, bytes: headerBytes };
}

function append(state: State, line: string, undo: () => void): Promise<void> {
  if (state.failed !== undefined) {
    undo();
    return Promise.reject(
      new Error('the store is read-only: a write to disk failed', { cause: state.failed }),
    );
  }
  state.waiting ??= { lines: [], undos: [], durable: Promise.withResolvers() };
  state.waiting.lines.push(line);
  state.waiting.undos.push(undo);
  state.flushing ??= flush(state);
  return state.waiting.durable.promise;
}

/** Writes group after group until none waits. Never rejects: each group's writers are told. */
async function flush(state: State): Promise<void> {
  for (;;) {
    // The writers just acknowledged get a turn to append again, so that they share the next write.
    await nextTurn();
    if (state.waiting === undefined) break;
    state.writing = state.waiting;
    state.waiting = undefined;
    try {
      await write(state, state.writing.lines);
      state.writing.durable.resolve();
      state.writing = undefined;
    } catch (error) {
      await fail(state, error instanceof Error ? error : new Error(String(error)));
    }
    if (state.failed === undefined && state.current.bytes >= state.segmentBytes()) await rotate(state);
  }
  state.flushing = undefined;
}

async function write({ directory, current }: State, lines: string[]): Promise<void> {
  const path = segmentPath(directory, current.number);
  const data = Buffer.from(lines.join(''));
  await naming(path, writeAll(current.handle, data));
  await naming(path, current.handle.datasync());
  current.bytes += data.length;
}

/** Begins the next segment, or stays with this one for now. Never rejects: what was written is durable. */
async function rotate(state: State): Promise<void> {
  const closed = state.current;
  try {
    state.current = await begin(state.directory, closed.number + 1);
  } catch (error) {
    if (!state.delayed) state.onDelayed(error);
    state.delayed = true;
    return;
  }
  state.delayed = false;
  // All of it is on disk: what the system may say of closing changes nothing.
  await closed.handle.close().catch(state.onDelayed);
  state.onClosed(closed.number);
}

async function fail(state: State, error: Error): Promise<void> {
  state.failed = error;
  const groups = [state.writing, state.waiting].filter((group) => group !== undefined);
  state.writing = undefined;
  state.waiting = undefined;
  for (const undo of groups.flatMap((group) => group.undos).reverse()) undo();
  try {
    await state.current.handle.truncate(state.current.bytes);
    await state.current.handle.datasync();
  } catch (cause) {
    state.failed = new AggregateError([error, cause], `${error.message}; nor could the journal be cut back`);
  }
  state.onFailed(state.failed);
  for (const group of groups) group.durable.reject(state.failed);
}

async function close(state: State): Promise<void> {
  await state.flushing;
  const { handle, bytes, headerBytes, number } = state.current;
  await handle.close();
  if (state.failed !== undefined) return;
  if (bytes > headerBytes) state.onClosed(number);
  else await deleteSegment(state.directory, number);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
