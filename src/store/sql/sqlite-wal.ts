// Detects damage in SQLite's write-ahead log, as opposed to an end cut off by a crash. SQLite itself takes both for the
// end of the log, and would silently lose acknowledged changes after the damage.
//
// A transaction is written only after the previous one is synced, so a crash leaves at most one transaction incomplete:
// an intact transaction behind a damaged one proves that the damaged one was once complete. The format is at
// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
import { readFileSync } from 'node:fs';

const headerBytes = 32;
const frameHeaderBytes = 24;
/** The lowest bit says whether checksums use big-endian words. */
const magic = 0x377f0682;

type Checksum = [number, number];
type Range = [from: number, to: number];

/**
 * Returns the number of the first damaged frame; undefined if there is none.
 * @throws Error when the file cannot be read.
 */
export function damagedFrame(file: string): number | undefined {
  const log = readFileSync(file);
  if (log.length < headerBytes) return undefined;
  const kind = log.readUInt32BE(0);
  const view = new DataView(log.buffer, log.byteOffset, log.length);
  const sum = (start: Checksum, ...ranges: Range[]) => checksum(view, (kind & 1) === 0, start, ranges);
  let before: Checksum = [log.readUInt32BE(24), log.readUInt32BE(28)];
  // The header is synced before the first frame is written.
  const intact = (kind & ~1) >>> 0 === magic && isSum(sum([0, 0], [0, 24]), before);
  if (!intact) return log.length > headerBytes ? 0 : undefined;
  const size = frameHeaderBytes + log.readUInt32BE(8);
  let damaged: number | undefined;
  let ended = false;
  for (let at = headerBytes, frame = 1; at + size <= log.length; at += size, frame++) {
    // Frames of earlier rounds of the log have other salts.
    const current = log.compare(log, 16, 24, at + 8, at + 16) === 0;
    const own: Checksum = [log.readUInt32BE(at + 16), log.readUInt32BE(at + 20)];
    const whole = current && isSum(sum(before, [at, at + 8], [at + frameHeaderBytes, at + size]), own);
    if (whole && ended) return damaged;
    if (!whole) damaged ??= frame;
    if (damaged !== undefined && current && log.readUInt32BE(at + 4) !== 0) ended = true;
    before = own;
  }
  return undefined;
}

function isSum([a, b]: Checksum, [x, y]: Checksum): boolean {
  return a === x && b === y;
}

/** Continues a checksum over some ranges of bytes. */
function checksum(view: DataView, littleEndian: boolean, [x, y]: Checksum, ranges: Range[]): Checksum {
  let a = x;
  let b = y;
  for (const [from, to] of ranges) {
    for (let offset = from; offset < to; offset += 8) {
      a = (a + view.getUint32(offset, littleEndian) + b) >>> 0;
      b = (b + view.getUint32(offset + 4, littleEndian) + a) >>> 0;
    }
  }
  return [a, b];
}
