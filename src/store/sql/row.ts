// A record as a row: its stored text with a checksum, so that a bit that was flipped on disk is found when the record
// is read and is not handed on. SQLite itself checks a file's structure, not what is in it.
import { crc32 } from 'node:zlib';
import { type AnyRecord, parseRecord } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { columnText, fromColumn } from './text.ts';

/** A row, as a database gives it. */
export type Row = Readonly<Record<string, unknown>>;

/** A stored record is not what was written. */
export class RecordFault extends Error {}

/** The checksum of a record's stored text. */
export function checksum(collection: string, text: string): number {
  return crc32(text, crc32(collection));
}

/** The stored text of a row (`id`, `data`, `sum`). @throws RecordFault naming the record when it is damaged. */
export function textOfRow(collection: string, { id, data, sum }: Row): string {
  const text = String(data);
  if (sum === checksum(collection, text)) return text;
  const name = JSON.stringify(fromColumn(String(id)));
  throw new RecordFault(`the record ${name} of ${collection} is damaged: its checksum does not match`);
}

/** The record of a row. @throws RecordFault and SealFault naming the record when it is damaged or cannot be opened. */
export function recordOfRow(collection: string, row: Row, seal: Pick<RecordSeal, 'open'>): AnyRecord {
  const record = seal.open(textOfRow(collection, row));
  if (columnText(record.id) === row.id) return record;
  throw new RecordFault(
    `the record ${JSON.stringify(record.id)} of ${collection} is damaged: it has another id`,
  );
}

/** As stored: what is sealed stays so. */
export const unopened: Pick<RecordSeal, 'open'> = { open: parseRecord };
