// A collection's snapshot: `<collection>.json`, one JSON document with a record on each line, read and
// written through lowdb. The adapter reads and writes line by line, so that no collection has to fit in
// one string, and a fault is named by its line; it replaces the file atomically and durably.
import { open, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Adapter, Low } from 'lowdb';
import { eachLine, fileMode, naming, syncDirectory, writeAll } from './files.ts';
import { collectionSpecs } from './keys.ts';
import { compareIds, isObject, parseRecord } from './record.ts';

export interface Snapshot {
  collection: string;
  /** The last journal segment whose changes are in here; 0 for none. */
  through: number;
  /** The JSON text of each record, by id. */
  records: Map<string, string>;
}

const format = 'gatehouse-store';
const version = 1;
const chunkCharacters = 1 << 20;
/** What the last line closes; the first one opens it. */
const ending = ']}';
const comma = 0x2c;

/** Names of files under way end so; what is left of them after a crash is of no use. */
export const temporarySuffix = '.tmp';

/** The lowdb database of a collection's snapshot, read; empty when there is no file yet. */
export async function openSnapshot(directory: string, collection: string): Promise<Low<Snapshot>> {
  const path = snapshotPath(directory, collection);
  const low = new Low<Snapshot>(snapshotAdapter(path, collection), {
    collection,
    through: 0,
    records: new Map(),
  });
  await low.read();
  return low;
}

/** The bytes that all snapshots together take. */
export async function snapshotBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const [name] of collectionSpecs()) {
    bytes += await stat(snapshotPath(directory, name)).then((file) => file.size, ifMissing(0));
  }
  return bytes;
}

function snapshotPath(directory: string, collection: string): string {
  return join(directory, `${collection}.json`);
}

function snapshotAdapter(path: string, collection: string): Adapter<Snapshot> {
  return {
    read: () => readSnapshot(path, collection).catch(ifMissing(null)),
    write: (snapshot) => writeSnapshot(path, snapshot),
  };
}

async function readSnapshot(path: string, collection: string): Promise<Snapshot> {
  const records = new Map<string, string>();
  let through = 0;
  let ended = false;
  const visit = (line: string, number: number) => {
    if (number === 1) through = decodeHeader(line, collection);
    else if (ended) throw new Error('there is more after the end');
    else if (line === ending) ended = true;
    else {
      const { id } = parseRecord(line);
      if (records.has(id)) throw new Error('the id of an earlier record comes again');
      records.set(id, line);
    }
  };
  await eachLine(path, (line, number) => {
    try {
      visit(line.toString('utf8', 0, line.at(-1) === comma ? line.length - 1 : line.length), number);
    } catch (cause) {
      throw new Error(`${path} line ${number}: ${reasonOf(cause)}`, { cause });
    }
  });
  if (!ended) throw new Error(`${path}: the file is cut off`);
  return { collection, through, records };
}

async function writeSnapshot(path: string, snapshot: Snapshot): Promise<void> {
  const temporary = `${path}${temporarySuffix}`;
  const handle = await open(temporary, 'w', fileMode);
  try {
    for (const chunk of encodeSnapshot(snapshot)) {
      await naming(temporary, writeAll(handle, Buffer.from(chunk)));
    }
    await naming(temporary, handle.sync());
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

function* encodeSnapshot({ collection, through, records }: Snapshot): Generator<string> {
  const header = JSON.stringify({ format, version, collection, through });
  let chunk = `${header.slice(0, -1)},"records":[`;
  let separator = '\n';
  for (const id of [...records.keys()].sort(compareIds)) {
    chunk += separator + records.get(id);
    separator = ',\n';
    if (chunk.length < chunkCharacters) continue;
    yield chunk;
    chunk = '';
  }
  yield `${chunk}\n${ending}\n`;
}

function decodeHeader(line: string, collection: string): number {
  const header: unknown = JSON.parse(line + ending);
  if (!isObject(header) || header.format !== format) throw new Error('this is not a store file');
  if (header.version !== version) {
    throw new Error(`store format ${header.version} is not known here: a newer release wrote it`);
  }
  if (header.collection !== collection) throw new Error(`the file is not of the collection ${collection}`);
  const through = header.through;
  if (!Number.isSafeInteger(through)) throw new Error('"through" must be the number of a journal segment');
  return Number(through);
}

/** What JSON.parse says quotes the text, which may be secret. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'this is not JSON';
  return error instanceof Error ? error.message : String(error);
}

function ifMissing<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };
}
