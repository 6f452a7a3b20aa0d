// Reads a store of the format before SQLite, which is no longer written: for each collection a JSON snapshot with a
// record on each line, and a journal of later changes in segments whose lines are `<CRC-32 in hex> <JSON>`.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { retiredCollections } from '../../records/collections.ts';
import { collectionSpecs } from '../keys.ts';
import { isExpired, isObject, parseRecord } from '../record.ts';
import { eachLine } from './lines.ts';

interface Snapshot {
  /** The last journal segment whose changes the snapshot contains; 0 for none. */
  through: number;
  /** The JSON text of each record, by id. */
  records: Map<string, string>;
}

const segmentName = /^journal-(\d+)\.log$/;
const snapshotEnding = ']}';
const comma = 0x2c;
const checksumLength = 8;

/** Returns whether a directory holds a store of the legacy format. */
export async function isLegacyStore(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((): string[] => []);
  if (names.some((name) => segmentName.test(name))) return true;
  for (const [collection] of collectionSpecs()) {
    const name = `${collection}.json`;
    if (!names.includes(name)) continue;
    let old = false;
    await eachLine(join(directory, name), (line, number) => {
      if (number === 1) old = line.subarray(0, 100).includes('"format":"gatehouse-store"');
    });
    return old;
  }
  return false;
}

/**
 * Returns the JSON texts of the records of a legacy store, by collection and id.
 * @param now epoch milliseconds; records that have expired by then are left out
 * @throws Error naming the file and line that is damaged or missing.
 */
export async function readLegacyStore(
  directory: string,
  now: number,
): Promise<Map<string, Map<string, string>>> {
  const snapshots = new Map<string, Snapshot>();
  const names = collectionSpecs().map(([name]) => name);
  for (const name of [...names, ...retiredCollections]) {
    snapshots.set(name, await readSnapshot(directory, name));
  }
  await replaySegments(directory, snapshots);
  for (const name of retiredCollections) snapshots.delete(name);
  const all = new Map<string, Map<string, string>>();
  for (const [name, { records }] of snapshots) {
    for (const [id, json] of records) {
      if (json.includes('"expiresAt"') && isExpired(parseRecord(json), now)) records.delete(id);
    }
    all.set(name, records);
  }
  return all;
}

async function readSnapshot(directory: string, collection: string): Promise<Snapshot> {
  const path = join(directory, `${collection}.json`);
  const records = new Map<string, string>();
  let through = 0;
  let ended = false;
  const readLine = (line: string, number: number) => {
    if (number === 1) through = snapshotThrough(line, collection);
    else if (ended) throw new Error('there is more after the end');
    else if (line === snapshotEnding) ended = true;
    else records.set(parseRecord(line).id, line);
  };
  try {
    await eachLine(path, (line, number) => {
      const text = line.toString('utf8', 0, line.at(-1) === comma ? line.length - 1 : line.length);
      naming(path, number, () => readLine(text, number));
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { through, records };
    throw error;
  }
  if (!ended) throw new Error(`${path}: the file is cut off`);
  return { through, records };
}

function snapshotThrough(line: string, collection: string): number {
  const header: unknown = JSON.parse(line + snapshotEnding);
  if (!isObject(header) || header.format !== 'gatehouse-store' || header.version !== 1) {
    throw new Error('this is not a store file');
  }
  if (header.collection !== collection) throw new Error(`the file is not of the collection ${collection}`);
  if (!Number.isSafeInteger(header.through))
    throw new Error('"through" must be the number of a journal segment');
  return Number(header.through);
}

/**
 * Applies the changes of the journal. Segments are numbered without gaps; only those that every snapshot already
 * contains may be missing. A line without its newline at the very end is a change that was never acknowledged.
 */
async function replaySegments(directory: string, snapshots: Map<string, Snapshot>): Promise<void> {
  const numbers = (await readdir(directory)).flatMap(
    (name) => Number(segmentName.exec(name)?.[1] ?? []) || [],
  );
  const segments = numbers.sort((a, b) => a - b);
  const first = Math.max(...[...snapshots.values()].map(({ through }) => through)) + 1;
  const path = (segment: number) => join(directory, `journal-${String(segment).padStart(8, '0')}.log`);
  for (let segment = first; segment < (segments.at(-1) ?? 0); segment++) {
    if (!segments.includes(segment)) throw new Error(`${path(segment)} is missing`);
  }
  let torn: string | undefined;
  for (const segment of segments) {
    const { rest } = await eachLine(path(segment), (line, number) => {
      naming(path(segment), number, () => {
        const parsed = decodeLine(line);
        if (number === 1) return checkHeader(parsed, segment);
        if (torn !== undefined) throw new Error(`the line before, at the end of ${torn}, is cut off`);
        replay(parsed, segment, snapshots);
      });
    });
    if (rest > 0) torn ??= path(segment);
  }
}

function decodeLine(line: Buffer): unknown {
  const json = line.subarray(checksumLength + 1);
  if (line.toString('latin1', 0, checksumLength) !== crc32(json).toString(16).padStart(checksumLength, '0')) {
    throw new Error('the line is damaged (its checksum does not match)');
  }
  return JSON.parse(json.toString('utf8'));
}

function checkHeader(header: unknown, segment: number): void {
  if (!isObject(header) || header.format !== 'gatehouse-journal') throw new Error('this is not a journal');
  if (header.version !== 1) throw new Error(`journal format ${header.version} is not known here`);
  if (header.segment !== segment) throw new Error(`the journal calls itself segment ${header.segment}`);
}

function replay(entry: unknown, segment: number, snapshots: Map<string, Snapshot>): void {
  if (!isObject(entry)) throw new Error('a change must be an object');
  const snapshot = snapshots.get(String(entry.collection));
  if (snapshot === undefined) throw new Error(`there is no collection "${entry.collection}"`);
  if (segment <= snapshot.through) return;
  for (const id of Array.isArray(entry.delete) ? entry.delete : []) snapshot.records.delete(id);
  if (entry.put === undefined) return;
  const json = JSON.stringify(entry.put);
  snapshot.records.set(parseRecord(json).id, json);
}

/**
 * Adds the file and line to an error. The message of JSON.parse is left out: it quotes the text, which may contain
 * secrets.
 */
function naming(path: string, number: number, work: () => void): void {
  try {
    work();
  } catch (cause) {
    const reason =
      cause instanceof SyntaxError || !(cause instanceof Error) ? 'this is not JSON' : cause.message;
    throw new Error(`${path} line ${number}: ${reason}`, { cause });
  }
}
