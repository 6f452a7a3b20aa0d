// Reads a request's body as text, up to a length.
import type { IncomingMessage } from 'node:http';

/** What becomes of a body that is not read to its end. */
interface Faults {
  tooLarge(): Error;
  /** The client has given up. */
  brokenOff(): Error;
}

/**
 * Reads a body that nobody has read from, in UTF-8, without a byte order mark. What follows a body that is too long stays unread.
 * @param longest in bytes.
 * @throws those of `faults`.
 */
export function readText(req: IncomingMessage, longest: number, faults: Faults): Promise<string> {
  return new Promise((resolve, reject) => {
    if (Number(req.headers['content-length'] ?? 0) > longest) return reject(faults.tooLarge());
    if (req.destroyed) return reject(faults.brokenOff());
    const chunks: Buffer[] = [];
    let received = 0;
    const take = (chunk: Buffer) => {
      received += chunk.length;
      if (received <= longest) return chunks.push(chunk);
      chunks.length = 0;
      req.off('data', take).pause();
      reject(faults.tooLarge());
    };
    const end = () => {
      req.off('close', breakOff);
      resolve(textOf(chunks));
    };
    const breakOff = () => reject(faults.brokenOff());
    req.on('data', take).on('end', end).on('close', breakOff).on('error', breakOff);
  });
}

function textOf(chunks: readonly Buffer[]): string {
  const [first] = chunks;
  const text = (chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)).toString();
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}
