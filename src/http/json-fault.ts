// Where what people have written as JSON is none.
import { jsonOf } from '../runtime/json.ts';

/**
 * Where a text stops being JSON. The parser names a place for some faults alone, so that it is asked of beginnings.
 * @returns the line and the column of the first character that is wrong, from 1; of the end where something is missing; undefined
 * of what is JSON.
 */
export function jsonFaultAt(text: string): { line: number; column: number } | undefined {
  if (jsonOf(text) !== undefined) return undefined;
  let [good, wrong] = [0, text.length + 1];
  while (wrong - good > 1) {
    const middle = Math.floor((good + wrong) / 2);
    if (isBeginning(text.slice(0, middle))) good = middle;
    else wrong = middle;
  }
  const before = text.slice(0, good).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** Whether more text could make JSON of it. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (thrown) {
    const message = String(thrown);
    const at = /at position (\d+)/.exec(message)?.[1];
    return /end of JSON|Unterminated string/.test(message) || Number(at ?? -1) === text.length;
  }
}
