// The file of a configuration collection: `<collection>.json`, one JSON document with a record on each line, read and
// written through lowdb. The adapter replaces the file atomically and durably; a digest at its end shows whether the
// file is damaged, cut off or changed by hand.
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Adapter, Low } from 'lowdb';
import { directorySync, fileMode, naming, writeAll } from '../../runtime/files.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { compareIds, isObject, parseRecord } from '../record.ts';

/** The JSON text of each record. */
export type Texts = ReadonlyMap<string, string>;

const format = 'gatehouse-configuration';
const version = 1;

/** The suffix of files that are being written; after a crash they are deleted. */
export const temporarySuffix = '.tmp';

export function configurationFile(directory: string, collection: string): string {
  return join(directory, `${collection}.json`);
}

/**
 * @param given the records of a collection that is being created, instead of reading the file
 * @throws Error naming the file when it is missing, damaged or of a newer release.
 */
export async function openConfiguration(
  directory: string,
  collection: string,
  given?: Texts,
): Promise<Low<Texts>> {
  const file = configurationFile(directory, collection);
  const low = new Low<Texts>(adapter(file, collection), given ?? new Map());
  if (given === undefined) await low.read();
  return low;
}

function adapter(file: string, collection: string): Adapter<Texts> {
  return {
    async read() {
      const text = await readFile(file, 'utf8').catch((cause) => {
        throw cause.code === 'ENOENT' ? new Error(`${file} is missing`, { cause }) : cause;
      });
      try {
        return decode(text, collection);
      } catch (cause) {
        throw new Error(`${file}: ${reasonOf(cause)}`, { cause });
      }
    },
    write: (texts) => replace(file, encode(collection, texts)),
  };
}

function encode(collection: string, texts: Texts): string {
  const header = JSON.stringify({ format, version, collection }).slice(0, -1);
  const records = [...texts.keys()].sort(compareIds).map((id) => `\n${texts.get(id)}`);
  const body = `${header},"records":[${records.join(',')}\n]`;
  return `${body},"digest":"${sha256(body)}"}\n`;
}

function decode(text: string, collection: string): Texts {
  const end = /,"digest":"([\w-]+)"\}\n$/.exec(text);
  if (end === null) throw new Error('the file is cut off');
  const document: unknown = JSON.parse(text);
  if (!isObject(document) || document.format !== format) throw new Error('this is not a store file');
  if (document.version !== version) {
    throw new Error(`store format ${document.version} is not known here: a newer release wrote it`);
  }
  if (document.collection !== collection) throw new Error(`the file is not of the collection ${collection}`);
  if (sha256(text.slice(0, end.index)) !== end[1]) {
    throw new Error('the file is damaged, or was changed by hand (its digest does not match)');
  }
  return textsOf(document.records);
}

/**
 * Returns the JSON texts of the records in a parsed document.
 * @throws Error unless it is a list of records with distinct ids.
 */
export function textsOf(records: unknown): Texts {
  if (!Array.isArray(records)) throw new Error('there are no records');
  const texts = new Map<string, string>();
  for (const one of records) {
    const json = JSON.stringify(one);
    const { id } = parseRecord(json);
    if (texts.has(id)) throw new Error('the id of an earlier record comes again');
    texts.set(id, json);
  }
  return texts;
}

/** Writes a new file beside the old one and renames it, so that there is always a complete file. */
async function replace(file: string, text: string): Promise<void> {
  const temporary = `${file}${temporarySuffix}`;
  // The directory is opened first: if that failed after the rename, the new file would be in place although the write
  // is reported as failed.
  const sync = await directorySync(dirname(file));
  try {
    const handle = await open(temporary, 'w', fileMode);
    try {
      await naming(temporary, writeAll(handle, Buffer.from(text)));
      await naming(temporary, handle.sync());
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
    await sync.now();
  } finally {
    await sync.end();
  }
}

/** The message of JSON.parse quotes the text, which may contain secrets. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'this is not JSON';
  return error instanceof Error ? error.message : String(error);
}
