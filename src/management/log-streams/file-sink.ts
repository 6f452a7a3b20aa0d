// Events in a file of ours, one a line, for a collector on the same machine. Whoever turns it over renames it: the next
// batch makes another.
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { FileSink } from '../../records/log-streams.ts';
import { directoryMode, fileMode, naming, writeAll } from '../../store/files.ts';
import type { Sent, StreamedEvent } from './http-sink.ts';

/** Never through a link to elsewhere. */
const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);

/**
 * Appends a batch; it is on disk when this resolves.
 * @param directory where such files are, made where it is not there.
 * @returns how many of its events were taken, and why no more.
 */
export async function appendBatch(
  directory: string,
  { path }: FileSink,
  events: readonly StreamedEvent[],
): Promise<Sent> {
  if (events.length === 0) return { taken: 0 };
  const file = join(directory, path);
  try {
    await mkdir(directory, { recursive: true, mode: directoryMode });
    const handle = await open(file, FLAGS, fileMode);
    try {
      const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('');
      const start = (await isCutShort(handle)) ? '\n' : '';
      await naming(file, writeAll(handle, Buffer.from(start + lines)));
      await naming(file, handle.datasync());
    } finally {
      await handle.close();
    }
    return { taken: events.length };
  } catch (thrown) {
    return { taken: 0, fault: thrown instanceof Error ? thrown.message : 'the file could not be written' };
  }
}

/** Whether the last line has no end: the process was killed, or the disk was full. Its events come again. */
async function isCutShort(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() !== '\n';
}
