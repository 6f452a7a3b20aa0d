// Receives the users of a tenant that moves here, at the server or in the process of the command, and writes them.
import {
  importMoved,
  type MoveCounts,
  type MoveDependencies,
  type MovedBatch,
  moveTargetIn,
  noCounts,
  type RefusedLine,
  removeOrphans,
} from '../users/transfer/moved-import.ts';
import type { BatchPauses } from '../users/transfer/whole-file.ts';

export type MoveProgress = RefusedLine | { moved: MoveCounts };

/** Users of one batch: few enough that a login does not wait long for it. */
const BATCH = 50;

/** The most batches at a time: while one is committed, the next one is read. A database on another machine is waited for longer. */
const [AT_ONCE, AT_ONCE_SHARED] = [3, 6];

/**
 * Writes the users of a stream of lines, some at a time.
 * @param chunks lines as `importMoved` takes them, in pieces of any length.
 * @param database the name of the connection for database users of whom the export does not say it.
 * @returns what was refused, and the counts so far after each batch.
 * @throws Error if the process is about to end. What was written stays, and the import can be repeated.
 */
export async function* receiveMoved(
  deps: MoveDependencies,
  chunks: AsyncIterable<string>,
  database: string | undefined,
  { isEnding, rest }: BatchPauses,
): AsyncGenerator<MoveProgress> {
  const { store } = deps;
  const most = store.exclusive === true ? AT_ONCE : AT_ONCE_SHARED;
  let revision = store.revision();
  let target = await moveTargetIn(store, database);
  const counts = noCounts();
  const write = async (lines: readonly string[]): Promise<MovedBatch> => {
    if (store.revision() !== revision) {
      revision = store.revision();
      target = await moveTargetIn(store, database);
    }
    const before = revision;
    const batch = await importMoved(deps, lines, target);
    // Either this sees that a connection was deleted, or the deletion sees its new users.
    if (store.revision() !== before) await removeOrphans(deps, lines, await moveTargetIn(store, database));
    return batch;
  };
  const underWay: Promise<MovedBatch>[] = [];
  const settle = async (): Promise<MoveProgress[]> => {
    const { counts: more, refused } = (await underWay.shift()) as MovedBatch;
    for (const name of Object.keys(counts) as (keyof MoveCounts)[]) counts[name] += more[name];
    return [...refused, { moved: { ...counts } }];
  };
  try {
    for await (const lines of batchesOf(chunks)) {
      if (isEnding())
        throw new Error(`the server is about to end: ${counts.read} users were moved; repeat the command`);
      const startedAt = performance.now();
      underWay.push(write(lines));
      await rest(performance.now() - startedAt);
      if (underWay.length >= most) yield* await settle();
    }
    while (underWay.length > 0) yield* await settle();
  } finally {
    await Promise.allSettled(underWay);
  }
}

async function* batchesOf(chunks: AsyncIterable<string>): AsyncGenerator<string[]> {
  let lines: string[] = [];
  let rest = '';
  for await (const chunk of chunks) {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      if (line !== '') lines.push(line);
      if (lines.length < BATCH) continue;
      yield lines;
      lines = [];
    }
  }
  if (rest !== '') lines.push(rest);
  if (lines.length > 0) yield lines;
}
