// The journal's files: `journal-<number>.log`, a header line, then a line for each change, each line
// `<CRC-32 in hex> <JSON>`. A change names its collection, the ids it deletes and the record it puts.
import { open, readdir, truncate, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { eachLine, fileMode, naming, syncDirectory, writeAll } from './files.ts';
import { type Encoded, encodeRecord, isObject } from './record.ts';
import type { Change } from './table.ts';

/** A change as it is read back. */
export interface Entry {
  collection: string;
  deleted: string[];
  put?: Encoded;
}

const format = 'gatehouse-journal';
const version = 1;
const checksumLength = 8;

/** The file of a segment. */
export function segmentPath(directory: string, segment: number): string {
  return join(directory, `journal-${String(segment).padStart(8, '0')}.log`);
}

/** The segments there are, oldest first. */
export async function listSegments(directory: string): Promise<number[]> {
  const numbers = (await readdir(directory)).flatMap((name) => {
    const digits = /^journal-(\d+)\.log$/.exec(name)?.[1];
    return digits === undefined ? [] : [Number(digits)];
  });
  return numbers.sort((a, b) => a - b);
}

/** The line of a change; the record's JSON is taken as it is, not made again. */
export function encodeChange(change: Change): string {
  const head = `{"collection":${JSON.stringify(change.collection)}`;
  const deleted = change.deleted.length === 0 ? '' : `,"delete":${JSON.stringify(change.deleted)}`;
  const put = change.put === undefined ? '' : `,"put":${change.put.json}`;
  return encodeLine(`${head}${deleted}${put}}`);
}

/** Creates a segment with its header, durably; when it cannot be, there is none. @throws Error naming the file. */
export async function createSegment(directory: string, segment: number) {
  const path = segmentPath(directory, segment);
  const handle = await open(path, 'ax', fileMode);
  try {
    const header = Buffer.from(encodeLine(JSON.stringify({ format, version, segment })));
    await naming(path, writeAll(handle, header));
    await naming(path, handle.datasync());
    await syncDirectory(directory);
    return { handle, headerBytes: header.length };
  } catch (error) {
    await handle.close();
    // What is left of it would be in the way of the next try. Where it cannot be removed, a start does it.
    await unlink(path).catch(() => undefined);
    throw error;
  }
}

/**
 * Calls `visit` with each change of a segment, in the order they were made.
 * @returns the bytes of whole lines, the bytes of a torn line after them, and how many changes there are.
 * @throws Error naming file and line where a line is damaged, or the format is not known.
 */
export async function readSegment(directory: string, segment: number, visit: (entry: Entry) => void) {
  const path = segmentPath(directory, segment);
  let lines = 0;
  const { bytes, rest } = await eachLine(path, (line, number) => {
    lines = number;
    try {
      const parsed = decodeLine(line);
      if (number === 1) checkHeader(parsed, segment);
      else visit(decodeEntry(parsed));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${path} line ${number}: ${reason}`, { cause: error });
    }
  });
  return { bytes, torn: rest, changes: Math.max(lines - 1, 0) };
}

/** Cuts a segment down to its whole lines, durably. */
export async function truncateSegment(directory: string, segment: number, bytes: number): Promise<void> {
  const path = segmentPath(directory, segment);
  await truncate(path, bytes);
  const handle = await open(path, 'r+');
  try {
    await naming(path, handle.sync());
  } finally {
    await handle.close();
  }
}

/** Deletes a segment. */
export async function deleteSegment(directory: string, segment: number): Promise<void> {
  await unlink(segmentPath(directory, segment));
}

function encodeLine(json: string): string {
  return `${crc32(json).toString(16).padStart(checksumLength, '0')} ${json}\n`;
}

function decodeLine(line: Buffer): unknown {
  const checksum = line.toString('latin1', 0, checksumLength);
  const json = line.subarray(checksumLength + 1);
  if (checksum !== crc32(json).toString(16).padStart(checksumLength, '0')) {
    throw new Error('the line is damaged (its checksum does not match)');
  }
  return JSON.parse(json.toString('utf8'));
}

function checkHeader(header: unknown, segment: number): void {
  if (!isObject(header) || header.format !== format) throw new Error('this is not a journal');
  if (header.version !== version) {
    throw new Error(`journal format ${header.version} is not known here: a newer release wrote it`);
  }
  if (header.segment !== segment) throw new Error(`the journal calls itself segment ${header.segment}`);
}

function decodeEntry(parsed: unknown): Entry {
  if (!isObject(parsed)) throw new Error('a change must be an object');
  const { collection, delete: deleted = [], put } = parsed;
  if (typeof collection !== 'string') throw new Error('a change must name its collection');
  if (!Array.isArray(deleted) || !deleted.every((id) => typeof id === 'string')) {
    throw new Error('the ids that a change deletes must be strings');
  }
  return { collection, deleted, ...(put === undefined ? {} : { put: encodeRecord(put) }) };
}
