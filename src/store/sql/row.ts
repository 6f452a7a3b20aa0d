// Records as rows: the stored text with a checksum, so that a bit flipped on disk is detected when the record is read.
// SQLite itself checks a file's structure, not its content.
import { crc32 } from 'node:zlib';
import { type AnyRecord, parseRecord } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';

export type Row = Readonly<Record<string, unknown>>;

/** A stored record is not what was written. */
export class RecordFault extends Error {}

export function checksum(collection: string, text: string): number {
  return crc32(text, crc32(collection));
}

/** Returns the stored text of a row (`id`, `data`, `sum`). @throws RecordFault naming the record when it is damaged. */
export function textOfRow(collection: string, { id, data, sum }: Row): string {
  const text = String(data);
  if (sum === checksum(collection, text)) return text;
  const name = JSON.stringify(fromColumn(String(id)));
  throw new RecordFault(`the record ${name} of ${collection} is damaged: its checksum does not match`);
}

/** @throws RecordFault or SealFault naming the record when it is damaged or cannot be opened. */
export function recordOfRow(collection: string, row: Row, seal: Pick<RecordSeal, 'open'>): AnyRecord {
  const record = seal.open(textOfRow(collection, row));
  if (columnText(record.id) === row.id) return record;
  throw new RecordFault(
    `the record ${JSON.stringify(record.id)} of ${collection} is damaged: it has another id`,
  );
}

/** Reads records as stored, without opening sealed members. */
export const unopened: Pick<RecordSeal, 'open'> = { open: parseRecord };

// Text in columns. JSON escapes what is not valid Unicode, but ids and keys are columns of their own.

const mark = '\u0000';

/**
 * Converts a text for a column. A database stores UTF-8, which has no lone surrogates: two texts that differ only in
 * those would become equal. Such a text is stored in a form that no other text has.
 */
export function columnText(text: string): string {
  return text.isWellFormed() && !text.startsWith(mark) ? text : mark + JSON.stringify(text);
}

/** Reverses {@link columnText}. */
export function fromColumn(text: string): string {
  return text.startsWith(mark) ? String(JSON.parse(text.slice(mark.length))) : text;
}
