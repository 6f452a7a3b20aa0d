// Lines of JSON: they end with a line feed alone. What node:readline takes for ends besides (U+2028) may be within a text.
import type { Readable } from 'node:stream';

/** The lines of a stream; the last may have no end. */
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
