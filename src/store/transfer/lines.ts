// Reads lines of JSON, which end with a line feed only. node:readline would also split at U+2028, which a JSON text may
// contain.
import type { Readable } from 'node:stream';

/** Yields the lines of a stream; the last one may lack its line feed. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}
