// Splits a file of users into the text of each user while it is read, so that the file need not fit into memory.
import { FileFault } from './file.ts';

/** The most characters of one user's text. */
const MAX_USER_LENGTH = 4 << 20;

/** The position of the next character in the file's structure. */
type Place = 'start' | 'value' | 'after' | 'end';

const SPACE = /\s/;
const QUOTE = 34;
const BACKSLASH = 92;
const [OPEN, CLOSE] = [123, 125];
const [OPEN_ARRAY, CLOSE_ARRAY] = [91, 93];

/**
 * Yields the users of a file: the objects of a JSON array, or a sequence of objects, such as one per line.
 * @param chunks the file's text, in pieces of any length.
 * @returns the text of each object. Its brackets match; it is not parsed as JSON here.
 * @throws FileFault if the file is neither, or has no users.
 */
export async function* usersOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let place: Place = 'start';
  let inArray = false;
  let count = 0;
  let rest = '';
  for await (const chunk of chunks) {
    rest += chunk;
    let at = 0;
    for (;;) {
      while (at < rest.length && isSpace(rest, at)) at += 1;
      const sign = rest[at];
      if (sign === undefined) break;
      if (place === 'start' && sign === '[') {
        inArray = true;
        place = 'value';
      } else if (place === 'after' && inArray && sign === ',') place = 'value';
      else if (inArray && sign === ']' && (place === 'after' || count === 0) && place !== 'end')
        place = 'end';
      else if (sign === '{' && place !== 'end' && (place !== 'after' || !inArray)) {
        const end = endOfObject(rest, at);
        if (end === undefined) break;
        yield rest.slice(at, end);
        count += 1;
        place = 'after';
        at = end;
        continue;
      } else throw noUsers();
      at += 1;
    }
    rest = rest.slice(at);
    if (rest.length > MAX_USER_LENGTH) throw new FileFault('A user of the file is too large.');
  }
  if (rest !== '' || (inArray && place !== 'end')) throw noUsers();
  if (count === 0) throw new FileFault('The file holds no users.');
}

function isSpace(text: string, at: number): boolean {
  const sign = text[at] ?? '';
  return sign === '\uFEFF' || SPACE.test(sign);
}

/** Returns the fault of a file that is not a list of users; the message is that of a file read as a whole. */
function noUsers(): FileFault {
  return new FileFault('The users file is neither a JSON array nor one JSON object a line.');
}

/** Returns the index after the object that begins at `start`; undefined if the text does not contain its end yet. */
function endOfObject(text: string, start: number): number | undefined {
  let depth = 0;
  let isText = false;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isText = false;
    } else if (code === QUOTE) isText = true;
    else if (code === OPEN || code === OPEN_ARRAY) depth += 1;
    else if (code === CLOSE || code === CLOSE_ARRAY) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
