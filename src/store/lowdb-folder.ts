// When and where to fold: closed segments queue up, and one fold at a time takes all that have. It runs in
// a thread of its own, except where there is so little to do that starting one (a tenth of a second) is more.
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { type FoldTask, fold } from './lowdb-fold.ts';
import { snapshotBytes } from './lowdb-snapshot.ts';
import { segmentPath } from './segment.ts';

export interface Folder {
  /** Has closed segments folded in the background. */
  add(...segments: number[]): void;
  /** The bytes that the snapshots took after the last fold. */
  snapshotBytes(): number;
  /** Waits until all segments are folded; those that could not be stay for the next start. */
  finish(): Promise<void>;
}

export interface FolderOptions {
  directory: string;
  clock: Clock;
  log: Pick<Logger, 'error'> | undefined;
  /** What the first fold takes of the journal, in bytes; the later ones take all there is. */
  firstBytes: number;
  /** Segments and snapshots of fewer bytes than this together are folded without a thread. */
  inPlaceBytes: number;
}

/** Folds what it is given; a fault costs no data (the segments stay) and is logged, and tried again. */
export async function createFolder(options: FolderOptions): Promise<Folder> {
  const { directory, clock, log } = options;
  const closed: number[] = [];
  let running: Promise<void> | undefined;
  let snapshots = await snapshotBytes(directory);
  // A server that is killed again and again would never get a growing backlog folded in one go.
  let limit = options.firstBytes;

  const foldAll = async () => {
    while (closed.length > 0) {
      const { segments, bytes } = await oldest(directory, closed, limit);
      const task = { directory, segments, now: clock() };
      await (snapshots + bytes < options.inPlaceBytes ? fold(task) : foldInThread(task));
      closed.splice(0, segments.length);
      snapshots = await snapshotBytes(directory);
      limit = Number.POSITIVE_INFINITY;
    }
  };
  const start = () => {
    running ??= foldAll()
      .catch((err: unknown) => log?.error({ err }, 'the journal could not be folded; it is kept'))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    add(...segments) {
      closed.push(...segments);
      void start();
    },
    snapshotBytes: () => snapshots,
    async finish() {
      await running;
      if (closed.length > 0) await start();
    },
  };
}

/** The first segments, at least one, and more as long as all together are not over the limit. */
async function oldest(directory: string, all: number[], limit: number) {
  const segments: number[] = [];
  let bytes = 0;
  for (const segment of all) {
    const { size } = await stat(segmentPath(directory, segment));
    if (segments.length > 0 && bytes + size > limit) break;
    segments.push(segment);
    bytes += size;
  }
  return { segments, bytes };
}

async function foldInThread(task: FoldTask): Promise<void> {
  // The published package holds JavaScript; the repository runs the TypeScript as it is.
  const file = import.meta.url.endsWith('.ts') ? './lowdb-fold-worker.ts' : './lowdb-fold-worker.js';
  const worker = new Worker(new URL(file, import.meta.url), { workerData: task, name: 'fold' });
  const [code] = await once(worker, 'exit');
  if (code !== 0) throw new Error(`the folding thread ended with code ${code}`);
}
