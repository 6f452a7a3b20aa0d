// Names of files from names of objects, which anybody with rights at the Management API may have chosen: one name each, in one
// folder, on every file system.

/** What no file system refuses, no shell and no path takes for something else, and our own reader takes for a part of a path. */
const OTHERS = /[^\p{L}\p{M}\p{N} _.-]+/gu;

/** Names of devices, with any ending (Windows). */
const DEVICES = /^(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)/i;

/** Bytes of UTF-8; with a number and an ending it stays below the 255 of file systems. */
const MAX_BYTES = 120;

/** What file systems that do not tell case apart, or normalize, take for one name. */
const folded = (name: string): string => name.normalize('NFKD').toUpperCase().toLowerCase();

function safe(text: string): string {
  const plain = text.toWellFormed().normalize('NFC').replaceAll(OTHERS, '-');
  let name = '';
  for (const character of plain) {
    if (Buffer.byteLength(name + character) > MAX_BYTES) break;
    name += character;
  }
  // No hidden file, no `..`, and no name that Windows shortens.
  name = name.replace(/^[. ]+/, '');
  while (/[. ]$/.test(name)) name = name.slice(0, -1);
  if (name === '') return 'unnamed';
  return DEVICES.test(name) ? `_${name}` : name;
}

/** Returns a function that gives the name of a file in a folder for that of an object, without an ending, and never one twice. */
export function fileNames(taken: readonly string[] = []): (text: string) => string {
  const used = new Set(taken.map(folded));
  const counts = new Map<string, number>();
  return (text) => {
    const name = safe(text);
    for (let unique = name; ; ) {
      if (!used.has(folded(unique))) {
        used.add(folded(unique));
        return unique;
      }
      const number = (counts.get(folded(name)) ?? 1) + 1;
      counts.set(folded(name), number);
      unique = `${name}_${String(number).padStart(4, '0')}`;
    }
  };
}
