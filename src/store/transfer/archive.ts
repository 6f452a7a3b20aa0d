// A store in a file: compressed JSON, one record on each line. Secrets in it are sealed with the store's key, which the
// file does not contain.
import { createHash, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { z } from 'zod';
import type { Snapshot, Store } from '../contract.ts';
import { collectionSpecs, encodeRecord } from '../record.ts';
import { checkOf } from '../sealing/key.ts';
import { type RecordSeal, recordSeal } from '../sealing/records.ts';
import { linesOf } from './lines.ts';
import { type Part, transferredParts } from './transfer-parts.ts';

const FORMAT = 1;

const headerSchema = z.object({
  gatehouse: z.literal('backup'),
  format: z.number().int(),
  release: z.string(),
  /** Epoch milliseconds. */
  at: z.number(),
  /** The check value of the key that its secrets are sealed with. */
  key: z.string(),
});

type ArchiveHeader = z.output<typeof headerSchema>;

const lineSchema = z.union([
  z.object({ c: z.string(), r: z.string() }),
  z.object({ end: z.object({ records: z.number(), sha256: z.string() }) }),
]);

/** The file is not a backup, is damaged, or was written by a newer release. */
class ArchiveFault extends Error {}

/** @param release the release that writes it, for the header. @param signal aborts the writing. */
export async function writeArchive(
  store: Pick<Store, 'withSnapshot'>,
  key: KeyObject,
  { to, release, signal }: { to: Writable; release: string; signal?: AbortSignal },
): Promise<void> {
  await store.withSnapshot((snapshot) =>
    pipeline(Readable.from(archived(snapshot, key, release)), createGzip(), to, {
      ...(signal && { signal }),
    }),
  );
}

async function* archived(snapshot: Snapshot, key: KeyObject, release: string): AsyncGenerator<string> {
  const seals = sealsOf(key);
  const hash = createHash('sha256');
  let records = 0;
  const header: ArchiveHeader = {
    gatehouse: 'backup',
    format: FORMAT,
    release,
    at: snapshot.at,
    key: checkOf(key),
  };
  const hashed = (text: string) => {
    hash.update(text);
    return text;
  };
  yield hashed(`${JSON.stringify(header)}\n`);
  for await (const part of transferredParts(snapshot)) {
    const seal = seals.get(part.collection);
    const lines = part.records.map((record) =>
      JSON.stringify({ c: part.collection, r: seal?.seal(encodeRecord(record)) }),
    );
    records += lines.length;
    if (lines.length > 0) yield hashed(`${lines.join('\n')}\n`);
  }
  yield `${JSON.stringify({ end: { records, sha256: hash.digest('hex') } })}\n`;
}

function sealsOf(key: KeyObject): ReadonlyMap<string, RecordSeal> {
  return new Map(collectionSpecs().map(([name, spec]) => [name, recordSeal(key, name, spec)]));
}

/** Reads a backup to its end. @returns its header and the number of its records. @throws ArchiveFault */
export async function checkArchive(file: string): Promise<{ header: ArchiveHeader; records: number }> {
  let header: ArchiveHeader | undefined;
  let records = 0;
  for await (const found of read(file)) {
    if ('header' in found) header = found.header;
    else records += 1;
  }
  if (header === undefined) throw new ArchiveFault(`${file} is no backup of Gatehouse`);
  return { header, records };
}

/**
 * Yields the records of a backup in batches.
 * @param key the key that its secrets are sealed with.
 * @throws ArchiveFault
 */
export async function* archiveParts(file: string, key: KeyObject): AsyncGenerator<Part> {
  const seals = sealsOf(key);
  let part: { collection: string; records: Part['records'][number][] } | undefined;
  for await (const found of read(file)) {
    if ('header' in found) continue;
    const seal = seals.get(found.collection);
    if (seal === undefined) throw newer(file);
    const isFull = part !== undefined && (part.collection !== found.collection || part.records.length >= 500);
    if (part !== undefined && isFull) {
      yield part as Part;
      part = undefined;
    }
    part ??= { collection: found.collection, records: [] };
    part.records.push(seal.open(found.text));
  }
  if (part !== undefined) yield part as Part;
}

type Found = { header: ArchiveHeader } | { collection: string; text: string };

/** Yields the header and the records. They can only be trusted once the last line has been checked, at the end. */
async function* read(file: string): AsyncGenerator<Found> {
  const hash = createHash('sha256');
  let records = -1;
  let end: { records: number; sha256: string } | undefined;
  for await (const line of unzipped(file)) {
    if (end !== undefined) throw damaged(file);
    if (records === -1) {
      yield { header: headerOf(file, line) };
      records = 0;
    } else {
      const parsed = parsedLine(file, line);
      if ('end' in parsed) {
        end = parsed.end;
        continue;
      }
      records += 1;
      yield { collection: parsed.c, text: parsed.r };
    }
    hash.update(`${line}\n`);
  }
  if (end === undefined || end.records !== records || end.sha256 !== hash.digest('hex')) throw damaged(file);
}

async function* unzipped(file: string): AsyncGenerator<string> {
  const source = createReadStream(file);
  const text = source.pipe(createGunzip());
  source.once('error', (error) => text.destroy(error));
  try {
    yield* linesOf(text);
  } catch (thrown) {
    if (thrown instanceof ArchiveFault || (thrown as NodeJS.ErrnoException).syscall !== undefined)
      throw thrown;
    throw damaged(file, thrown);
  } finally {
    source.destroy();
  }
}

function headerOf(file: string, line: string): ArchiveHeader {
  const header = headerSchema.safeParse(json(line)).data;
  if (header === undefined) throw new ArchiveFault(`${file} is no backup of Gatehouse`);
  if (header.format > FORMAT) throw newer(file);
  return header;
}

function parsedLine(file: string, line: string): z.output<typeof lineSchema> {
  const parsed = lineSchema.safeParse(json(line)).data;
  if (parsed === undefined) throw damaged(file);
  return parsed;
}

function json(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const damaged = (file: string, cause?: unknown) =>
  new ArchiveFault(`${file} is damaged or not whole: nothing of it was used`, { cause });
const newer = (file: string) =>
  new ArchiveFault(`${file} was made by a newer release of Gatehouse: restore it with that`);
