// Appends events to a local file, one on each line, for a collector on the same machine (an extension of the hosted
// API). To rotate the file, rename it: the next batch creates a new one.
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { directoryMode, fileMode, naming, writeAll } from '../../runtime/files.ts';
import { open } from '../base/members.ts';
import { type SendResult, type StreamedEvent, sink } from './sink.ts';

export const fileSink = sink({
  type: 'file',
  members: {
    path: open(
      z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'Expected the name of a file, without a directory'),
    ),
  },
  address: () => undefined,
  missing: ({ filesDirectory }) => (filesDirectory === undefined ? 'LOG_STREAM_FILES is not set' : undefined),
  send: ({ filesDirectory = '' }, { path }, events) => appendBatch(filesDirectory, path, events),
});

/** O_NOFOLLOW refuses symbolic links, which could point to a file elsewhere. */
const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);

/**
 * Appends a batch; the data is on disk when the promise resolves.
 * @param directory created if it does not exist.
 * @returns how many events were written, and the reason if not all were
 */
async function appendBatch(
  directory: string,
  path: string,
  events: readonly StreamedEvent[],
): Promise<SendResult> {
  if (events.length === 0) return { acceptedCount: 0 };
  const file = join(directory, path);
  try {
    await mkdir(directory, { recursive: true, mode: directoryMode });
    const handle = await openFile(file, FLAGS, fileMode);
    try {
      const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('');
      const start = (await isCutShort(handle)) ? '\n' : '';
      await naming(file, writeAll(handle, Buffer.from(start + lines)));
      await naming(file, handle.datasync());
    } finally {
      await handle.close();
    }
    return { acceptedCount: events.length };
  } catch (thrown) {
    return {
      acceptedCount: 0,
      fault: thrown instanceof Error ? thrown.message : 'the file could not be written',
    };
  }
}

/**
 * Whether the last line is incomplete, because the process was killed or the disk was full. Its events are sent
 * again.
 */
async function isCutShort(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() !== '\n';
}
